package dispatch

import (
	"math"
	"slices"

	"medusa/serving/schedule"
)

// Ask is the request of a client.
type Ask struct {
	Fn       int
	Flow     string  // requests of a function with the same flow share its turns with other flows; "" is a flow, too
	Deadline float64 // seconds from its arrival; 0: the function's deadline
	Only     []int   // GPUs on which it may run; nil: all
}

// crowd holds the waiting requests of one function. A policy has a ticket for each of them, and decides when a ticket is called. The
// crowd chooses the request that answers, among those that may run on the decided GPU. It takes the flow that was served least
// (start-time fair queueing; each request counts alike), and within it the request with the earliest deadline. Without flows and
// deadlines that is the oldest.
type crowd struct {
	waiting []*waiter // in order of arrival
	tickets []int     // IDs of requests in the policy, in order
	now     float64   // virtual time: the start of the last request
	next    map[string]float64
	bound   int // number of waiting requests that may not run on all GPUs
}

// waiter is a waiting request.
type waiter struct {
	Ask
	arrived float64
	decided chan verdict
}

// may reports whether a request may run on a GPU.
func (a *Ask) may(gpu int) bool { return a.Only == nil || slices.Contains(a.Only, gpu) }

// due is the time of the deadline. A request without a deadline comes after those with one.
func (w *waiter) due() float64 {
	if w.Deadline == 0 {
		return math.Inf(1)
	}
	return w.arrived + w.Deadline
}

// maxFlows bounds the number of flows of a function. Clients choose the names; requests of further flows go to the flow "".
const maxFlows = 1024

func (c *crowd) join(ticket int, w *waiter) {
	if _, known := c.next[w.Flow]; !known && len(c.next) >= maxFlows {
		w.Flow = ""
	}
	c.waiting, c.tickets = append(c.waiting, w), append(c.tickets, ticket)
	if w.Only != nil {
		c.bound++
	}
}

// call removes and returns the request that answers a ticket on a GPU. There always is one: see permitted.
func (c *crowd) call(ticket, gpu int) *waiter {
	best, start := -1, math.Inf(1)
	for i, w := range c.waiting {
		// mutant: requests that may not run everywhere
		if !w.may(gpu) {
			continue
		}
		// A flow gets no credit for the time in which it had no request.
		s := math.Max(c.next[w.Flow], c.now)
		// mutant: fairness between flows
		if best < 0 || s < start || s == start && w.due() < c.waiting[best].due() {
			best, start = i, s
		}
	}
	w := c.waiting[best]
	c.now = start
	for flow, next := range c.next {
		if next <= c.now {
			delete(c.next, flow) // as if it had never been there
		}
	}
	c.next[w.Flow] = start + 1
	c.remove(best)
	c.tickets = slices.DeleteFunc(c.tickets, func(t int) bool { return t == ticket })
	return w
}

// leave removes a request, and returns the ticket that becomes free: the last one. It reports whether the request was waiting.
func (c *crowd) leave(w *waiter) (ticket int, was bool) {
	i := slices.Index(c.waiting, w)
	if i < 0 {
		return 0, false
	}
	last := len(c.tickets) - 1
	ticket = c.tickets[last]
	c.remove(i)
	c.tickets = c.tickets[:last]
	return ticket, true
}

func (c *crowd) remove(i int) {
	if c.waiting[i].Only != nil {
		c.bound--
	}
	c.waiting = slices.Delete(c.waiting, i, i+1)
}

// permitted is a view in which a GPU takes a function's requests only if one of the waiting ones may run there.
type permitted struct {
	schedule.Cluster
	crowds map[int]*crowd
}

func (p permitted) may(gpu, fn int) bool {
	c := p.crowds[fn]
	return c == nil || c.bound < len(c.waiting) || c.bound == 0 || slices.ContainsFunc(c.waiting, func(w *waiter) bool { return w.may(gpu) })
}

func (p permitted) Accepts(gpu, fn int) bool { return p.may(gpu, fn) && p.Cluster.Accepts(gpu, fn) }
func (p permitted) Holds(gpu, fn int) bool   { return p.may(gpu, fn) && p.Cluster.Holds(gpu, fn) }
