package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// leaving makes the clients of a share of a trace give up after an exponential time.
func leaving(trace []arrival, seed uint64, share, patience float64) []arrival {
	rng := rand.New(rand.NewPCG(seed, 9))
	var out []arrival
	for _, a := range trace {
		if rng.Float64() < share {
			out = append(out, arrival{a.at + 1e-9 + rng.ExpFloat64()*patience, a.Request})
		}
	}
	slices.SortStableFunc(out, func(a, b arrival) int {
		if a.at < b.at {
			return -1
		}
		return 1
	})
	return out
}

// TestCancelledRequestsAreGone plays random traces with clients that give up at random through every policy. Each request is
// decided or cancelled exactly once, the queue counts the waiting requests, no request waits forever, and no GPU idles beside a
// request that it could take.
func TestCancelledRequestsAreGone(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			gone := 0
			for seed := range uint64(8) {
				functions := 3 + int(seed)
				w := newWorld(t, 1+int(seed%3), 1, 2, randomService(seed, functions))
				p := mustNew(t, name, Params{Functions: functions, D: 1, Seed: seed})
				trace := randomTrace(seed, 300, functions, 2)
				w.leaves = leaving(trace, seed, 0.5, 10)
				w.run(p, trace, func() {
					if _, binds := p.(*roundRobin); binds || waitingElsewhere(p, w) == 0 {
						return
					}
					for g := range w.gpus {
						if len(w.running[g]) == 0 {
							t.Fatalf("at %g: GPU %d idles while %d requests wait", w.now, g, p.Queued())
						}
					}
				})
				gone += len(w.gone)
			}
			if gone < 100 {
				t.Errorf("only %d requests were cancelled", gone)
			}
		})
	}
}

// ghosts adds further requests to each request. They come and leave before the policy is asked.
type ghosts struct {
	Policy
	rng       *rand.Rand
	functions int
	id        int
}

func (g *ghosts) Arrive(now float64, r Request) {
	var others []Request
	for range g.rng.IntN(3) {
		g.id--
		others = append(others, Request{ID: g.id, Fn: g.rng.IntN(g.functions)})
	}
	for _, o := range others {
		g.Policy.Arrive(now, o)
	}
	g.Policy.Arrive(now, r)
	for _, o := range others {
		g.Policy.Cancel(o)
	}
}

// TestGhostsChangeNothing: a request that comes and leaves between two calls of Next changes no decision. MQFQ's anticipation,
// which learns from arrivals, is switched off.
func TestGhostsChangeNothing(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				functions, never := 4+int(seed)*2, 0.0
				decisions := func(haunted bool) string {
					w := newWorld(t, 3, 2, 3, randomService(seed, functions))
					p := mustNew(t, name, Params{Functions: functions, Seed: seed, Alpha: &never})
					if haunted {
						p = &ghosts{Policy: p, rng: rand.New(rand.NewPCG(seed, 5)), functions: functions}
					}
					w.run(p, randomTrace(seed, 300, functions, 2+float64(seed)), func() {})
					return fmt.Sprint(w.order)
				}
				if decisions(true) != decisions(false) {
					t.Fatalf("seed %d: requests that were never there change decisions", seed)
				}
			}
		})
	}
}

// TestCancelAndFairness: the clients of every second request of one function give up while it waits. That changes neither the
// functions' virtual times nor the global one. While all functions have a backlog, they get the same service within the bound.
func TestCancelAndFairness(t *testing.T) {
	const d, over = 2, 5.0
	service := []float64{0.3, 1.1, 2.7, 0.9}
	var trace []arrival
	for i := range 800 {
		trace = append(trace, arrival{0, Request{ID: i, Fn: i % len(service)}})
	}
	w := newWorld(t, 1, d, len(service), service)
	w.load = 0
	for i := 0; i < len(trace); i += 2 * len(service) {
		w.leaves = append(w.leaves, arrival{0.05 * float64(i+1), trace[i].Request})
	}
	m := newMQFQ(len(service), d, over, 2, 0, nil)
	before, order := make([]float64, len(service)), 0
	samples, worst := 0, 0.0
	w.run(m, trace, func() {
		charged := make([]float64, len(service))
		for _, x := range w.order[order:] {
			charged[x.Request.Fn]++
		}
		order = len(w.order)
		backlogged := true
		for i := range m.flows {
			if charged[i] == 0 && m.flows[i].vt != before[i] {
				t.Fatalf("at %g: virtual time of %d goes from %g to %g with nothing decided", w.now, i, before[i], m.flows[i].vt)
			}
			before[i] = m.flows[i].vt
			backlogged = backlogged && m.flows[i].len() > 0
		}
		if !backlogged {
			return
		}
		samples++
		for i := range service {
			for k := range i {
				gap := math.Abs(w.served[i] - w.served[k])
				worst = math.Max(worst, gap)
				if bound := fairnessBound(d, over, service[i], service[k]); gap > bound {
					t.Fatalf("at %g: functions %d and %d differ by %g, bound %g", w.now, i, k, gap, bound)
				}
			}
		}
	})
	if samples < 100 || len(w.gone) < 20 || worst == 0 {
		t.Errorf("nothing was tested: %d samples, %d cancelled, gap %g", samples, len(w.gone), worst)
	}
}

