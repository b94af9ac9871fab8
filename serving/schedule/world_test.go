package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// world is a small cluster for tests of policies. Each GPU holds up to fit functions and evicts the least recently used idle one.
// A request runs alone in a slot of its worker.
type world struct {
	t        *testing.T
	gpus     int
	slots    int // requests at once on a GPU
	fit      int
	load     float64
	service  []float64
	now      float64
	held     []map[int]float64 // GPU → function → last use
	running  []map[int]running // GPU → request
	served   []float64         // seconds of service per function
	order    []Decision
	startAt  map[int]float64
	arrived  map[int]float64
	finished map[int]float64
	leaves   []arrival // clients that give up, in order of time
	gone     map[int]bool
}

type running struct {
	fn         int
	begin, end float64
}

func newWorld(t *testing.T, gpus, slots, fit int, service []float64) *world {
	w := &world{t: t, gpus: gpus, slots: slots, fit: fit, load: 2, service: service, served: make([]float64, len(service)),
		startAt: map[int]float64{}, arrived: map[int]float64{}, finished: map[int]float64{}, gone: map[int]bool{}}
	for range gpus {
		w.held = append(w.held, map[int]float64{})
		w.running = append(w.running, map[int]running{})
	}
	return w
}

func (w *world) GPUs() int { return w.gpus }

func (w *world) busy(g, fn int) bool {
	for _, r := range w.running[g] {
		if r.fn == fn {
			return true
		}
	}
	return false
}

func (w *world) victim(g int) int {
	best := -1
	for fn, used := range w.held[g] {
		if !w.busy(g, fn) && (best < 0 || used < w.held[g][best] || (used == w.held[g][best] && fn < best)) {
			best = fn
		}
	}
	return best
}

func (w *world) Accepts(g, fn int) bool {
	if len(w.running[g]) >= w.slots {
		return false
	}
	return w.Holds(g, fn) || len(w.held[g]) < w.fit || w.victim(g) >= 0
}

func (w *world) Holds(g, fn int) bool { _, ok := w.held[g][fn]; return ok }
func (w *world) InFlight(g int) int   { return len(w.running[g]) }

func (w *world) Start(g, fn int) float64 {
	if w.Holds(g, fn) {
		return 0
	}
	return w.load
}

func (w *world) Service(fn int) float64 { return w.service[fn] }

func (w *world) FinishTime(g int) float64 {
	t := 0.0
	for _, r := range w.running[g] {
		t = math.Max(t, r.end-w.now)
	}
	return t
}

func (w *world) Traffic(int) Traffic { return Quiet }

func (w *world) Utilization(g int) float64 { return float64(len(w.running[g])) / float64(w.slots) }

func (w *world) apply(d Decision) {
	w.t.Helper()
	g, fn := d.GPU, d.Request.Fn
	if !w.Accepts(g, fn) {
		w.t.Fatalf("at %g: request %d sent to GPU %d, which does not accept function %d", w.now, d.Request.ID, g, fn)
	}
	if _, twice := w.startAt[d.Request.ID]; twice {
		w.t.Fatalf("request %d decided twice", d.Request.ID)
	}
	if w.gone[d.Request.ID] {
		w.t.Fatalf("request %d decided after it was cancelled", d.Request.ID)
	}
	wait := w.Start(g, fn)
	if !w.Holds(g, fn) && len(w.held[g]) >= w.fit {
		delete(w.held[g], w.victim(g))
	}
	w.held[g][fn] = w.now
	if len(w.held[g]) > w.fit {
		w.t.Fatalf("GPU %d holds %d functions, has room for %d", g, len(w.held[g]), w.fit)
	}
	w.startAt[d.Request.ID] = w.now
	w.running[g][d.Request.ID] = running{fn, w.now + wait, w.now + wait + w.service[fn]}
	w.order = append(w.order, d)
}

type arrival struct {
	at float64
	Request
}

// run plays a trace through a policy and calls check whenever the policy has declined.
func (w *world) run(p Policy, trace []arrival, check func()) {
	w.t.Helper()
	next := 0
	for steps := 0; next < len(trace) || w.active() > 0; steps++ {
		if steps > 100*len(trace)+1000 {
			w.t.Fatalf("%T does not finish: %d waiting", p, p.Queued())
		}
		g, id, end := w.first()
		if len(w.leaves) > 0 && (next == len(trace) || w.leaves[0].at < trace[next].at) && (id < 0 || w.leaves[0].at < end) {
			w.leave(p)
		} else if next < len(trace) && (id < 0 || trace[next].at <= end) {
			w.now = trace[next].at
			w.arrived[trace[next].ID] = w.now
			p.Arrive(w.now, trace[next].Request)
			next++
		} else {
			r := w.running[g][id]
			w.now = end
			delete(w.running[g], id)
			w.held[g][r.fn] = w.now
			w.served[r.fn] += r.end - r.begin
			w.finished[id] = w.now
			p.Done(w.now, Completion{Request: Request{ID: id, Fn: r.fn}, GPU: g, Service: r.end - r.begin, Latency: w.now - w.arrived[id]})
		}
		for {
			d, ok := p.Next(w.now, w)
			if !ok {
				break
			}
			w.apply(d)
		}
		check()
	}
	if p.Queued() != 0 || len(w.finished)+len(w.gone) != len(trace) {
		w.t.Fatalf("%T: %d of %d finished, %d waiting", p, len(w.finished), len(trace), p.Queued())
	}
}

