package fleet

import (
	"math"

	"medusa/serving/agent"
	"medusa/serving/schedule"
)

// GPUs implements [schedule.Cluster].
func (f *Fleet) GPUs() int { return f.Places }

// at returns the endpoint of a place if it can be used.
func (f *Fleet) at(gpu int) (e *endpoint, unlock func()) {
	f.mu.Lock()
	if e := f.places[gpu]; e != nil && e.up() {
		return e, f.mu.Unlock
	}
	return nil, f.mu.Unlock
}

// Accepts implements [schedule.Cluster]. As with an Agent, a model that has failed at an endpoint is accepted only at others. If it has
// failed at all of them, it is accepted, so that its requests fail at once instead of waiting.
func (f *Fleet) Accepts(gpu, fn int) bool {
	e, unlock := f.at(gpu)
	defer unlock()
	if e == nil || !e.models[fn].known {
		return false
	}
	o := e.obstacle(f, fn)
	if o == agent.Broken {
		for _, other := range f.places {
			if other != nil && other.up() && other.models[fn].known && other.models[fn].retry <= f.Clock() {
				return false
			}
		}
		return true
	}
	return o == agent.Turn
}

// Holds implements [schedule.Cluster].
func (f *Fleet) Holds(gpu, fn int) bool {
	e, unlock := f.at(gpu)
	defer unlock()
	return e != nil && e.models[fn].held
}

// InFlight implements [schedule.Cluster].
func (f *Fleet) InFlight(gpu int) int {
	e, unlock := f.at(gpu)
	defer unlock()
	if e == nil {
		return 0
	}
	return e.flying
}

// Start implements [schedule.Cluster].
func (f *Fleet) Start(gpu, fn int) float64 {
	e, unlock := f.at(gpu)
	defer unlock()
	if e == nil {
		return math.Inf(1)
	}
	if e.models[fn].held {
		return 0
	}
	return e.models[fn].delay
}

// Service implements [schedule.Cluster]: the mean of the endpoints' measurements.
func (f *Fleet) Service(fn int) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	sum, n := 0.0, 0
	for _, e := range f.places {
		if e != nil && e.up() && e.models[fn].known {
			sum, n = sum+e.models[fn].service, n+1
		}
	}
	if n == 0 {
		return 1
	}
	return sum / float64(n)
}

// FinishTime implements [schedule.Cluster].
func (f *Fleet) FinishTime(gpu int) float64 {
	e, unlock := f.at(gpu)
	defer unlock()
	if e == nil {
		return math.Inf(1)
	}
	now, last := f.Clock(), 0.0
	add := func(fn int, began float64) {
		m := &e.models[fn]
		left := m.service
		if m.state == agent.Awake {
			left -= now - began
		} else {
			left += max(0, m.delay-(now-e.heard))
		}
		last = max(last, left)
	}
	for _, q := range e.report.Requests {
		if fn, ok := f.functions[q.Model]; ok && !e.over[q.ID] {
			add(fn, e.heard-q.Age)
		}
	}
	for _, s := range e.mine {
		add(s.Fn, s.at)
	}
	return last
}

// Traffic implements [schedule.Cluster].
func (f *Fleet) Traffic(gpu int) schedule.Traffic {
	e, unlock := f.at(gpu)
	defer unlock()
	most := schedule.Quiet
	if e == nil {
		return most
	}
	for i := range e.models {
		switch e.models[i].state {
		case agent.Starting:
			most = max(most, schedule.Cold)
		case agent.Waking:
			most = max(most, schedule.Heavy)
		}
	}
	return most
}

// Utilization implements [schedule.Cluster], as an Agent does.
func (f *Fleet) Utilization(gpu int) float64 { return math.Min(1, 0.5*float64(f.InFlight(gpu))) }

// Admit implements [dispatch.Machines].
func (f *Fleet) Admit(d schedule.Decision, _ func(fn int) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.places[d.GPU]; e != nil {
		e.admit(f, d.Request)
	}
}

// Prefetch implements [dispatch.Machines]. An agent wakes an engine when a request comes.
func (f *Fleet) Prefetch(int, func(fn int) bool) {}
