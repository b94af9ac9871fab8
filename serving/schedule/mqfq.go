package schedule

import (
	"math"
	"slices"
)

// queueState is the state of a queue of MQFQ-Sticky (MQFQ §4.1).
type queueState int

// The states. A queue that has just become empty stays Active for its TTL, because the next request is expected soon.
const (
	inactive queueState = iota
	active
	throttled
)

// flow is one function's queue and its accounting.
type flow struct {
	fifo
	vt       float64 // virtual time: service accrued, divided by the weight
	state    queueState
	inFlight int
	lastExec float64
	tau      mean // service time, without cold starts
	iat      mean // time between arrivals
	lastSeen float64
	seen     bool
}

// mean is a running mean.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(x float64) { m.sum += x; m.n++ }

func (m *mean) value(unknown float64) float64 {
	if m.n == 0 {
		return unknown
	}
	return m.sum / float64(m.n)
}

// mqfq is MQFQ-Sticky: start-time fair queueing over functions. A queue may run ahead of the global virtual time by T, so that a
// function runs in batches and finds its worker warm.
type mqfq struct {
	over      float64 // allowed over-run, seconds
	alpha     float64 // TTL = alpha × mean inter-arrival time
	warmFirst bool    // prefer, before all else, queues with a warm free slot (not in the paper)
	unitTau   bool    // advance virtual times by 1 instead of the service time (the paper's ablation)

	tokens  tokens
	flows   []flow
	weights []float64
	global  float64
	queued  int
	order   []int
	woken   []int
}

// newMQFQ makes the policy for n functions with the paper's parameters. limit is the utilisation cap of the dynamic D, or 0 for
// none. Functions beyond the end of weights have weight 1.
func newMQFQ(n, d int, t, alpha, limit float64, weights []float64) *mqfq {
	return &mqfq{over: t, alpha: alpha, tokens: tokens{d: d, limit: limit}, flows: make([]flow, n), weights: weights}
}

// Queued is the number of waiting requests.
func (m *mqfq) Queued() int { return m.queued }

// Arrive queues r. An Inactive queue re-enters at the global virtual time, because idling earns no credit.
func (m *mqfq) Arrive(now float64, r Request) {
	f := &m.flows[r.Fn]
	if f.seen {
		f.iat.add(now - f.lastSeen)
	}
	f.lastSeen, f.seen = now, true
	m.expire(f, now)
	if f.state == inactive {
		f.vt = math.Max(f.vt, m.global)
		f.state = active
		m.woken = append(m.woken, r.Fn)
	}
	f.push(r)
	m.queued++
}

// Cancel implements [Policy]. Virtual time is charged at the dispatch, so there is no charge to give back. A queue that becomes
// empty this way keeps its state for its TTL after its last execution, like any other.
func (m *mqfq) Cancel(r Request) bool {
	if m.flows[r.Fn].cancel(r.ID) < 0 {
		return false
	}
	m.queued--
	return true
}

// Next is Algorithm 1.
func (m *mqfq) Next(now float64, c Cluster) (Decision, bool) {
	m.tokens.poll(now, c)
	if m.queued == 0 {
		return Decision{}, false
	}
	// Line 2 takes the minimum over all queues, Table 2 over active ones. Reading taken: queues with waiting requests, because an
	// empty Active queue would hold the others back without need. The minimum never falls; otherwise a returning queue would gain
	// credit.
	least := math.Inf(1)
	for i := range m.flows {
		if f := &m.flows[i]; f.len() > 0 {
			least = math.Min(least, f.vt)
		}
	}
	m.global = math.Max(m.global, least)
	m.order = m.order[:0]
	for i := range m.flows {
		f := &m.flows[i]
		m.update(f, now)
		if f.state == active && f.len() > 0 {
			m.order = append(m.order, i)
		}
	}
	m.rank(c)
	for _, i := range m.order {
		// The paper stops when the first queue gets no token. With batch slots another queue may still find one.
		if g, ok := m.tokens.place(c, i); ok {
			return m.dispatch(now, i, g), true
		}
	}
	return Decision{}, false
}

// update sets the state. Line 22 prints "throttle if VT − Global_VT < T"; the text of §4.2 "if VT + T ≥ Global_VT". Both would
// throttle the queues that lag. Reading taken: ahead by T or more. With T = 0 the least queue must still run, so the comparison
// is strict then.
func (m *mqfq) update(f *flow, now float64) {
	m.expire(f, now)
	switch ahead := f.vt - m.global; {
	case f.len() == 0 && f.inFlight == 0:
	case ahead >= m.over && ahead > 0:
		f.state = throttled
	default:
		f.state = active
	}
}

// expire ends the anticipation of an empty queue after its TTL.
func (m *mqfq) expire(f *flow, now float64) {
	if f.len() == 0 && f.inFlight == 0 && now-f.lastExec >= m.alpha*f.iat.value(0) {
		f.state = inactive
	}
}

// rank sorts the candidates: fewest in flight first, then longest queue. (§4.2 names the keys in the other order; the stable
// second sort of Algorithm 1 makes in-flight the first key.) With D = 1 only the length counts.
func (m *mqfq) rank(c Cluster) {
	warm := func(i int) bool {
		for g := range m.tokens.running {
			if m.tokens.free(g) && c.Holds(g, i) && c.Accepts(g, i) {
				return true
			}
		}
		return false
	}
	slices.SortStableFunc(m.order, func(i, j int) int {
		a, b := &m.flows[i], &m.flows[j]
		if m.warmFirst {
			if wa, wb := warm(i), warm(j); wa != wb {
				if wa {
					return -1
				}
				return 1
			}
		}
		if m.tokens.d != 1 && a.inFlight != b.inFlight {
			return a.inFlight - b.inFlight
		}
		return b.len() - a.len()
	})
}

func (m *mqfq) dispatch(now float64, i, g int) Decision {
	f := &m.flows[i]
	r := f.pop()
	m.queued--
	m.tokens.take(g)
	f.inFlight++
	f.lastExec = now
	// An unmeasured function counts as T/10, as in the authors' implementation.
	tau := f.tau.value(m.over / 10)
	if m.unitTau {
		tau = 1
	}
	f.vt += tau / m.weight(i)
	return Decision{Request: r, GPU: g, Peer: Anywhere}
}

func (m *mqfq) weight(i int) float64 {
	if i < len(m.weights) {
		return m.weights[i]
	}
	return 1
}

// Done returns the token. tau has service time only. With cold starts in it, a function that starts cold would be charged twice:
// by the wait and by its virtual time.
func (m *mqfq) Done(now float64, d Completion) {
	f := &m.flows[d.Request.Fn]
	m.tokens.release(d.GPU)
	f.inFlight--
	f.lastExec = now
	f.tau.add(d.Service)
}

// Lost returns the token. The time until an engine dies is not a service time.
func (m *mqfq) Lost(now float64, r Request, gpu int) {
	f := &m.flows[r.Fn]
	// mutant: tokens of lost requests
	m.tokens.release(gpu)
	f.inFlight--
	f.lastExec = now
}

// Active implements [Anticipator].
func (m *mqfq) Active(now float64, fn int) bool {
	f := &m.flows[fn]
	m.expire(f, now)
	return f.state == active
}

// Woken implements [Anticipator].
func (m *mqfq) Woken() []int {
	w := m.woken
	m.woken = m.woken[len(m.woken):]
	return w
}
