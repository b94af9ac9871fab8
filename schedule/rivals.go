package schedule

// FCFS runs requests in arrival order, at most d on each GPU (MQFQ §6).
type FCFS struct {
	queue  fifo
	tokens tokens
}

// NewFCFS makes the policy.
func NewFCFS(d int) *FCFS { return &FCFS{tokens: tokens{d: d}} }

// Name is "fcfs".
func (p *FCFS) Name() string { return "fcfs" }

// Queued is the number of waiting requests.
func (p *FCFS) Queued() int { return p.queue.len() }

// Arrive queues r.
func (p *FCFS) Arrive(_ float64, r Request) { p.queue.push(r) }

// Next takes the oldest request, and waits with it while no GPU accepts it.
func (p *FCFS) Next(now float64, c Cluster) (Decision, bool) {
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
func (p *FCFS) Done(_ float64, d Completion) { p.tokens.release(d.GPU) }

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

func (p *perFunction) pop(fn, gpu int) Decision {
	p.queued--
	p.tokens.take(gpu)
	return Decision{Request: p.queues[fn].pop(), GPU: gpu, Peer: Anywhere}
}

// Batch drains the whole queue of the function that holds the oldest request, then turns to the next (MQFQ §6).
type Batch struct {
	perFunction
	arrivals fifo // the order of arrivals, with entries already served skipped lazily
	served   map[int]bool
	current  int
	left     int // requests of current that were waiting when its turn began
}

// NewBatch makes the policy for n functions.
func NewBatch(n, d int) *Batch {
	return &Batch{perFunction: perFunction{queues: make([]fifo, n), tokens: tokens{d: d}}, served: map[int]bool{}}
}

// Name is "batch".
func (p *Batch) Name() string { return "batch" }

// Arrive queues r.
func (p *Batch) Arrive(now float64, r Request) {
	p.perFunction.Arrive(now, r)
	p.arrivals.push(r)
}

// Next continues the current batch, which ends with the last request that was waiting when it began: a function whose
// requests keep coming would otherwise never let go.
func (p *Batch) Next(now float64, c Cluster) (Decision, bool) {
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
func (p *Batch) Done(_ float64, d Completion) { p.tokens.release(d.GPU) }

// SJF is shortest job first with a deficit counter that limits how long a function can be passed over, as in Paella.
type SJF struct {
	perFunction
	Threshold float64 // deficit from which a function goes first; 25 in the MQFQ authors' implementation
	deficit   []float64
	tau       []mean
}

// NewSJF makes the policy for n functions.
func NewSJF(n, d int) *SJF {
	return &SJF{
		perFunction: perFunction{queues: make([]fifo, n), tokens: tokens{d: d}},
		Threshold:   25, deficit: make([]float64, n), tau: make([]mean, n),
	}
}

// Name is "sjf".
func (p *SJF) Name() string { return "sjf" }

// Next takes the first function whose deficit has reached the threshold, else the one with the least service time.
func (p *SJF) Next(now float64, c Cluster) (Decision, bool) {
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
		case p.deficit[i] >= p.Threshold:
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
func (p *SJF) Done(_ float64, d Completion) {
	p.tokens.release(d.GPU)
	p.tau[d.Request.Fn].add(d.Service)
}
