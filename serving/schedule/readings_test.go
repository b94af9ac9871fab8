package schedule

import (
	"math"
	"testing"
)

// The papers have misprints. Each test here names the reading taken, and fails under the printed one.

// MQFQ, Algorithm 1 line 22 prints "throttle if VT − Global_VT < T", §4.2 "if VT + T ≥ Global_VT". Both would throttle the queues
// that lag. Reading taken: a queue is throttled when it is ahead by T or more.
func TestReadingOfThrottling(t *testing.T) {
	w := newWorld(t, 1, 4, 4, []float64{1, 1, 1})
	m := newMQFQ(3, 4, 10, 2, 0, nil)
	for fn := range 3 {
		m.Arrive(0, Request{ID: fn, Fn: fn})
		m.Arrive(0, Request{ID: fn + 3, Fn: fn})
	}
	m.flows[0].vt, m.flows[1].vt, m.flows[2].vt = 0, 9.9, 10
	m.Next(0, w)
	for fn, want := range []queueState{active, active, throttled} {
		if got := m.flows[fn].state; got != want {
			t.Errorf("function %d at %g: state %d, want %d", fn, m.flows[fn].vt, got, want)
		}
	}
}

// MQFQ, Table 2 takes the global virtual time over active queues, line 2 of Algorithm 1 over all. Reading taken: over those with
// waiting requests, so that an empty queue in its TTL does not hold the others back.
func TestReadingOfGlobalTime(t *testing.T) {
	w := newWorld(t, 1, 4, 4, []float64{1, 1})
	m := newMQFQ(2, 4, 10, 2, 0, nil)
	m.flows[0].state, m.flows[0].iat = active, mean{sum: 1000, n: 1} // empty, and long in anticipation
	m.Arrive(0, Request{ID: 0, Fn: 1})
	m.flows[1].vt = 25
	if _, ok := m.Next(0, w); !ok || m.global != 25 {
		t.Errorf("served %v at global time %g; the empty queue at 0 throttles the only one with requests", ok, m.global)
	}
}

// MQFQ, equation 1 prints (D−1)(2T + tau_i − tau_j), which is 0 for D = 1 and equal functions. Whole requests cannot be
// divided, so any scheduler breaks it; the bound taken is [fairnessBound].
func TestReadingOfTheFairnessBound(t *testing.T) {
	printed := func(d int, over, i, j float64) float64 { return float64(d-1) * (2*over + i - j) }
	w := newWorld(t, 1, 1, 2, []float64{1, 1})
	w.load = 0
	var trace []arrival
	for i := range 40 {
		trace = append(trace, arrival{0, Request{ID: i, Fn: i % 2}})
	}
	worst := 0.0
	w.run(newMQFQ(2, 1, 0, 2, 0, nil), trace, func() { worst = math.Max(worst, math.Abs(w.served[0]-w.served[1])) })
	if worst <= printed(1, 0, 1, 1) || worst > fairnessBound(1, 0, 1, 1) {
		t.Errorf("gap %g; printed bound %g, bound taken %g", worst, printed(1, 0, 1, 1), fairnessBound(1, 0, 1, 1))
	}
}

// Thesis, Algorithm 8 prints the miss inside the loop over busy GPUs, which decides on the first. Reading taken: of all GPUs that
// hold the model, the one that finishes first.
func TestReadingOfAlgorithm8(t *testing.T) {
	w := newWorld(t, 3, 1, 1, []float64{1})
	w.load = 3
	for g, left := range map[int]float64{0: 9, 1: 1} {
		w.held[g][0] = 0
		w.running[g][90+g] = running{fn: 0, end: left}
	}
	p := &lalb{}
	p.Arrive(0, Request{ID: 0, Fn: 0})
	if d, ok := p.Next(0, w); ok || p.local[1].len() != 1 {
		t.Errorf("decided %+v, want it bound to GPU 1, which is done in 1 s", d)
	}
}

// Thesis, Algorithm 7 compares visits > limit. The comparison is strict, so with limit 0 a request can still be passed over once.
func TestReadingOfTheVisitLimit(t *testing.T) {
	w := newWorld(t, 1, 1, 1, []float64{1, 1})
	w.held[0][1] = 0
	p := &lalb{limit: 0}
	for i, fn := range []int{0, 1, 1} {
		p.Arrive(0, Request{ID: i, Fn: fn})
	}
	var got []int
	for range 3 {
		d, ok := p.Next(0, w)
		if !ok {
			t.Fatal("an idle GPU gets nothing")
		}
		got = append(got, d.Request.ID)
		p.Done(0, Completion{Request: d.Request, GPU: d.GPU})
	}
	if got[0] != 1 || got[1] != 0 {
		t.Errorf("order %v, want the hit once before the miss", got)
	}
}
