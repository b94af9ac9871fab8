package schedule

// usage counts dispatches per GPU; the thesis breaks ties towards the least frequently used GPU.
type usage []int

func (u *usage) init(c Cluster) {
	if *u == nil {
		*u = make(usage, c.GPUs())
	}
}

// RoundRobin binds each request on arrival to the least frequently used GPU, busy or not (thesis §4.1). With OutOfOrder a
// GPU that falls idle first serves a request whose model it holds (RRO3, §4.3).
type RoundRobin struct {
	OutOfOrder bool
	global     fifo
	local      []fifo
	used       usage
	queued     int
}

// Name is "rr" or "rro3".
func (p *RoundRobin) Name() string {
	if p.OutOfOrder {
		return "rro3"
	}
	return "rr"
}

// Queued is the number of waiting requests.
func (p *RoundRobin) Queued() int { return p.queued }

// Arrive queues r.
func (p *RoundRobin) Arrive(_ float64, r Request) {
	p.global.push(r)
	p.queued++
}

// Next is Algorithms 4 and 6.
func (p *RoundRobin) Next(_ float64, c Cluster) (Decision, bool) {
	p.used.init(c)
	if p.local == nil {
		p.local = make([]fifo, c.GPUs())
	}
	for p.global.len() > 0 {
		g := 0
		for h := range p.used {
			if p.used[h] < p.used[g] {
				g = h
			}
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
		for j := 0; p.OutOfOrder && j < q.len(); j++ {
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

// Done does nothing: round robin keeps no account of completions.
func (p *RoundRobin) Done(float64, Completion) {}

// LoadBalance sends the oldest request to the least frequently used idle GPU (thesis §4.2).
type LoadBalance struct {
	queue fifo
	used  usage
}

// Name is "lb".
func (p *LoadBalance) Name() string { return "lb" }

// Queued is the number of waiting requests.
func (p *LoadBalance) Queued() int { return p.queue.len() }

// Arrive queues r.
func (p *LoadBalance) Arrive(_ float64, r Request) { p.queue.push(r) }

// Next is Algorithm 5.
func (p *LoadBalance) Next(_ float64, c Cluster) (Decision, bool) {
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

// Done does nothing: the idle test is the cluster's.
func (p *LoadBalance) Done(float64, Completion) {}
