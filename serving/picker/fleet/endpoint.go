package fleet

import (
	"slices"

	"medusa/serving/agent"
	"medusa/serving/agent/link"
	"medusa/serving/schedule"
)

// endpoint is a GPU of an agent.
type endpoint struct {
	address string
	report  *link.Report // nil: the endpoint is down
	heard   float64      // time of the report
	mine    []sending    // sent requests whose end the picker does not know, in order
	over    map[string]bool

	// Computed from the fields above by settle.
	models []standing // by function
	flying int
}

// sending is a request that was decided. It has an ID once it was sent.
type sending struct {
	schedule.Request
	id string
	at float64
}

// standing is the state of a model at an endpoint.
type standing struct {
	known                       bool
	memory                      float64
	slots                       int
	keep                        bool
	start, wake, service, delay float64
	state                       agent.State
	held                        bool // its engine is awake, or becomes so
	lastUsed, retry             float64
	requests                    int
}

func newEndpoint(address string, functions int) *endpoint {
	return &endpoint{address: address, over: map[string]bool{}, models: make([]standing, functions)}
}

func (e *endpoint) up() bool { return e.report != nil && !e.report.Leaving }

// learn stores a report.
func (e *endpoint) learn(f *Fleet, r *link.Report) {
	e.report, e.heard = r, f.Clock()
	// If a report lacks an ended request, the picker need not subtract it any more.
	has := map[string]bool{}
	for _, q := range r.Requests {
		has[q.ID] = true
	}
	for id := range e.over {
		if !has[id] {
			delete(e.over, id)
		}
	}
	ended := map[string]bool{}
	for _, q := range r.Ended {
		ended[q.ID] = true
	}
	e.mine = slices.DeleteFunc(e.mine, func(s sending) bool { return s.id != "" && ended[s.id] })
	e.settle(f)
}

func (e *endpoint) admit(f *Fleet, r schedule.Request) {
	e.mine = append(e.mine, sending{Request: r, at: f.Clock()})
	e.settle(f)
}

func (e *endpoint) sent(f *Fleet, r schedule.Request, id string) {
	for i := range e.mine {
		if e.mine[i].Request == r {
			e.mine[i].id = id
		}
	}
	e.settle(f)
}

func (e *endpoint) ended(f *Fleet, number int) {
	e.mine = slices.DeleteFunc(e.mine, func(s sending) bool {
		if s.ID != number {
			return false
		}
		if s.id != "" && e.report != nil && slices.ContainsFunc(e.report.Requests, func(q link.Request) bool { return q.ID == s.id }) {
			e.over[s.id] = true // until a report lacks it
		}
		return true
	})
	e.settle(f)
}

// settle computes the state of the models from the last report and from the requests that were
// sent since.
func (e *endpoint) settle(f *Fleet) {
	clear(e.models)
	e.flying = 0
	counted := map[string]bool{}
	if e.report != nil {
		for _, m := range e.report.Models {
			if fn, ok := f.functions[m.Name]; ok {
				e.models[fn] = standing{known: true, memory: m.Memory, slots: m.Slots, keep: m.Keep, start: m.Start, wake: m.Wake, service: m.Service,
					delay: m.Start, state: agent.Cold}
			}
		}
		for _, x := range e.report.Engines {
			if fn, ok := f.functions[x.Model]; ok {
				m := &e.models[fn]
				m.state, m.held, m.delay, m.lastUsed = x.State, x.Wanted, x.Delay, e.heard-x.Idle
				if x.State == agent.Failed {
					m.retry = e.heard + x.Retry
				}
			}
		}
		for _, q := range e.report.Requests {
			fn, ok := f.functions[q.Model]
			if ok && !e.over[q.ID] {
				e.models[fn].requests++
				e.flying++
			}
			counted[q.ID] = true
		}
	}
	for _, s := range e.mine {
		m := &e.models[s.Fn]
		if !counted[s.id] || s.id == "" {
			m.requests++
			e.flying++
			m.lastUsed = max(m.lastUsed, s.at)
			e.hold(f, s.Fn)
		}
	}
}

// hold counts an engine as held, and puts away idle ones as the agent will do it.
func (e *endpoint) hold(f *Fleet, fn int) {
	if m := &e.models[fn]; m.held || m.retry > f.Clock() {
		return
	}
	e.models[fn].held = true
	for e.promised() > 1+slack {
		var idle []schedule.Resident
		for other := range e.models {
			if o := &e.models[other]; o.held && o.requests == 0 && other != fn && !o.keep {
				idle = append(idle, schedule.Resident{Fn: other, LastUsed: o.lastUsed, Anywhere: o.lastUsed, Replicas: 1, Heavy: o.wake > o.service})
			}
		}
		if len(idle) == 0 {
			return
		}
		e.models[idle[f.Victim.Victim(f.Clock(), idle)].Fn].held = false
	}
}

// slack tolerates the rounding of sums of shares.
const slack = 1e-9

// promised is the share of the memory that is taken once all wanted engines are awake.
func (e *endpoint) promised() float64 {
	sum := 0.0
	for i := range e.models {
		if e.models[i].held {
			sum += e.models[i].memory
		}
	}
	return sum
}

// obstacle is the reason why a request cannot run at the endpoint, as Agent.Obstacle.
func (e *endpoint) obstacle(f *Fleet, fn int) agent.Obstacle {
	m := &e.models[fn]
	switch {
	case m.held && m.requests >= m.slots:
		return agent.Full
	case m.held:
		return agent.Turn
	case m.retry > f.Clock():
		return agent.Broken
	}
	need := m.memory
	for other := range e.models {
		if o := &e.models[other]; other != fn && o.held && (o.requests > 0 || o.keep) {
			need += o.memory
		}
	}
	if need > 1+slack {
		return agent.Room
	}
	return agent.Turn
}
