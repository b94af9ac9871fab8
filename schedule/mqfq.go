package schedule

import (
	"math"
	"slices"
)

// State is the state of a queue of MQFQ-Sticky (MQFQ §4.1).
type State int

// The states. A queue that has just run empty stays Active for its TTL: the next request is expected soon.
const (
	Inactive State = iota
	Active
	Throttled
)

// flow is one function's queue and its account.
type flow struct {
	fifo
	vt       float64 // virtual time: service accrued, divided by the weight
	state    State
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

// MQFQ is MQFQ-Sticky: start-time fair queueing over functions whose queues may run ahead of the global virtual time by
// T, so that a function runs in batches and finds its worker warm.
type MQFQ struct {
	T         float64 // allowed over-run, seconds
	Alpha     float64 // TTL = Alpha × mean inter-arrival time
	WarmFirst bool    // prefer, before all else, queues with a warm free slot (not in the paper)
	UnitTau   bool    // advance virtual times by 1 instead of the service time (the paper's ablation)

	tokens  tokens
	flows   []flow
	weights []float64
	global  float64
	queued  int
	order   []int
	woken   []int
}

// NewMQFQ makes the policy for n functions with the paper's parameters; limit is the utilisation cap of the dynamic D, 0
// for none. Weights are 1 where the slice ends.
func NewMQFQ(n, d int, t, alpha, limit float64, weights []float64) *MQFQ {
	return &MQFQ{T: t, Alpha: alpha, tokens: tokens{d: d, limit: limit}, flows: make([]flow, n), weights: weights}
}

// Name is "mqfq".
func (m *MQFQ) Name() string { return "mqfq" }

// Queued is the number of waiting requests.
func (m *MQFQ) Queued() int { return m.queued }

// Arrive queues r. A queue that was Inactive re-enters at the global virtual time: idling earns no credit.
func (m *MQFQ) Arrive(now float64, r Request) {
	f := &m.flows[r.Fn]
	if f.seen {
		f.iat.add(now - f.lastSeen)
	}
	f.lastSeen, f.seen = now, true
	m.expire(f, now)
	if f.state == Inactive {
		f.vt = math.Max(f.vt, m.global)
		f.state = Active
		m.woken = append(m.woken, r.Fn)
	}
	f.push(r)
	m.queued++
}

// Next is Algorithm 1.
func (m *MQFQ) Next(now float64, c Cluster) (Decision, bool) {
	m.tokens.poll(now, c)
	if m.queued == 0 {
		return Decision{}, false
	}
	// Line 2 takes the minimum over all queues, Table 2 over active ones. Taken: queues with requests waiting; an empty
	// Active queue would hold the others back for nothing. It never falls, or a returning queue would gain credit.
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
		if f.state == Active && f.len() > 0 {
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

// update sets the state. Line 22 prints "throttle if VT − Global_VT < T"; the text of §4.2 "if VT + T ≥ Global_VT". Both
// would throttle the queues that lag. Taken: ahead by T or more. T = 0 must still let the least queue run, so there
// the test is strict.
func (m *MQFQ) update(f *flow, now float64) {
	m.expire(f, now)
	switch ahead := f.vt - m.global; {
	case f.len() == 0 && f.inFlight == 0:
	case ahead >= m.T && ahead > 0:
		f.state = Throttled
	default:
		f.state = Active
	}
}

// expire ends the anticipation of an empty queue after its TTL.
func (m *MQFQ) expire(f *flow, now float64) {
	if f.len() == 0 && f.inFlight == 0 && now-f.lastExec >= m.Alpha*f.iat.value(0) {
		f.state = Inactive
	}
}

// rank sorts the candidates: fewest in flight first, then longest queue. (§4.2 names the keys the other way round; the
// stable second sort of Algorithm 1 makes in-flight the first key.) With D = 1 only the length counts.
func (m *MQFQ) rank(c Cluster) {
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
		if m.WarmFirst {
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

func (m *MQFQ) dispatch(now float64, i, g int) Decision {
	f := &m.flows[i]
	r := f.pop()
	m.queued--
	m.tokens.take(g)
	f.inFlight++
	f.lastExec = now
	// An unmeasured function counts as T/10, as in the authors' implementation.
	tau := f.tau.value(m.T / 10)
	if m.UnitTau {
		tau = 1
	}
	f.vt += tau / m.weight(i)
	return Decision{Request: r, GPU: g, Peer: Anywhere}
}

func (m *MQFQ) weight(i int) float64 {
	if i < len(m.weights) {
		return m.weights[i]
	}
	return 1
}

// Done returns the token. Only service time enters tau: with cold starts in it a function that starts cold would be
// charged twice, once by the wait and once by its virtual time.
func (m *MQFQ) Done(now float64, d Completion) {
	f := &m.flows[d.Request.Fn]
	m.tokens.release(d.GPU)
	f.inFlight--
	f.lastExec = now
	f.tau.add(d.Service)
}

// State is the state of fn's queue at now. Workers of a queue that is not Active may be evicted or swapped out.
func (m *MQFQ) State(now float64, fn int) State {
	f := &m.flows[fn]
	m.expire(f, now)
	return f.state
}

// VirtualTime is the service that fn's queue has accrued, in seconds over its weight.
func (m *MQFQ) VirtualTime(fn int) float64 { return m.flows[fn].vt }

// Global is the global virtual time.
func (m *MQFQ) Global() float64 { return m.global }

// Woken lists the functions whose queues became Active since the last call: their memory is worth prefetching (§4.3).
func (m *MQFQ) Woken() []int {
	w := m.woken
	m.woken = m.woken[len(m.woken):]
	return w
}

// FairnessBound is the most by which the service of two functions that are both backlogged may differ over any interval,
// in seconds: (D+1)(2T + tau_i + tau_j). Equation 1 of the paper prints (D−1)(2T + tau_i/w_i − tau_j/w_j), which is 0 for
// D = 1 and depends on the order of i and j; a scheduler of whole requests cannot hold that.
func FairnessBound(d int, t, tauI, tauJ float64) float64 {
	return float64(d+1) * (2*t + tauI + tauJ)
}
