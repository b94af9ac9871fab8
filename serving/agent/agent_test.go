package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"medusa/serving/agent"
	"medusa/serving/schedule"
	"medusa/test/stubengine"
)

// patience is enough for a loaded machine.
const patience = time.Minute

// machine is an agent of stub engines, with a log of the orders that they got.
type machine struct {
	*agent.Agent
	mu   sync.Mutex
	told []string
	next int
}

func newMachine(t *testing.T, gpus int, models []agent.Model, change func(gpu, fn int, s *stubengine.Stub)) *machine {
	t.Helper()
	m := &machine{}
	began := time.Now()
	for i := range models {
		models[i].Name, models[i].StartLimit = fmt.Sprint("m", i), patience
	}
	var err error
	m.Agent, err = agent.New(agent.Config{Models: models, GPUs: gpus, HostMemory: 10, Retry: time.Hour, Health: time.Hour,
		Clock: func() float64 { return time.Since(began).Seconds() }, Changed: func() {}, Warn: t.Logf,
		Victim: func(now float64, idle []schedule.Resident, _ func(int) bool) int {
			return schedule.LRU{}.Victim(now, idle)
		},
		Make: func(gpu, fn int) agent.Engine {
			s := stubengine.Stub{Model: models[fn].Name, Observe: func(what string) {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.told = append(m.told, fmt.Sprintf("%s m%d on %d", what, fn, gpu))
			}}
			if change != nil {
				change(gpu, fn, &s)
			}
			return stubengine.New(s)
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// admit places a request, and returns how it ends.
func (m *machine) admit(gpu, fn int) (d schedule.Decision, wait func() error) {
	m.next++
	d = schedule.Decision{Request: schedule.Request{ID: m.next, Fn: fn}, GPU: gpu, Peer: schedule.Anywhere}
	m.Admit(d, func(int) bool { return false })
	return d, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := m.Acquire(ctx, d)
		return err
	}
}

// run serves one request.
func (m *machine) run(t *testing.T, gpu, fn int) {
	t.Helper()
	d, wait := m.admit(gpu, fn)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	m.Release(d, 0.1)
}

// becomes waits until a model on GPU 0 has a state.
func (m *machine) becomes(t *testing.T, fn int, want agent.State) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		state := m.Standing(0, fn).State
		if state == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("m%d is %s, not %s; engines were told %q", fn, state, want, m.log())
		}
	}
}

func (m *machine) log() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.told)
}

// Engines make room for each other within the GPU's memory. The least recently used engine goes, and the next one starts when that memory is free.
// An engine with a request stays.
func TestMemory(t *testing.T) {
	m := newMachine(t, 1, []agent.Model{{Memory: 0.5, Slots: 2}, {Memory: 0.5, Slots: 2}, {Memory: 0.5, Slots: 2}}, nil)
	m.run(t, 0, 0)
	m.run(t, 0, 1)
	m.run(t, 0, 2)
	if want := []string{"start m0 on 0", "start m1 on 0", "stop m0 on 0", "start m2 on 0"}; !slices.Equal(m.log(), want) {
		t.Errorf("engines were told %q, want %q", m.log(), want)
	}
	busy1, wait := m.admit(0, 1)
	busy2, _ := m.admit(0, 2)
	if err := wait(); err != nil || m.Accepts(0, 0) || !m.Accepts(0, 1) || m.InFlight(0) != 2 {
		t.Errorf("%v; with two busy engines m0 is accepted: %v, m1: %v, in flight %d", err, m.Accepts(0, 0), m.Accepts(0, 1), m.InFlight(0))
	}
	again, _ := m.admit(0, 1)
	if m.Accepts(0, 1) {
		t.Error("three requests are accepted in two slots")
	}
	for _, d := range []schedule.Decision{busy1, busy2, again} {
		m.Release(d, 1)
	}
	if !m.Accepts(0, 0) || m.Holds(0, 0) || !m.Holds(0, 1) || m.Start(0, 1) != 0 || m.InFlight(0) != 0 {
		t.Error("after the requests, the view shows other than two idle engines")
	}
}

