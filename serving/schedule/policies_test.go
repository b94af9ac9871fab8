package schedule

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestBatchDrainsTheQueueOfTheOldest(t *testing.T) {
	w := newWorld(t, 1, 1, 3, []float64{1, 1, 1})
	var trace []arrival
	for i, fn := range []int{0, 1, 0, 2, 0, 1} {
		trace = append(trace, arrival{0, Request{ID: i, Fn: fn}})
	}
	p := newBatch(3, 1)
	// The first arrival is served before the others arrive. All others form one batch per function.
	w.run(p, trace, func() {})
	var got []int
	for _, d := range w.order {
		got = append(got, d.Request.ID)
	}
	if want := []int{0, 1, 5, 2, 4, 3}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

func TestSJFLimitsUnfairness(t *testing.T) {
	service := []float64{0.1, 5}
	w := newWorld(t, 1, 1, 2, service)
	w.load = 0
	var trace []arrival
	for i := range 300 {
		fn := 0
		if i == 10 {
			fn = 1
		}
		trace = append(trace, arrival{0, Request{ID: i, Fn: fn}})
	}
	p := newSJF(2, 1)
	// The request is known to be long. Otherwise it would be tried first.
	p.tau[1].add(5)
	p.tau[0].add(0.1)
	w.run(p, trace, func() {
		for i, d := range p.deficit {
			if d > p.threshold+1 {
				t.Fatalf("deficit of function %d is %g", i, d)
			}
		}
	})
	at := slices.IndexFunc(w.order, func(d Decision) bool { return d.Request.Fn == 1 })
	// Each other dispatch adds 1/2 to its deficit; at 25 it goes first.
	if at < 45 || at > 55 {
		t.Errorf("the long request came %d-th, want about the 50th", at)
	}
}

// TestLALBVisits: no waiting request is passed over more than limit+1 times, and the limit has an effect.
func TestLALBVisits(t *testing.T) {
	for _, limit := range []int{0, 3, 25} {
		for seed := range uint64(6) {
			w := newWorld(t, 3, 1, 2, randomService(seed, 9))
			p := &lalb{limit: limit}
			most := 0
			w.run(p, randomTrace(seed, 400, 9, 3), func() {
				for _, r := range p.queue {
					most = max(most, r.visits)
				}
			})
			if most > limit+1 {
				t.Fatalf("limit %d: a request was passed over %d times", limit, most)
			}
		}
	}
}

// boundWorld is a cluster in a given state, for tests of single decisions.
func boundWorld(t *testing.T) *world {
	w := newWorld(t, 2, 1, 1, []float64{1, 1})
	w.load = 3
	return w
}

func TestLALBPrefersWhatTheGPUHolds(t *testing.T) {
	w := boundWorld(t)
	w.held[0][1] = 0
	w.held[1][0] = 0
	p := &lalb{limit: 25}
	p.Arrive(0, Request{ID: 0, Fn: 0})
	p.Arrive(0, Request{ID: 1, Fn: 1})
	d, ok := p.Next(0, w)
	if !ok || d.GPU != 0 || d.Request.Fn != 1 {
		t.Errorf("first decision %+v, want function 1 on GPU 0", d)
	}
}

func TestLALBBindsToABusyGPUThatIsSooner(t *testing.T) {
	for _, c := range []struct {
		left float64
		want bool
	}{{2, true}, {4, false}} {
		w := boundWorld(t)
		w.held[1][0] = 0
		w.running[1][99] = running{fn: 0, begin: 0, end: c.left}
		p := &lalb{}
		p.Arrive(0, Request{ID: 0, Fn: 0})
		d, ok := p.Next(0, w)
		if bound := !ok && p.Queued() == 1; bound != c.want {
			t.Errorf("finish time %g against a load of 3: bound %v, want %v (%+v)", c.left, bound, c.want, d)
		}
		if !ok {
			delete(w.running[1], 99)
			p.Done(c.left, Completion{GPU: 1})
			if d, ok := p.Next(c.left, w); !ok || d.GPU != 1 {
				t.Errorf("the bound request went %+v, %v", d, ok)
			}
		}
	}
}

// nearer is a world in which one GPU starts workers at a lower cost.
type nearer struct {
	*world
	gpu int
}

func (n nearer) Start(g, fn int) float64 {
	if g == n.gpu && !n.Holds(g, fn) {
		return 1
	}
	return n.world.Start(g, fn)
}

// TestLALBMissesWhereItIsCheapest: if no GPU holds the model, the one nearest to the artifact starts it.
func TestLALBMissesWhereItIsCheapest(t *testing.T) {
	for gpu := range 3 {
		w := newWorld(t, 3, 1, 1, []float64{1})
		p := &lalb{limit: 25}
		p.Arrive(0, Request{ID: 0, Fn: 0})
		if d, ok := p.Next(0, nearer{w, gpu}); !ok || d.GPU != gpu {
			t.Errorf("went to GPU %d (%v), want %d", d.GPU, ok, gpu)
		}
	}
}

// TestArrivalOrder: FCFS and LB never let a later request overtake.
func TestArrivalOrder(t *testing.T) {
	for _, name := range []string{"fcfs", "lb", "scale-out"} {
		w := newWorld(t, 3, 2, 2, randomService(3, 6))
		w.run(mustNew(t, name, Params{Functions: 6}), randomTrace(3, 300, 6, 4), func() {})
		for i, d := range w.order {
			if d.Request.ID != i {
				t.Fatalf("%s: request %d is decided %d-th", name, d.Request.ID, i)
			}
		}
	}
}

func TestRoundRobinBinds(t *testing.T) {
	w := boundWorld(t)
	p := &roundRobin{}
	for i := range 4 {
		p.Arrive(0, Request{ID: i, Fn: 0})
	}
	for range 2 {
		d, ok := p.Next(0, w)
		if !ok {
			t.Fatal("idle GPUs get nothing")
		}
		w.apply(d)
	}
	if _, ok := p.Next(0, w); ok || p.local[0].len() != 1 || p.local[1].len() != 1 {
		t.Errorf("want one request bound to each busy GPU, got %d and %d", p.local[0].len(), p.local[1].len())
	}
}

func TestRRO3TakesTheHitFirst(t *testing.T) {
	w := newWorld(t, 1, 1, 1, []float64{1, 1})
	w.held[0][1] = 0
	p := &roundRobin{outOfOrder: true}
	p.Arrive(0, Request{ID: 0, Fn: 0})
	p.Arrive(0, Request{ID: 1, Fn: 1})
	if d, _ := p.Next(0, w); d.Request.ID != 1 {
		t.Errorf("took request %d, want the hit", d.Request.ID)
	}
}

func TestScaleOut(t *testing.T) {
	w := newWorld(t, 2, 100, 1, []float64{1})
	p := &scaleOut{most: 2}
	var got []int
	for i := range 6 {
		p.Arrive(0, Request{ID: i, Fn: 0})
		d, _ := p.Next(0, w)
		w.apply(d)
		got = append(got, d.GPU)
	}
	// Fill the first, then the second, then spread by load.
	if want := []int{0, 0, 1, 1, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("GPUs %v, want %v", got, want)
	}
}

func TestRRC(t *testing.T) {
	for _, c := range []struct {
		n, m int
		want float64
	}{{0, 0, 0}, {100, 100, -100}, {100, 98, 0}, {100, 97, 50}, {50, 0, 2450}} {
		if got := rrc(0.98, c.n, c.m); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("RRC of %d in %d is %g, want %g", c.m, c.n, got, c.want)
		}
	}
	// Check the meaning: after that many more requests in time, the share is met.
	r := int(math.Round(rrc(0.98, 100, 97)))
	if share := float64(97+r) / float64(100+r); math.Abs(share-0.98) > 1e-9 {
		t.Errorf("after %d more in time the share is %g", r, share)
	}
}

