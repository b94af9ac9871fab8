package schedule

import (
	"math/rand/v2"
	"slices"
)

// Topology is the wiring of a node's GPUs.
type Topology struct {
	// Neighbour gives the GPU behind the same PCIe switch, -1 for none.
	Neighbour []int `json:"neighbour,omitempty"`
	// NVLink gives the relative bandwidth between two GPUs, 0 for no link.
	NVLink [][]float64 `json:"nvlink,omitempty"`
}

// torpor is the SLO-aware scheduler of Torpor §5. It orders requests by required request count, in two groups, and binds GPUs
// late by Algorithm 1. One request of a function runs at a time.
type torpor struct {
	percentile float64   // share of requests that must meet the deadline, 0.98 in the paper
	deadline   []float64 // seconds, per function
	topology   Topology
	tuner      alphaTuner
	regroup    float64 // seconds between regroupings, 2 in the authors' router
	retune     float64 // seconds between changes of alpha, 40 there

	fifo   bool       // ablation: serve in arrival order
	random *rand.Rand // ablation: place at random, always from host memory; nil for Algorithm 1

	queues    []fifo
	stamps    map[int]int
	clock     int
	running   []bool
	waiting   []int // functions with a request that may start, in no order
	served    []int
	met       []int
	high      []bool
	key       []float64
	grouped   float64
	tuned     float64
	queued    int
	idle      []int
	anyServed bool
}

// newTorpor makes the policy with the paper's parameters for functions with the given deadlines.
func newTorpor(deadline []float64, topology Topology) *torpor {
	n := len(deadline)
	p := &torpor{
		percentile: 0.98, deadline: deadline, topology: topology,
		tuner:   alphaTuner{alpha: 1, step: 2, threshold: 0.04, least: 1.0 / 64},
		regroup: 2, retune: 40,
		queues: make([]fifo, n), stamps: map[int]int{}, running: make([]bool, n), served: make([]int, n), met: make([]int, n),
		high: make([]bool, n), key: make([]float64, n),
	}
	for i := range p.high {
		p.high[i] = true // a new function starts high, with key 0
	}
	return p
}

// Queued is the number of waiting requests.
func (p *torpor) Queued() int { return p.queued }

// Arrive queues r.
func (p *torpor) Arrive(_ float64, r Request) {
	p.queues[r.Fn].push(r)
	p.clock++
	p.stamps[r.ID] = p.clock
	p.queued++
	if p.queues[r.Fn].len() == 1 && !p.running[r.Fn] {
		p.waiting = append(p.waiting, r.Fn)
	}
}

// Cancel implements [Policy]. The request does not count in its function's share.
func (p *torpor) Cancel(r Request) bool {
	q := &p.queues[r.Fn]
	if q.cancel(r.ID) < 0 {
		return false
	}
	delete(p.stamps, r.ID)
	p.queued--
	if q.len() == 0 {
		p.waiting = slices.DeleteFunc(p.waiting, func(fn int) bool { return fn == r.Fn })
	}
	return true
}

// Done counts the request as meeting or missing its deadline.
func (p *torpor) Done(_ float64, d Completion) {
	fn := d.Request.Fn
	p.running[fn] = false
	if p.queues[fn].len() > 0 {
		p.waiting = append(p.waiting, fn)
	}
	p.served[fn]++
	deadline := p.deadline[fn]
	// mutant: a request's own deadline
	if d.Deadline > 0 {
		deadline = d.Deadline
	}
	if d.Latency <= deadline {
		p.met[fn]++
	}
	p.anyServed = true
}

// Lost lets the function run again. The request does not count in its function's share.
func (p *torpor) Lost(_ float64, r Request, _ int) {
	p.running[r.Fn] = false
	if p.queues[r.Fn].len() > 0 {
		p.waiting = append(p.waiting, r.Fn)
	}
}