// The last engine of a model that is kept does not make room. Another one of it does, and so does a model that is not kept.
func TestKept(t *testing.T) {
	m := newMachine(t, 2, []agent.Model{{Memory: 0.4, Slots: 1, Keep: true}, {Memory: 0.6, Slots: 1}, {Memory: 0.6, Slots: 1}, {Memory: 0.7, Slots: 1}}, nil)
	m.run(t, 0, 0)
	m.run(t, 0, 1)
	m.run(t, 0, 2)
	if want := []string{"start m0 on 0", "start m1 on 0", "stop m1 on 0", "start m2 on 0"}; !slices.Equal(m.log(), want) {
		t.Errorf("engines were told %q, want %q", m.log(), want)
	}
	if m.Accepts(0, 3) || m.Obstacle(0, 3) != agent.Room || !m.Accepts(1, 3) {
		t.Error("a model that has no room beside a kept one is accepted there, or not elsewhere")
	}
	m.run(t, 1, 0)
	if !m.Accepts(0, 3) || !m.Accepts(1, 3) {
		t.Error("two engines of a kept model hold their GPUs")
	}
	m.run(t, 1, 3)
	if m.Accepts(0, 3) || !m.Holds(0, 0) || m.Holds(1, 0) {
		t.Error("no engine of a kept model is left")
	}
}

// An engine is not started while another one's memory is not free yet.
func TestMemoryIsFreeBeforeAStart(t *testing.T) {
	release := make(chan struct{})
	m := newMachine(t, 1, []agent.Model{{Memory: 1, Slots: 1}, {Memory: 1, Slots: 1}}, func(_, fn int, s *stubengine.Stub) {
		if observe := s.Observe; fn == 0 {
			s.Observe = func(what string) {
				if what == "stop" {
					<-release
				}
				observe(what)
			}
		}
	})
	m.run(t, 0, 0)
	d, wait := m.admit(0, 1)
	for m.Standing(0, 0).State != agent.Evicted {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // for an agent that starts too early
	close(release)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	m.Release(d, 1)
	if want := []string{"start m0 on 0", "stop m0 on 0", "start m1 on 0"}; !slices.Equal(m.log(), want) {
		t.Errorf("engines were told %q, want %q", m.log(), want)
	}
}

// Engines that may sleep do so to make room, within the host's memory. If that is full, the engine that has slept longest is stopped. A request
// wakes a sleeping engine.
func TestSleep(t *testing.T) {
	model := agent.Model{Memory: 0.8, Asleep: 0.1, Slots: 1, Sleep: 1, Host: 5}
	m := newMachine(t, 1, []agent.Model{model, model, model, model}, nil)
	for fn := range 4 {
		m.run(t, 0, fn)
	}
	m.run(t, 0, 2)
	m.Close()
	want := []string{"start m0 on 0", "sleep 1 m0 on 0", "start m1 on 0", "sleep 1 m1 on 0", "start m2 on 0"}
	got := m.log()
	if len(got) < 5 || !slices.Equal(got[:5], want) || !slices.Contains(got, "wake m2 on 0") || slices.Contains(got, "wake m0 on 0") {
		t.Errorf("engines were told %q", got)
	}
	stops := 0
	for _, what := range got {
		if strings.HasPrefix(what, "stop") {
			stops++
		}
	}
	if stops != 4 {
		t.Errorf("%d of 4 engines were stopped at the end: %q", stops, got)
	}
}

// If sleeping engines hold more host memory than the file says, the measured size decides how many can sleep.
func TestMeasuredHostMemory(t *testing.T) {
	model := agent.Model{Memory: 1, Slots: 1, Sleep: 1, Host: 1}
	m := newMachine(t, 1, []agent.Model{model, model, model}, func(_, fn int, s *stubengine.Stub) { s.Holds = 6 })
	for _, fn := range []int{0, 1, 2} { // 10 bytes are there: too few for two
		m.run(t, 0, fn)
	}
	m.becomes(t, 0, agent.Cold)
	if state := m.Standing(0, 1).State; state != agent.Asleep1 || m.Host(1) != 6 || m.Host(2) != 1 {
		t.Errorf("m1 is %s, with %d bytes; m2 has %d", state, m.Host(1), m.Host(2))
	}
}

// If the measured GPU memory is more than the configuration says, the measured one counts.
func TestMeasuredDeviceMemory(t *testing.T) {
	sleeper := agent.Model{Memory: 0.5, Slots: 1, Sleep: 2}
	m := newMachine(t, 1, []agent.Model{sleeper, sleeper, sleeper, {Memory: 0.2, Slots: 1}}, func(_, fn int, s *stubengine.Stub) {
		s.Device = func(asleep bool) float64 {
			switch {
			case asleep:
				return 0.3
			case fn < 3:
				return 0.6
			}
			return 0.1
		}
	})
	measured := func(fn int) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); m.Standing(0, fn).Memory != 0.6; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("engine %d has %g after ten seconds", fn, m.Standing(0, fn).Memory)
			}
		}
	}
	m.run(t, 0, 0)
	measured(0)
	busy, wait := m.admit(0, 1) // there is no room for 0.5 beside 0.6
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	m.becomes(t, 0, agent.Asleep2)
	measured(1)
	if got := m.Standing(0, 0).Memory; got != 0.3 {
		t.Errorf("the sleeper has %g", got)
	}
	if m.Accepts(0, 0) || m.Accepts(0, 2) || !m.Accepts(0, 3) {
		t.Errorf("beside 0.6, 0.6 is accepted: %v, 0.5: %v, 0.2: %v", m.Accepts(0, 0), m.Accepts(0, 2), m.Accepts(0, 3))
	}
	m.Release(busy, 1)
	m.run(t, 0, 2) // two sleepers would have 0.6: the one that has slept longest goes
	m.becomes(t, 0, agent.Cold)
	m.becomes(t, 1, agent.Asleep2)
	m.run(t, 0, 3)
	if got := m.Standing(0, 3).Memory; got != 0.2 {
		t.Errorf("an engine that has less than the configuration says has %g", got)
	}
}

