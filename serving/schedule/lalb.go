package schedule

import "slices"

// lalb is locality-aware load balancing (thesis §4.4, Algorithms 7 and 8): an idle GPU first takes a waiting request whose
// model it holds. With limit > 0 it is LALBO3: a request may be passed over limit times before it is placed regardless.
type lalb struct {
	limit int

	queue  []visited
	local  []fifo
	used   usage
	order  []int // GPUs by use, then by number
	round  []int // idle GPUs that this round has not visited yet
	queued int
	fresh  bool // an arrival or completion since the round began
}

type visited struct {
	Request
	visits int
}

// Queued is the number of waiting requests, those bound to a busy GPU included.
func (p *lalb) Queued() int { return p.queued }

// Arrive queues r.
func (p *lalb) Arrive(_ float64, r Request) {
	p.queue = append(p.queue, visited{Request: r})
	p.queued++
	p.fresh = true
}

// Cancel implements [Policy]. A request that was bound to a GPU may have kept others away from it, so a new round starts.
func (p *lalb) Cancel(r Request) bool {
	if i := slices.IndexFunc(p.queue, func(v visited) bool { return v.ID == r.ID }); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
		p.queued--
		return true
	}
	for g := range p.local {
		if p.local[g].cancel(r.ID) >= 0 {
			p.queued--
			p.fresh = true
			return true
		}
	}
	return false
}

// Done starts a new round over the idle GPUs.
func (p *lalb) Done(float64, Completion) { p.fresh = true }

// Lost starts a new round over the idle GPUs.
func (p *lalb) Lost(float64, Request, int) { p.fresh = true }

// Again implements [Rounds].
func (p *lalb) Again() { p.fresh = true }

// Leave implements [Binder]. Bound requests become the oldest of the queue again, and their counts of being passed over start at
// 0.
func (p *lalb) Leave(gpu int) {
	if gpu >= len(p.local) {
		return // no decision was made yet
	}
	q := &p.local[gpu]
	freed := make([]visited, q.len())
	for i := range freed {
		freed[i] = visited{Request: q.pop()}
	}
	p.queue = append(freed, p.queue...)
	p.fresh = true
}

// Return implements [Binder].
func (p *lalb) Return(int) { p.fresh = true }

// Next continues the round. As in the thesis, it visits each GPU once after each arrival and completion. Otherwise the visit
// counts, which stand for waiting, would grow too fast.
func (p *lalb) Next(_ float64, c Cluster) (Decision, bool) {
	if p.queued == 0 {
		return Decision{}, false
	}
	p.used.init(c)
	if p.local == nil {
		p.local = make([]fifo, c.GPUs())
	}
	for len(p.order) < len(p.used) {
		p.order = append(p.order, len(p.order))
	}
	if p.fresh {
		p.fresh = false
		p.round = append(p.round[:0], p.order...)
	}
	for len(p.round) > 0 {
		g := p.round[0]
		if d, ok := p.visit(c, g); ok {
			p.count(d.GPU)
			p.queued--
			return d, true
		}
		p.round = p.round[1:]
	}
	return Decision{}, false
}

// count counts a dispatch to g and moves g to its place in the order. A sort in each round would take most of the time.
func (p *lalb) count(g int) {
	i, _ := slices.BinarySearchFunc(p.order, g, p.compare)
	p.used[g]++
	// mutant: the order of GPUs
	for ; i+1 < len(p.order) && p.compare(p.order[i+1], g) < 0; i++ {
		p.order[i], p.order[i+1] = p.order[i+1], g
	}
}

func (p *lalb) compare(a, b int) int {
	if d := p.used[a] - p.used[b]; d != 0 {
		return d
	}
	return a - b
}

// open reports whether g might still take a waiting request.
func (p *lalb) open(c Cluster, g int) bool {
	if q := &p.local[g]; q.len() > 0 && c.Accepts(g, q.front().Fn) {
		return true
	}
	for i := range p.queue {
		if c.Accepts(g, p.queue[i].Fn) {
			return true
		}
	}
	return false
}

// visit is Algorithm 7 for one idle GPU.
func (p *lalb) visit(c Cluster, g int) (Decision, bool) {
	if q := &p.local[g]; q.len() > 0 {
		if !c.Accepts(g, q.front().Fn) {
			return Decision{}, false
		}
		return Decision{Request: q.pop(), GPU: g, Peer: Anywhere}, true
	}
	if !p.open(c, g) {
		return Decision{}, false
	}
	for i := 0; i < len(p.queue); i++ {
		r := &p.queue[i]
		if c.Holds(g, r.Fn) && c.Accepts(g, r.Fn) {
			return p.take(i, g), true
		}
		// The comparison is strict: with limit 0 a request can still be passed over once.
		if r.visits <= p.limit {
			r.visits++
			continue
		}
		if d, bound, ok := p.balance(c, g, i); ok {
			return d, true
		} else if bound {
			i--
		}
	}
	for i := 0; i < len(p.queue); i++ {
		if d, bound, ok := p.balance(c, g, i); ok {
			return d, true
		} else if bound {
			i--
		}
	}
	return Decision{}, false
}

// balance is Algorithm 8: place the i-th request although g does not hold its model. It may go to an idle GPU that does, be bound
// to a busy one that will finish before g could load the model, or be a miss on g. The thesis prints the miss inside the loop
// over busy GPUs, which would decide on the first of them. Reading taken: the one that finishes first.
func (p *lalb) balance(c Cluster, g, i int) (d Decision, bound, ok bool) {
	fn := p.queue[i].Fn
	busy, wait := -1, 0.0
	for h := range p.used {
		if h == g || !c.Holds(h, fn) {
			continue
		}
		if c.Accepts(h, fn) && p.local[h].len() == 0 {
			return p.take(i, h), false, true
		}
		if t := p.finish(c, h); busy < 0 || t < wait {
			busy, wait = h, t
		}
	}
	if busy >= 0 && wait < c.Start(g, fn) {
		p.local[busy].push(p.queue[i].Request)
		p.queue = append(p.queue[:i], p.queue[i+1:]...)
		return Decision{}, true, false
	}
	if to := p.cheapest(c, g, fn); to >= 0 {
		return p.take(i, to), false, true
	}
	return Decision{}, false, false
}

// cheapest returns the idle GPU with the lowest cost of a miss: g, unless another is nearer to the weights or the artifact. In
// the thesis all costs are equal, and it is always g. It is -1 if g does not accept fn.
func (p *lalb) cheapest(c Cluster, g, fn int) int {
	if !c.Accepts(g, fn) {
		return -1
	}
	best, cost := g, c.Start(g, fn)
	for h := range p.used {
		if h != g && p.local[h].len() == 0 && c.Accepts(h, fn) {
			if t := c.Start(h, fn); t < cost {
				best, cost = h, t
			}
		}
	}
	return best
}

// finish is the estimated finish time of Algorithm 2: the end of the requests that run on h, and of those bound to it.
func (p *lalb) finish(c Cluster, h int) float64 {
	t := c.FinishTime(h)
	for i := range p.local[h].len() {
		t += c.Service(p.local[h].at(i).Fn)
	}
	return t
}

func (p *lalb) take(i, g int) Decision {
	r := p.queue[i].Request
	p.queue = append(p.queue[:i], p.queue[i+1:]...)
	return Decision{Request: r, GPU: g, Peer: Anywhere}
}
