// Package fleet is a picker's view of its endpoints. It makes the view of policies from the agents' reports and from the requests that were sent
// since.
//
// In: addresses, reports of agents (package link), decisions and the ends of their requests. Out: the answers of [schedule.Cluster], and the
// endpoints that may serve a request. An endpoint without reports takes no requests. A report lacks the requests that were sent after it. So a sent
// request counts until it has ended here or the agent reports its end, and the engine that it needs counts as held.
//
// Fails: more endpoints than the fleet has places ([Fleet.Set]).
package fleet

import (
	"fmt"
	"slices"
	"sync"

	"medusa/serving/agent/link"
	"medusa/serving/dispatch"
	"medusa/serving/schedule"
)

// Config configures a Fleet.
type Config struct {
	Models []string // by function
	Places int      // for endpoints
	Victim schedule.Evictor
	Clock  func() float64 // seconds, as the queue's
}

// Fleet implements [dispatch.Machines]. Each endpoint has a place, which policies know as a GPU. Places of endpoints that have left are used again.
type Fleet struct {
	Config
	functions map[string]int

	mu     sync.Mutex
	places []*endpoint // nil: the place is free
}

var _ dispatch.Machines = (*Fleet)(nil)

// New makes a Fleet without endpoints.
func New(c Config) *Fleet {
	f := &Fleet{Config: c, functions: map[string]int{}, places: make([]*endpoint, c.Places)}
	for fn, name := range c.Models {
		f.functions[name] = fn
	}
	return f
}

// Function returns the function of a model.
func (f *Fleet) Function(model string) (fn int, ok bool) {
	fn, ok = f.functions[model]
	return fn, ok
}

// Set changes the endpoints. It returns the places of new ones and of those that have left, by address. If it fails, the endpoints stay as they
// were.
func (f *Fleet) Set(addresses []string) (came map[string]int, left map[string]int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	came, left = map[string]int{}, map[string]int{}
	var free []int
	known := map[string]bool{}
	for place, e := range f.places {
		switch {
		case e == nil:
			free = append(free, place)
		case slices.Contains(addresses, e.address):
			known[e.address] = true
		default:
			left[e.address] = place
		}
	}
	for _, a := range addresses {
		if known[a] {
			continue
		}
		// A place that becomes free now is not used in the same call: its requests end first.
		if len(free) == 0 {
			return nil, nil, fmt.Errorf("use endpoints: %d are more than max_endpoints leaves room for", len(addresses))
		}
		came[a], free = free[0], free[1:]
	}
	for _, place := range left {
		f.places[place] = nil
	}
	for a, place := range came {
		f.places[place] = newEndpoint(a, len(f.Models))
	}
	return came, left, nil
}

// Report stores an agent's report. It reports whether the endpoint was down until now. It fails if another endpoint is the same GPU, which would
// count twice.
func (f *Fleet) Report(place int, r *link.Report) (up bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.places[place]
	if e == nil {
		return false, nil
	}
	for _, other := range f.places {
		if other != nil && other != e && other.report != nil && other.report.Boot == r.Boot && other.report.GPU == r.GPU {
			return false, fmt.Errorf("use report: it is the GPU of endpoint %s", other.address)
		}
	}
	up = e.report == nil && !r.Leaving
	e.learn(f, r)
	return up, nil
}

// Down records that an agent does not report. It reports whether the endpoint was up until now.
func (f *Fleet) Down(place int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.places[place]
	if e == nil || e.report == nil {
		return false
	}
	e.report = nil
	e.settle(f)
	return true
}

// Up returns the number of endpoints that report.
func (f *Fleet) Up() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.places {
		if e != nil && e.up() {
			n++
		}
	}
	return n
}

// Has reports whether an address is an endpoint's.
func (f *Fleet) Has(address string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.places, func(e *endpoint) bool { return e != nil && e.address == address })
}

// Address returns the address of the endpoint at a place.
func (f *Fleet) Address(place int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.places[place]; e != nil {
		return e.address
	}
	return ""
}

// Eligible returns the places of endpoints that are up and have a model. Only endpoints with the given addresses count; nil means all.
func (f *Fleet) Eligible(fn int, addresses []string) (places []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for place, e := range f.places {
		if e != nil && e.up() && e.models[fn].known && (addresses == nil || slices.Contains(addresses, e.address)) {
			places = append(places, place)
		}
	}
	return places
}

// Fallbacks returns at most n addresses for a request in case the endpoint at a place fails. Endpoints that hold its model come first, then those
// with the fewest requests.
func (f *Fleet) Fallbacks(place, fn, n int, eligible []int) (addresses []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	others := slices.DeleteFunc(slices.Clone(eligible), func(p int) bool { return p == place || f.places[p] == nil || !f.places[p].up() })
	slices.SortStableFunc(others, func(a, b int) int {
		x, y := f.places[a], f.places[b]
		if hx, hy := x.models[fn].held, y.models[fn].held; hx != hy {
			if hx {
				return -1
			}
			return 1
		}
		return x.flying - y.flying
	})
	for _, p := range others[:min(n, len(others))] {
		addresses = append(addresses, f.places[p].address)
	}
	return addresses
}

// Sent records the ID under which an agent knows a decided request.
func (f *Fleet) Sent(d schedule.Decision, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.places[d.GPU]; e != nil {
		e.sent(f, d.Request, id)
	}
}

// Ended records that a decided request has ended here.
func (f *Fleet) Ended(d schedule.Decision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.places[d.GPU]; e != nil {
		e.ended(f, d.Request.ID)
	}
}

// Drain estimates the seconds until a number of waiting requests of a model have begun, as Agent.Drain.
func (f *Fleet) Drain(fn, waiting int) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	slots, first, service := 0, -1.0, 1.0
	for _, e := range f.places {
		if e == nil || !e.up() || !e.models[fn].known {
			continue
		}
		m := &e.models[fn]
		if m.held {
			slots += m.slots
		}
		if d := m.delay; first < 0 || d < first {
			first = d
		}
		service = m.service
	}
	return max(first, 0) + float64(waiting)*service/float64(max(1, slots))
}