// Next serves the high group before the low one. In the high group it takes the function nearest to missing its target, in the
// low group the one nearest to reaching it (§5.1).
func (p *torpor) Next(now float64, c Cluster) (Decision, bool) {
	if p.queued == 0 {
		return Decision{}, false
	}
	p.refresh(now)
	best, at := -1, -1
	for k, i := range p.waiting {
		if (best < 0 || p.before(i, best)) && accepted(c, i) {
			best, at = i, k
		}
	}
	if best < 0 {
		return Decision{}, false
	}
	p.waiting[at] = p.waiting[len(p.waiting)-1]
	p.waiting = p.waiting[:len(p.waiting)-1]
	g, peer := p.place(c, best)
	r := p.queues[best].pop()
	delete(p.stamps, r.ID)
	p.running[best] = true
	p.queued--
	return Decision{Request: r, GPU: g, Peer: peer}, true
}

func (p *torpor) before(i, j int) bool {
	if !p.fifo {
		if p.high[i] != p.high[j] {
			return p.high[i]
		}
		if p.key[i] != p.key[j] {
			return (p.key[i] > p.key[j]) == p.high[i]
		}
	}
	return p.stamps[p.queues[i].front().ID] < p.stamps[p.queues[j].front().ID]
}

// refresh regroups the functions and tunes alpha at the end of their periods.
func (p *torpor) refresh(now float64) {
	if now-p.grouped < p.regroup || !p.anyServed {
		return
	}
	p.grouped = now
	complying, seen := 0, 0
	for i := range p.key {
		p.key[i] = rrc(p.percentile, p.served[i], p.met[i])
		if p.served[i] > 0 {
			seen++
			if p.key[i] <= 0 {
				complying++
			}
		}
	}
	if now-p.tuned >= p.retune {
		p.tuned = now
		p.tuner.observe(float64(complying) / float64(seen))
	}
	p.high = split(p.key, p.tuner.alpha)
}

// accepted reports whether any GPU accepts fn. If a function cannot be placed, because all holders of victims are locked, it
// must not hold up the others.
func accepted(c Cluster, fn int) bool {
	for g := range c.GPUs() {
		if c.Accepts(g, fn) {
			return true
		}
	}
	return false
}

// place is Algorithm 1 over the GPUs that accept fn. There is at least one.
func (p *torpor) place(c Cluster, fn int) (gpu, peer int) {
	p.idle = p.idle[:0]
	held := false
	for g := range c.GPUs() {
		if c.Accepts(g, fn) {
			if c.Holds(g, fn) {
				return g, Anywhere // no swap needed
			}
			p.idle = append(p.idle, g)
		}
		held = held || c.Holds(g, fn)
	}
	if p.random != nil {
		return p.idle[p.random.IntN(len(p.idle))], Anywhere
	}
	if held {
		if g, m := p.fastestPair(c, fn); g >= 0 {
			return g, m
		}
	}
	// The branch that copies from the host: take the idle GPU whose neighbour behind the PCIe switch disturbs least.
	best := p.idle[0]
	for _, g := range p.idle[1:] {
		if p.beside(c, g) < p.beside(c, best) {
			best = g
		}
	}
	return best, Anywhere
}

// fastestPair returns the idle GPU and the holder of fn with the most bandwidth between them, or -1 if no link joins any pair.
func (p *torpor) fastestPair(c Cluster, fn int) (gpu, holder int) {
	gpu, holder = -1, -1
	most := 0.0
	for _, g := range p.idle {
		for m := range c.GPUs() {
			if m != g && c.Holds(m, fn) && g < len(p.topology.NVLink) && p.topology.NVLink[g][m] > most {
				gpu, holder, most = g, m, p.topology.NVLink[g][m]
			}
		}
	}
	return gpu, holder
}

func (p *torpor) beside(c Cluster, g int) Traffic {
	if g >= len(p.topology.Neighbour) || p.topology.Neighbour[g] < 0 {
		return Quiet
	}
	return c.Traffic(p.topology.Neighbour[g])
}