// leave handles the next client that gives up: its request leaves the queue, once, unless it has started.
func (w *world) leave(p Policy) {
	w.t.Helper()
	r := w.leaves[0].Request
	w.now, w.leaves = w.leaves[0].at, w.leaves[1:]
	_, started := w.startAt[r.ID]
	queued := p.Queued()
	if got := p.Cancel(r); got == started {
		w.t.Fatalf("%T at %g: cancel of request %d says %v, started is %v", p, w.now, r.ID, got, started)
	}
	if !started {
		w.gone[r.ID] = true
		queued--
	}
	if p.Queued() != queued || p.Cancel(r) {
		w.t.Fatalf("%T: %d queued after a cancel, want %d; or a second cancel succeeds", p, p.Queued(), queued)
	}
}

func (w *world) active() int {
	n := 0
	for g := range w.running {
		n += len(w.running[g])
	}
	return n
}

// first is the running request that ends first.
func (w *world) first() (gpu, id int, end float64) {
	id, end = -1, math.Inf(1)
	for g := range w.running {
		for k, r := range w.running[g] {
			if r.end < end || (r.end == end && k < id) {
				gpu, id, end = g, k, r.end
			}
		}
	}
	return gpu, id, end
}

// randomTrace draws arrivals with exponential gaps and skewed popularity.
func randomTrace(seed uint64, n, functions int, rate float64) []arrival {
	rng := rand.New(rand.NewPCG(seed, 7))
	out := make([]arrival, n)
	t := 0.0
	for i := range out {
		t += rng.ExpFloat64() / rate
		fn := int(float64(functions) * math.Pow(rng.Float64(), 2))
		out[i] = arrival{t, Request{ID: i, Fn: fn}}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].at < out[j].at })
	return out
}

func randomService(seed uint64, functions int) []float64 {
	rng := rand.New(rand.NewPCG(seed, 8))
	out := make([]float64, functions)
	for i := range out {
		out[i] = 0.05 + 3*rng.Float64()
	}
	return out
}

func mustNew(t *testing.T, name string, p Params) Policy {
	t.Helper()
	for range p.Functions {
		p.Deadline = append(p.Deadline, 5)
	}
	policy, err := New(name, p)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// TestEveryPolicyServesEverything plays random traces at several loads through every policy. Each request is decided exactly
// once, and only for a GPU that accepts it. No GPU ever holds more than fits, and no request waits forever.
func TestEveryPolicyServesEverything(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				functions := 3 + int(seed)*3
				w := newWorld(t, 1+int(seed%4), 2, 3, randomService(seed, functions))
				w.run(mustNew(t, name, Params{Functions: functions, Seed: seed}), randomTrace(seed, 400, functions, 0.5+float64(seed)), func() {})
			}
		})
	}
}

// TestWorkConservation: if a GPU could take a waiting request, it gets one. Round robin binds requests to busy GPUs by design,
// and Torpor runs a function's requests one by one. The test excludes the first and allows for the second.
func TestWorkConservation(t *testing.T) {
	for _, name := range []string{"mqfq", "fcfs", "batch", "sjf", "lb", "lalb", "lalbo3", "torpor", "scale-out"} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(5) {
				w := newWorld(t, 3, 1, 2, randomService(seed, 6))
				p := mustNew(t, name, Params{Functions: 6, D: 1})
				w.run(p, randomTrace(seed, 300, 6, 2), func() {
					free := waitingElsewhere(p, w)
					if free == 0 {
						return
					}
					for g := range w.gpus {
						if len(w.running[g]) == 0 {
							t.Fatalf("at %g: GPU %d idles while %d requests wait", w.now, g, free)
						}
					}
				})
			}
		})
	}
}

// waitingElsewhere counts the requests that an idle GPU could take by the policy's own rules.
func waitingElsewhere(p Policy, w *world) int {
	switch p := p.(type) {
	case *lalb:
		return len(p.queue) // requests bound to a busy GPU wait there because that is sooner
	case *torpor:
		return len(p.waiting)
	}
	return p.Queued()
}

// TestSameCallsSameDecisions: no policy hides a clock, a map's order or an unseeded generator.
func TestSameCallsSameDecisions(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			var first string
			for range 3 {
				w := newWorld(t, 4, 2, 3, randomService(1, 12))
				w.run(mustNew(t, name, Params{Functions: 12, Seed: 5}), randomTrace(1, 300, 12, 5), func() {})
				if got := fmt.Sprint(w.order); first == "" {
					first = got
				} else if got != first {
					t.Fatal("two runs decide differently")
				}
			}
		})
	}
}
