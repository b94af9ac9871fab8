package schedule

// usage counts dispatches per GPU; the thesis breaks ties towards the least frequently used GPU.
type usage []int

func (u *usage) init(c Cluster) {
	if *u == nil {
		*u = make(usage, c.GPUs())
	}
}

// roundRobin binds each request on arrival to the least frequently used GPU, busy or not (thesis §4.1). With outOfOrder a
// GPU that falls idle first serves a request whose model it holds (RRO3, §4.3).
type roundRobin struct {
	outOfOrder bool
	global     fifo
	local      []fifo
	left       []bool // GPUs that were taken away
	used       usage
	queued     int
}

// Queued is the number of waiting requests.
func (p *roundRobin) Queued() int { return p.queued }

// Arrive queues r.
func (p *roundRobin) Arrive(_ float64, r Request) {
	p.global.push(r)
	p.queued++
}

// Cancel implements [Policy].
func (p *roundRobin) Cancel(r Request) bool {
	found := p.global.cancel(r.ID) >= 0
	for g := range p.local {
		found = found || p.local[g].cancel(r.ID) >= 0
	}
	if found {
		p.queued--
	}
	return found
}

// Next is Algorithms 4 and 6.
func (p *roundRobin) Next(_ float64, c Cluster) (Decision, bool) {
	p.used.init(c)
	if p.local == nil {
		p.local = make([]fifo, c.GPUs())
	}
	for p.global.len() > 0 {
		g := -1
		for h := range p.used {
			if (h >= len(p.left) || !p.left[h]) && (g < 0 || p.used[h] < p.used[g]) {
				g = h
			}
		}
		if g < 0 {
			return Decision{}, false // no GPU is left
		}
		p.used[g]++
		p.local[g].push(p.global.pop())
	}
	for g := range p.local {
		q := &p.local[g]
		if q.len() == 0 {
			continue
		}
		i := 0
		for j := 0; p.outOfOrder && j < q.len(); j++ {
			if fn := q.at(j).Fn; c.Holds(g, fn) && c.Accepts(g, fn) {
				i = j
				break
			}
		}
		if c.Accepts(g, q.at(i).Fn) {
			p.queued--
			return Decision{Request: q.remove(i), GPU: g, Peer: Anywhere}, true
		}
	}
	return Decision{}, false
}

// Done has no effect: round robin keeps no account of completions.
func (p *roundRobin) Done(float64, Completion) {}

// Lost has no effect, as Done.
func (p *roundRobin) Lost(float64, Request, int) {}

// Leave implements [Binder].
func (p *roundRobin) Leave(gpu int) {
	for len(p.left) <= gpu {
		p.left = append(p.left, false)
	}
	p.left[gpu] = true
	if gpu >= len(p.local) {
		return // no request was bound yet
	}
	waiting := p.global
	p.global = fifo{}
	for p.local[gpu].len() > 0 {
		p.global.push(p.local[gpu].pop())
	}
	for waiting.len() > 0 {
		p.global.push(waiting.pop())
	}
}

// Return implements [Binder].
func (p *roundRobin) Return(gpu int) { p.left[gpu] = false }

// loadBalance sends the oldest request to the least frequently used idle GPU (thesis §4.2).
type loadBalance struct {
	queue fifo
	used  usage
}

// Queued is the number of waiting requests.
func (p *loadBalance) Queued() int { return p.queue.len() }

// Arrive queues r.
func (p *loadBalance) Arrive(_ float64, r Request) { p.queue.push(r) }

// Cancel implements [Policy].
func (p *loadBalance) Cancel(r Request) bool { return p.queue.cancel(r.ID) >= 0 }

// Next is Algorithm 5.
func (p *loadBalance) Next(_ float64, c Cluster) (Decision, bool) {
	p.used.init(c)
	if p.queue.len() == 0 {
		return Decision{}, false
	}
	best := -1
	for g := range p.used {
		if c.Accepts(g, p.queue.front().Fn) && (best < 0 || p.used[g] < p.used[best]) {
			best = g
		}
	}
	if best < 0 {
		return Decision{}, false
	}
	p.used[best]++
	return Decision{Request: p.queue.pop(), GPU: best, Peer: Anywhere}, true
}

// Done has no effect: the cluster knows which GPUs are idle.
func (p *loadBalance) Done(float64, Completion) {}

// Lost has no effect, as Done.
func (p *loadBalance) Lost(float64, Request, int) {}
