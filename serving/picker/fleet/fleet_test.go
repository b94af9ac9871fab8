package fleet

import (
	"fmt"
	"slices"
	"testing"

	"medusa/serving/agent"
	"medusa/serving/agent/link"
	"medusa/serving/schedule"
)

// fixture is a fleet of two endpoints for three models. Two models fit at a time.
func fixture(t *testing.T) (f *Fleet, now *float64) {
	t.Helper()
	now = new(float64)
	f = New(Config{Models: []string{"a", "b", "c"}, Places: 3, Victim: schedule.LRU{}, Clock: func() float64 { return *now }})
	if _, _, err := f.Set([]string{"x:1", "y:1"}); err != nil {
		t.Fatal(err)
	}
	return f, now
}

// report stores the report of an agent, which is another one at each place.
func report(t *testing.T, f *Fleet, place int, r link.Report) {
	t.Helper()
	r.Boot = fmt.Sprint(place)
	for _, name := range []string{"a", "b", "c", "unknown"} {
		r.Models = append(r.Models, link.Model{Name: name, Memory: 0.5, Slots: 2, Start: 10, Wake: 1, Service: 3})
	}
	if _, err := f.Report(place, &r); err != nil {
		t.Error(err)
	}
}

func decided(f *Fleet, id, fn, gpu int, name string) schedule.Decision {
	d := schedule.Decision{Request: schedule.Request{ID: id, Fn: fn}, GPU: gpu}
	f.Admit(d, nil)
	f.Sent(d, name)
	return d
}

// A request counts once, from its decision until its end, even if reports differ meanwhile.
func TestRequestsCountOnce(t *testing.T) {
	f, _ := fixture(t)
	report(t, f, 0, link.Report{})
	d := decided(f, 1, 0, 0, "p.1")
	check := func(when string, want int) {
		t.Helper()
		if n := f.InFlight(0); n != want {
			t.Errorf("%s: %d in flight", when, n)
		}
	}
	check("decided", 1)
	report(t, f, 0, link.Report{Version: 1})
	check("an older report", 1)
	report(t, f, 0, link.Report{Version: 2, Requests: []link.Request{{ID: "p.1", Model: "a"}, {ID: "other.9", Model: "b"}}})
	check("with one of another picker", 2)
	f.Ended(d)
	check("ended here", 1)
	report(t, f, 0, link.Report{Version: 3, Requests: []link.Request{{ID: "p.1", Model: "a"}}})
	check("the agent is late", 0)
	report(t, f, 0, link.Report{Version: 4})
	check("the agent has none", 0)
	decided(f, 2, 0, 0, "p.2")
	report(t, f, 0, link.Report{Version: 5, Ended: []link.Ended{{ID: "p.2", Service: 1}}})
	check("the agent says that it has ended", 0)
}

// Engines come and go in the view as the agent will do it, before its report.
func TestEnginesAreForeseen(t *testing.T) {
	f, now := fixture(t)
	*now = 100
	report(t, f, 0, link.Report{Engines: []link.Engine{
		{Model: "a", State: agent.Awake, Wanted: true, Idle: 20}, {Model: "b", State: agent.Awake, Wanted: true, Idle: 10}}})
	if !f.Holds(0, 0) || !f.Holds(0, 1) || f.Holds(0, 2) || f.Start(0, 2) != 10 || f.Start(0, 0) != 0 {
		t.Fatal("the report is not understood")
	}
	decided(f, 1, 2, 0, "p.1")
	if f.Holds(0, 0) || !f.Holds(0, 1) || !f.Holds(0, 2) {
		t.Error("the engine that was idle longest does not go")
	}
	decided(f, 2, 1, 0, "p.2")
	if f.Accepts(0, 0) {
		t.Error("there is no room beside two engines with requests")
	}
	decided(f, 3, 1, 0, "p.3")
	if f.Accepts(0, 1) || !f.Accepts(0, 2) {
		t.Error("an engine takes two requests")
	}
	if f.Accepts(1, 0) || f.Accepts(2, 0) {
		t.Error("an endpoint that does not report takes no requests")
	}
}

func TestModelThatFails(t *testing.T) {
	f, now := fixture(t)
	broken := link.Report{Engines: []link.Engine{{Model: "a", State: agent.Failed, Retry: 30}}}
	report(t, f, 0, broken)
	report(t, f, 1, link.Report{})
	if f.Accepts(0, 0) || !f.Accepts(1, 0) || !f.Accepts(0, 1) {
		t.Error("a model that fails at one endpoint is tried at another")
	}
	report(t, f, 1, broken)
	if !f.Accepts(0, 0) || !f.Accepts(1, 0) {
		t.Error("requests of a model that fails everywhere wait for ever")
	}
	*now = 31
	if !f.Accepts(0, 0) {
		t.Error("it may start again")
	}
}

func TestEndpointsChange(t *testing.T) {
	f, _ := fixture(t)
	report(t, f, 0, link.Report{})
	d := decided(f, 1, 0, 0, "p.1")
	came, left, err := f.Set([]string{"y:1", "z:1"})
	if err != nil || len(came) != 1 || came["z:1"] != 2 || len(left) != 1 || left["x:1"] != 0 {
		t.Fatalf("came %v, left %v, %v", came, left, err)
	}
	f.Ended(d) // the request of an endpoint that has left
	if _, _, err := f.Set([]string{"y:1", "z:1", "u:1", "v:1"}); err == nil {
		t.Error("four endpoints have three places")
	}
	if came, _, err := f.Set([]string{"y:1", "z:1", "u:1"}); err != nil || came["u:1"] != 0 {
		t.Errorf("came %v, %v", came, err)
	}
	if f.InFlight(0) != 0 {
		t.Error("an endpoint begins with requests of another")
	}
	for place := range 3 {
		report(t, f, place, link.Report{})
	}
	if got := f.Eligible(0, []string{"u:1", "nobody:1"}); !slices.Equal(got, []int{0}) {
		t.Errorf("eligible %v", got)
	}
	report(t, f, 1, link.Report{Leaving: true})
	if got := f.Eligible(0, nil); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("eligible beside an agent that ends: %v", got)
	}
}

// A GPU is one endpoint. If it leaves its address, another address may be it.
func TestOneGPUCountsOnce(t *testing.T) {
	f, _ := fixture(t)
	same := func(gpu string) *link.Report { return &link.Report{Boot: "one", GPU: gpu} }
	if _, err := f.Report(0, same("0")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Report(1, same("0")); err == nil || f.Up() != 1 {
		t.Errorf("%v, %d endpoints", err, f.Up())
	}
	if _, err := f.Report(0, same("0")); err != nil {
		t.Errorf("its next report: %v", err)
	}
	if _, err := f.Report(1, same("1")); err != nil || f.Up() != 2 {
		t.Errorf("another GPU: %v", err)
	}
	f.Down(0)
	if _, err := f.Report(1, same("0")); err != nil {
		t.Errorf("after the first has gone: %v", err)
	}
}