// An engine got its place before the agent knew that a sleeper keeps so much. It gets the memory all the same: the sleeper is stopped.
func TestRoomThatIsTooSmall(t *testing.T) {
	m := newMachine(t, 1, []agent.Model{{Memory: 0.5, Slots: 1}, {Memory: 0.5, Slots: 1, Sleep: 2}, {Memory: 0.5, Slots: 1}}, func(_, fn int, s *stubengine.Stub) {
		s.Device = func(asleep bool) float64 { return map[bool]float64{true: 0.3}[asleep] }
	})
	_, wait := m.admit(0, 0)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	m.run(t, 0, 1)
	m.run(t, 0, 2)
	if want := []string{"start m0 on 0", "start m1 on 0", "sleep 2 m1 on 0", "stop m1 on 0", "start m2 on 0"}; !slices.Equal(m.log(), want) {
		t.Errorf("engines were told %q, want %q", m.log(), want)
	}
}

// An engine waits for room, and the engine beside it has turned out too large and always has requests. The waiting engine gets the room: no more
// requests are admitted to the other one meanwhile.
func TestWaitForALargerEngine(t *testing.T) {
	weighed, stopped, stopping := make(chan struct{}), make(chan struct{}), make(chan struct{})
	m := newMachine(t, 1, []agent.Model{{Memory: 0.5, Slots: 2}, {Memory: 0.5, Slots: 1}, {Memory: 0.5, Slots: 1}}, func(_, fn int, s *stubengine.Stub) {
		observe := s.Observe
		switch fn {
		case 0:
			s.Device = func(bool) float64 { <-weighed; return 0.8 }
		case 1:
			s.Observe = func(what string) {
				observe(what)
				if what == "stop" {
					close(stopping)
					<-stopped
				}
			}
		}
	})
	busy, wait := m.admit(0, 0)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	m.run(t, 0, 1)
	late, wait := m.admit(0, 2)
	<-stopping
	close(weighed)
	for m.Standing(0, 0).Memory != 0.8 {
		time.Sleep(time.Millisecond)
	}
	close(stopped)
	m.becomes(t, 1, agent.Cold)
	if m.Accepts(0, 0) {
		t.Error("the larger engine gets another request")
	}
	m.Release(busy, 1)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	m.Release(late, 1)
	if !m.Accepts(0, 0) {
		t.Error("nobody waits, and the larger engine is not accepted")
	}
}

