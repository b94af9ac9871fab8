package dispatch

import (
	"context"
	"slices"
	"sync"

	"medusa/serving/schedule"
)

// Machines carry out decisions.
type Machines interface {
	schedule.Cluster
	// Admit gives a decided request its place, so that the next decision sees it. It is called under the Queue's lock: it must not
	// block, and must not call the Queue. active reports whether a function's worker is worth keeping ([schedule.Anticipator]); it
	// may be called during Admit and Prefetch only.
	Admit(d schedule.Decision, active func(fn int) bool)
	// Prefetch announces requests of a function that cannot run yet. It is called as Admit is.
	Prefetch(fn int, active func(fn int) bool)
}

// Queue is a Core for many goroutines: each request waits for its turn.
type Queue struct {
	mu       sync.Mutex
	core     *Core
	machines Machines
	view     steady // of the machines
	clock    func() float64
	log      *Log
	now      float64
	next     int
	crowds   map[int]*crowd // by function
}

// verdict is a decision, and the Core that made it.
type verdict struct {
	schedule.Decision
	core *Core
}

// NewQueue makes a Queue. clock returns seconds since any moment.
func NewQueue(c Config, machines Machines, clock func() float64, log *Log) (*Queue, error) {
	crowds := map[int]*crowd{}
	view := steady{permitted{machines, crowds}, map[asked]float64{}}
	core, err := New(c, view, log)
	if err != nil {
		return nil, err
	}
	return &Queue{core: core, machines: machines, view: view, clock: clock, log: log, crowds: crowds}, nil
}

// Reconfigure goes on with a new Core, and a new run in the log. Waiting requests move to it, in order of their arrival. Running
// requests stay with the old one: their ends only free places for the new one. gone are GPUs that get no more requests. apply changes
// the machines to fit. It is called under the lock, after the configuration was checked.
func (q *Queue) Reconfigure(c Config, gone []int, apply func()) error {
	if err := c.check(); err != nil {
		return err
	}
	if _, err := schedule.New(c.Policy, c.Params); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	apply()
	clear(q.view.known)
	core, err := New(c, q.view, q.log)
	if err != nil {
		return err
	}
	q.core = core
	now := q.tick()
	for _, gpu := range gone {
		core.leave(now, gpu)
	}
	// mutant: requests that wait across a new configuration
	for _, r := range q.tickets() {
		core.Arrive(now, r)
	}
	q.decide()
	return nil
}

// tickets lists the requests that wait in the policy, in order.
func (q *Queue) tickets() (list []schedule.Request) {
	for fn, c := range q.crowds {
		for _, id := range c.tickets {
			list = append(list, schedule.Request{ID: id, Fn: fn})
		}
	}
	slices.SortFunc(list, func(a, b schedule.Request) int { return a.ID - b.ID })
	return list
}

// Turn is a decided request. Exactly one of Done and Lost ends it. The second call has no effect.
type Turn struct {
	verdict
	queue *Queue
	of    *waiter
}

// Wait queues a request and returns its turn, or the error of ctx if the client leaves before. If the turn comes at the same moment
// as the end of ctx, Wait returns the turn.
func (q *Queue) Wait(ctx context.Context, a Ask) (*Turn, error) {
	q.mu.Lock()
	r := schedule.Request{ID: q.next, Fn: a.Fn}
	q.next++
	w := &waiter{a, q.tick(), make(chan verdict, 1)}
	c := q.crowds[a.Fn]
	if c == nil {
		c = &crowd{next: map[string]float64{}}
		q.crowds[a.Fn] = c
	}
	c.join(r.ID, w)
	q.core.Arrive(w.arrived, r)
	q.decide()
	q.mu.Unlock()
	select {
	case d := <-w.decided:
		return &Turn{d, q, w}, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if ticket, was := c.leave(w); was {
		q.core.Cancel(q.tick(), schedule.Request{ID: ticket, Fn: a.Fn})
		q.decide() // it may have held back other requests
		return nil, ctx.Err()
	}
	// mutant: a turn at the end of its context
	return &Turn{<-w.decided, q, w}, nil
}

// Done accounts for a request that was answered. service is its running time in seconds, without its cold start.
func (t *Turn) Done(service float64) {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.tick()
	// mutant: requests of an earlier configuration
	if t.core == q.core {
		q.core.Done(now, t.Request.ID, service, now-t.of.arrived, t.of.Deadline)
	} else {
		q.core.Freed(now)
	}
	q.decide()
}

// Lost accounts for a request whose engine has died.
func (t *Turn) Lost() {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.tick()
	if t.core == q.core {
		q.core.Lost(now, t.Request.ID)
	} else {
		q.core.Freed(now)
	}
	q.decide()
}

// LoseGPU takes a GPU away. The turns of its requests are lost.
func (q *Queue) LoseGPU(gpu int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.core.LoseGPU(q.tick(), gpu)
	q.decide()
}

// ReturnGPU gives a GPU back that was lost.
func (q *Queue) ReturnGPU(gpu int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.core.ReturnGPU(q.tick(), gpu)
	q.decide()
}

// Changed tries decisions again: memory or a slot became free without a request's end, or the utilization has to be read again.
func (q *Queue) Changed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tick()
	q.decide()
}

// active is Core.Active, under the lock.
func (q *Queue) active(fn int) bool { return q.core.Active(q.now, fn) }

// Queued returns the number of requests that wait, and of those that run.
func (q *Queue) Queued() (waiting, running int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.Queued(), q.core.Running()
}

// tick reads the clock. Times of a Core never fall, even if the clock does.
func (q *Queue) tick() float64 {
	q.now = max(q.now, q.clock())
	return q.now
}

// decide hands out turns until the policy declines.
func (q *Queue) decide() {
	// mutant: decisions are written at once
	defer q.log.Flush()
	for {
		clear(q.view.known)
		d, ok := q.core.Next(q.now)
		if !ok {
			break
		}
		q.machines.Admit(d, q.active)
		q.crowds[d.Request.Fn].call(d.Request.ID, d.GPU).decided <- verdict{d, q.core}
	}
	// mutant: functions that woke up
	for _, fn := range q.core.Woken() {
		q.machines.Prefetch(fn, q.active)
	}
}
