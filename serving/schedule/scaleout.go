package schedule

// scaleOut is the rule of Medusa's own evaluation. It fills a worker up to most requests, then starts one on an empty GPU. If no
// GPU is empty, it overloads the worker with the fewest requests. Requests bind on arrival and wait at their worker.
type scaleOut struct {
	most  int
	queue fifo
}

// Queued is the number of waiting requests.
func (p *scaleOut) Queued() int { return p.queue.len() }

// Arrive queues r.
func (p *scaleOut) Arrive(_ float64, r Request) { p.queue.push(r) }

// Cancel implements [Policy].
func (p *scaleOut) Cancel(r Request) bool { return p.queue.cancel(r.ID) >= 0 }

// Next binds the oldest request.
func (p *scaleOut) Next(_ float64, c Cluster) (Decision, bool) {
	if p.queue.len() == 0 {
		return Decision{}, false
	}
	fn := p.queue.front().Fn
	empty, least := -1, -1
	for g := range c.GPUs() {
		if !c.Accepts(g, fn) {
			continue
		}
		if !c.Holds(g, fn) {
			if empty < 0 {
				empty = g
			}
			continue
		}
		if c.InFlight(g) < p.most {
			return p.bind(g), true
		}
		if least < 0 || c.InFlight(g) < c.InFlight(least) {
			least = g
		}
	}
	if empty >= 0 {
		return p.bind(empty), true
	}
	if least >= 0 {
		return p.bind(least), true
	}
	return Decision{}, false
}

func (p *scaleOut) bind(g int) Decision {
	return Decision{Request: p.queue.pop(), GPU: g, Peer: Anywhere}
}

// Done has no effect: the cluster counts the requests in flight.
func (p *scaleOut) Done(float64, Completion) {}

// Lost has no effect, as Done.
func (p *scaleOut) Lost(float64, Request, int) {}