func TestSplit(t *testing.T) {
	rrc := []float64{10, -5, 30, 0, 60}
	for _, c := range []struct {
		alpha float64
		want  string
	}{{1, "11111"}, {0.99, "11110"}, {0.4, "11110"}, {0.39, "11010"}, {0.05, "01010"}} {
		got := ""
		for _, h := range split(rrc, c.alpha) {
			got += map[bool]string{true: "1", false: "0"}[h]
		}
		if got != c.want {
			t.Errorf("alpha %g: high group %s, want %s", c.alpha, got, c.want)
		}
	}
}

func TestAlphaTuner(t *testing.T) {
	a := alphaTuner{alpha: 1, step: 2, threshold: 0.04, least: 0.2}
	for i, c := range []struct{ ratio, want float64 }{{0.9, 1}, {0.8, 0.5}, {0.79, 0.5}, {0.5, 0.25}, {0.4, 0.2}, {0.6, 0.4}, {0.7, 0.8}, {0.8, 1}} {
		a.observe(c.ratio)
		if a.alpha != c.want {
			t.Errorf("step %d: alpha %g, want %g", i, a.alpha, c.want)
		}
	}
}

// TestTorporGroups: the high group goes first, nearest to missing its target first; the low group nearest to reaching it.
func TestTorporGroups(t *testing.T) {
	p := newTorpor([]float64{1, 1, 1, 1}, Topology{})
	copy(p.key, []float64{-5, -1, 30, 10})
	copy(p.high, []bool{true, true, false, false})
	w := newWorld(t, 1, 1, 4, []float64{1, 1, 1, 1})
	for fn := range 4 {
		p.Arrive(0, Request{ID: fn, Fn: fn})
	}
	var got []int
	for range 4 {
		d, ok := p.Next(0, w)
		if !ok {
			t.Fatal("an idle GPU gets nothing")
		}
		got = append(got, d.Request.Fn)
	}
	if want := []int{1, 0, 3, 2}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// busyLink is a world with traffic on the GPUs' host links.
type busyLink struct {
	*world
	traffic []Traffic
}

func (b busyLink) Traffic(g int) Traffic { return b.traffic[g] }

func TestTorporPlacement(t *testing.T) {
	top := Topology{Neighbour: []int{1, 0, 3, 2}, NVLink: [][]float64{{0, 1, 1, 2}, {1, 0, 2, 1}, {1, 2, 0, 2}, {2, 1, 2, 0}}}
	for _, c := range []struct {
		name      string
		holders   []int
		busy      []int
		traffic   []Traffic
		gpu, peer int
	}{
		{"an idle holder", []int{2}, nil, []Traffic{0, 0, 0, 0}, 2, Anywhere},
		{"the fastest pair", []int{0}, []int{0}, []Traffic{0, 0, 0, 0}, 3, 0},
		{"the only pair", []int{0}, []int{0, 2, 3}, []Traffic{0, 0, 0, 0}, 1, 0},
		{"a quiet neighbour", nil, nil, []Traffic{Heavy, Heavy, Quiet, Heavy}, 3, Anywhere},
		{"a light neighbour", nil, nil, []Traffic{Heavy, Heavy, Heavy, Light}, 2, Anywhere},
	} {
		w := newWorld(t, 4, 1, 4, []float64{1, 1})
		for _, g := range c.holders {
			w.held[g][0] = 0
		}
		for _, g := range c.busy {
			w.running[g][99] = running{fn: 1, end: 9}
		}
		p := newTorpor([]float64{1, 1}, top)
		p.Arrive(0, Request{ID: 0, Fn: 0})
		d, ok := p.Next(0, busyLink{w, c.traffic})
		if !ok || d.GPU != c.gpu || d.Peer != c.peer {
			t.Errorf("%s: %+v, want GPU %d from %d", c.name, d, c.gpu, c.peer)
		}
	}
}

func TestEvictors(t *testing.T) {
	m := newMQFQ(5, 2, 10, 2, 0, nil)
	for fn := range 5 {
		m.flows[fn].state = active
		m.flows[fn].fifo.push(Request{Fn: fn})
	}
	m.flows[3].fifo.pop()
	m.flows[3].state = inactive
	idle := []Resident{
		{Fn: 0, LastUsed: 1, Anywhere: 9, Replicas: 1, Heavy: true},
		{Fn: 1, LastUsed: 4, Anywhere: 4, Replicas: 1},
		{Fn: 2, LastUsed: 3, Anywhere: 8, Replicas: 2, Heavy: true},
		{Fn: 3, LastUsed: 5, Anywhere: 5, Replicas: 1, Heavy: true},
	}
	for _, c := range []struct {
		name string
		e    Evictor
		want int
	}{{"lru", LRU{}, 0}, {"global", LRU{Global: true}, 1}, {"heavy-light", HeavyLight{}, 2}, {"sticky", Sticky{m.Active}, 3}} {
		if got := c.e.Victim(100, idle); got != c.want {
			t.Errorf("%s evicts %d, want %d", c.name, got, c.want)
		}
	}
	only := idle[:1]
	if got := (HeavyLight{}).Victim(0, only); got != 0 {
		t.Errorf("heavy-light keeps the only candidate: %d", got)
	}
}

func TestCostStart(t *testing.T) {
	c := Cost{Native: 5, Restore: 2, Fetch: 1}
	for at, want := range map[Locality]float64{Local: 2, Remote: 3, Absent: 5} {
		if got := c.Start(at); got != want {
			t.Errorf("start at locality %d is %g, want %g", at, got, want)
		}
	}
	c.Fetch = 4
	if got := c.Start(Remote); got != 5 {
		t.Errorf("a fetch that does not pay: %g, want the native 5", got)
	}
}

func TestNewRefuses(t *testing.T) {
	minus := -1.0
	limit := -1
	for _, c := range []struct {
		name, want string
		p          Params
	}{
		{"nonsense", "unknown name", Params{Functions: 1}},
		{"mqfq", "at least one function", Params{}},
		{"mqfq", "t must not be negative", Params{Functions: 1, T: &minus}},
		{"mqfq", "alpha", Params{Functions: 1, Alpha: &minus}},
		{"mqfq", "share", Params{Functions: 1, Limit: 2}},
		{"mqfq", "weights", Params{Functions: 1, Weights: []float64{0}}},
		{"lalbo3", "o3_limit", Params{Functions: 1, O3Limit: &limit}},
		{"torpor", "deadline", Params{Functions: 1}},
	} {
		if _, err := New(c.name, c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}