// TestCancelInTorpor: a request that left does not count in its function's share.
func TestCancelInTorpor(t *testing.T) {
	w := newWorld(t, 1, 1, 2, []float64{1, 1})
	p := newTorpor([]float64{5, 5}, Topology{})
	trace := []arrival{{0, Request{ID: 0, Fn: 0}}, {0, Request{ID: 1, Fn: 1}}, {0, Request{ID: 2, Fn: 1}}, {0, Request{ID: 3, Fn: 0}}}
	w.leaves = []arrival{{0.5, trace[1].Request}, {0.6, trace[2].Request}}
	w.run(p, trace, func() {})
	if p.served[0] != 2 || p.served[1] != 0 || p.met[1] != 0 || len(p.stamps) != 0 || len(p.waiting) != 0 {
		t.Errorf("served %v, met %v, %d stamps, %d functions waiting", p.served, p.met, len(p.stamps), len(p.waiting))
	}
}

// TestCancelInABatch: a request that leaves makes its batch shorter only if it was in the current batch.
func TestCancelInABatch(t *testing.T) {
	w := newWorld(t, 1, 1, 2, []float64{1, 1})
	p := newBatch(2, 1)
	for id, fn := range []int{0, 0, 0, 1, 0} {
		p.Arrive(0, Request{ID: id, Fn: fn})
		if id == 3 {
			next(t, p, w, 0) // the batch is 0, 1, 2; request 4 is for another
		}
	}
	p.Cancel(Request{ID: 1})
	p.Cancel(Request{ID: 4})
	next(t, p, w, 2)
	next(t, p, w, 3)
}

// picky is a world whose GPU accepts one function only.
type picky struct {
	*world
	fn int
}

func (p picky) Accepts(g, fn int) bool { return fn == p.fn && p.world.Accepts(g, fn) }

// TestOrderOfGPUs: the order is that of a stable sort by use.
func TestOrderOfGPUs(t *testing.T) {
	w := newWorld(t, 9, 1, 9, []float64{1})
	p := &lalb{}
	p.used.init(w)
	if _, ok := p.Next(0, w); ok || p.order != nil {
		t.Fatal("a decision without a request")
	}
	p.Arrive(0, Request{})
	p.Next(0, w)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		p.count(rng.IntN(9) * rng.IntN(2))
		want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
		slices.SortStableFunc(want, func(a, b int) int { return p.used[a] - p.used[b] })
		if !slices.Equal(p.order, want) {
			t.Fatalf("order %v, by use %v, want %v", p.order, p.used, want)
		}
	}
}

// TestCancelFreesTheGPU: a request is bound to a GPU that does not take it, and holds up others until its client leaves.
func TestCancelFreesTheGPU(t *testing.T) {
	w := picky{newWorld(t, 1, 1, 2, []float64{1, 1}), 1}
	p := &lalb{limit: 25}
	p.Arrive(0, Request{ID: 1, Fn: 1})
	p.local = make([]fifo, 1)
	p.local[0].push(Request{ID: 0})
	p.queued++
	if d, ok := p.Next(0, w); ok {
		t.Fatalf("decided %+v before the bound request", d)
	}
	p.Cancel(Request{ID: 0})
	if d, ok := p.Next(0, w); !ok || d.Request.ID != 1 {
		t.Errorf("decided %+v, %v, want request 1", d, ok)
	}
}

// next takes one decision and completes it.
func next(t *testing.T, p Policy, w *world, id int) {
	t.Helper()
	d, ok := p.Next(w.now, w)
	if !ok || d.Request.ID != id {
		t.Fatalf("decided %+v, %v, want request %d", d, ok, id)
	}
	p.Done(w.now, Completion{Request: d.Request, GPU: d.GPU, Service: 1})
}
