package schedule

// fcfs runs requests in arrival order, at most d on each GPU (MQFQ §6).
type fcfs struct {
	queue  fifo
	tokens tokens
}

// newFCFS makes the policy.
func newFCFS(d int) *fcfs { return &fcfs{tokens: tokens{d: d}} }

// Queued is the number of waiting requests.
func (p *fcfs) Queued() int { return p.queue.len() }

// Arrive queues r.
func (p *fcfs) Arrive(_ float64, r Request) { p.queue.push(r) }

// Cancel implements [Policy].
func (p *fcfs) Cancel(r Request) bool { return p.queue.cancel(r.ID) >= 0 }

// Next takes the oldest request, and waits with it as long as no GPU accepts it.
func (p *fcfs) Next(now float64, c Cluster) (Decision, bool) {
	p.tokens.poll(now, c)
	if p.queue.len() == 0 {
		return Decision{}, false
	}
	g, ok := p.tokens.place(c, p.queue.front().Fn)
	if !ok {
		return Decision{}, false
	}
	p.tokens.take(g)
	return Decision{Request: p.queue.pop(), GPU: g, Peer: Anywhere}, true
}

// Done returns the token.
func (p *fcfs) Done(_ float64, d Completion) { p.tokens.release(d.GPU) }

// Lost returns the token.
func (p *fcfs) Lost(_ float64, _ Request, gpu int) { p.tokens.release(gpu) }

// perFunction is the part that policies with a queue per function share.
type perFunction struct {
	queues []fifo
	queued int
	tokens tokens
}

func (p *perFunction) Queued() int { return p.queued }

func (p *perFunction) Arrive(_ float64, r Request) {
	p.queues[r.Fn].push(r)
	p.queued++
}

func (p *perFunction) Cancel(r Request) bool {
	if p.queues[r.Fn].cancel(r.ID) < 0 {
		return false
	}
	p.queued--
	return true
}

// Lost returns the token.
func (p *perFunction) Lost(_ float64, _ Request, gpu int) { p.tokens.release(gpu) }

func (p *perFunction) pop(fn, gpu int) Decision {
	p.queued--
	p.tokens.take(gpu)
	return Decision{Request: p.queues[fn].pop(), GPU: gpu, Peer: Anywhere}
}

// batch serves the whole queue of the function with the oldest request, then turns to the next function (MQFQ §6).
type batch struct {
	perFunction
	arrivals fifo // the order of arrivals; entries that were served are skipped later
	served   map[int]bool
	current  int
	left     int // requests of current that were waiting when its turn began
}

// newBatch makes the policy for n functions.
func newBatch(n, d int) *batch {
	return &batch{perFunction: perFunction{queues: make([]fifo, n), tokens: tokens{d: d}}, served: map[int]bool{}}
}

// Arrive queues r.
func (p *batch) Arrive(now float64, r Request) {
	p.perFunction.Arrive(now, r)
	p.arrivals.push(r)
}

// Cancel implements [Policy]. A request of the current batch makes it shorter.
func (p *batch) Cancel(r Request) bool {
	at := p.queues[r.Fn].cancel(r.ID)
	if at < 0 {
		return false
	}
	p.queued--
	p.arrivals.cancel(r.ID)
	if r.Fn == p.current && at < p.left {
		p.left--
	}
	return true
}

// Next continues the current batch. The batch ends with the last request that was waiting when it began. Otherwise a function
// with a steady stream of requests would never give way.
func (p *batch) Next(now float64, c Cluster) (Decision, bool) {
	p.tokens.poll(now, c)
	if p.queued == 0 {
		return Decision{}, false
	}
	current := p.current
	if p.left == 0 {
		for p.served[p.arrivals.front().ID] {
			delete(p.served, p.arrivals.pop().ID)
		}
		current = p.arrivals.front().Fn
	}
	g, ok := p.tokens.place(c, current)
	if !ok {
		return Decision{}, false
	}
	if p.left == 0 {
		p.current, p.left = current, p.queues[current].len()
	}
	p.left--
	d := p.pop(p.current, g)
	p.served[d.Request.ID] = true
	return d, true
}

// Done returns the token.
func (p *batch) Done(_ float64, d Completion) { p.tokens.release(d.GPU) }

// sjf is shortest job first with a deficit counter that limits how long a function can be passed over, as in Paella.
type sjf struct {
	perFunction
	threshold float64 // deficit from which a function goes first; 25 in the MQFQ authors' implementation
	deficit   []float64
	tau       []mean
}

// newSJF makes the policy for n functions.
func newSJF(n, d int) *sjf {
	return &sjf{
		perFunction: perFunction{queues: make([]fifo, n), tokens: tokens{d: d}},
		threshold:   25, deficit: make([]float64, n), tau: make([]mean, n),
	}
}

// Next takes the first function whose deficit has reached the threshold, or else the one with the least service time.
func (p *sjf) Next(now float64, c Cluster) (Decision, bool) {
	p.tokens.poll(now, c)
	best, late := -1, false
	waiting := 0
	for i := range p.queues {
		if p.queues[i].len() == 0 {
			continue
		}
		waiting++
		if late {
			continue
		}
		switch {
		case p.deficit[i] >= p.threshold:
			best, late = i, true
		case best < 0 || p.tau[i].value(0) < p.tau[best].value(0):
			best = i
		}
	}
	if best < 0 {
		return Decision{}, false
	}
	g, ok := p.tokens.place(c, best)
	if !ok {
		return Decision{}, false
	}
	share := 1 / float64(waiting)
	for i := range p.queues {
		if p.queues[i].len() > 0 {
			p.deficit[i] += share
		}
	}
	p.deficit[best]--
	return p.pop(best, g), true
}

// Done returns the token and learns the service time.
func (p *sjf) Done(_ float64, d Completion) {
	p.tokens.release(d.GPU)
	p.tau[d.Request.Fn].add(d.Service)
}