// The engine of a model that expects requests is woken before one is admitted. Only engines whose models expect none make room for it. A model
// whose weights are not in host memory stays as it is.
func TestPrefetch(t *testing.T) {
	sleeper := agent.Model{Memory: 0.5, Slots: 1, Sleep: 1, Host: 5}
	m := newMachine(t, 1, []agent.Model{{Memory: 0.5, Slots: 1}, sleeper, {Memory: 0.5, Slots: 1}, {Memory: 0.5, Slots: 1}, {Memory: 0.5, Slots: 1, Sleep: 2}}, nil)
	for _, fn := range []int{4, 1, 0, 2} { // then 4 and 1 sleep, and 0 and 2 are awake
		m.run(t, 0, fn)
	}
	before := m.log()
	m.Prefetch(1, func(int) bool { return true })
	for _, fn := range []int{0, 2, 3, 4} {
		m.Prefetch(fn, func(int) bool { return false })
	}
	if got := m.log(); !slices.Equal(got, before) || m.Holds(0, 1) || m.Holds(0, 4) {
		t.Fatalf("engines were told %q, then %q", before, got)
	}
	m.Prefetch(1, func(fn int) bool { return fn == 0 })
	m.becomes(t, 1, agent.Awake)
	if want := []string{"stop m2 on 0", "wake m1 on 0"}; !slices.Equal(m.log()[len(before):], want) {
		t.Errorf("engines were told %q, want %q", m.log()[len(before):], want)
	}
	if !m.Holds(0, 0) || m.InFlight(0) != 0 {
		t.Error("the active model's engine has gone, or a request is there")
	}
}

// An engine wakes, and its request has gone meanwhile. It goes to sleep again: it is not stopped.
func TestPrefetchInVain(t *testing.T) {
	waking, release := make(chan struct{}), make(chan struct{})
	m := newMachine(t, 1, []agent.Model{{Memory: 1, Slots: 1}, {Memory: 1, Slots: 1, Sleep: 1, Host: 5}}, func(_, fn int, s *stubengine.Stub) {
		if observe := s.Observe; fn == 1 {
			s.WakeUp = 10 * time.Millisecond
			s.Observe = func(what string) {
				observe(what)
				if what == "wake" {
					close(waking)
					<-release
				}
			}
		}
	})
	m.run(t, 0, 1)
	m.run(t, 0, 0)
	m.Prefetch(1, func(int) bool { return false })
	<-waking
	d, wait := m.admit(0, 0)
	close(release)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	m.Release(d, 1)
	want := []string{"start m1 on 0", "sleep 1 m1 on 0", "start m0 on 0", "stop m0 on 0", "wake m1 on 0", "sleep 1 m1 on 0", "start m0 on 0"}
	if !slices.Equal(m.log(), want) {
		t.Errorf("engines were told %q, want %q", m.log(), want)
	}
}

// If a model does not start on one GPU, the requests that were admitted there fail, and the model goes on elsewhere. If it fails everywhere, its
// requests fail at once.
func TestFailedStart(t *testing.T) {
	broken := map[int]bool{0: true}
	m := newMachine(t, 2, []agent.Model{{Memory: 0.5, Slots: 1}, {Memory: 0.5, Slots: 1}}, func(gpu, fn int, s *stubengine.Stub) {
		if fn == 0 && broken[gpu] {
			s.Refuses = errors.New("no kernel image")
		}
	})
	d, wait := m.admit(0, 0)
	var failed *agent.EngineError
	// The cause is not in the text: it may repeat what a client has asked.
	if err := wait(); !errors.As(err, &failed) || failed.GPU != 0 || errors.Unwrap(failed.Cause).Error() != "no kernel image" || strings.Contains(err.Error(), "kernel") {
		t.Fatal(err)
	}
	m.Release(d, 0)
	if m.Accepts(0, 0) || !m.Accepts(1, 0) || !m.Accepts(0, 1) {
		t.Error("the other GPU or the other model suffers")
	}
	m.run(t, 0, 1)
	broken[1] = true
	d, wait = m.admit(1, 0)
	if err := wait(); err == nil {
		t.Fatal("no error")
	}
	m.Release(d, 0)
	if !m.Accepts(0, 0) {
		t.Error("a model that has failed everywhere is not accepted: its requests wait for ever")
	}
	if _, wait = m.admit(0, 0); wait() == nil {
		t.Error("no error")
	}
}

// The end of an engine is noticed, and its memory is free.
func TestDeath(t *testing.T) {
	m := newMachine(t, 1, []agent.Model{{Memory: 1, Slots: 1}, {Memory: 1, Slots: 1}}, nil)
	d, wait := m.admit(0, 0)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	at, err := m.Acquire(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = stubengine.Ask(t.Context(), at.URL, "m0", stubengine.Die, false) }()
	for m.Standing(0, 0).State != agent.Failed {
		time.Sleep(time.Millisecond)
	}
	m.Release(d, 0)
	m.run(t, 0, 1)
}
