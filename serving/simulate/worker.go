package simulate

import "math"

// worker is one engine process on one GPU, serving one function.
type worker struct {
	fn, gpu  int
	state    workerState
	born     float64
	ready    float64 // when loading ends
	lastUsed float64
	inFlight int // admitted and not finished
	seen     int // at the observer's last check
	pinned   bool
	kept     bool // it stays
	locks    int  // copies that read this worker's weights
	source   *worker
	home     *container

	waiting []int32 // admitted, in order; waiting[head:] is live
	head    int
	running []active
	phase   phase
	gen     uint32
	until   float64 // fixed service times: when the last running request ends
}

type workerState uint8

const (
	loading workerState = iota
	serving
	exiting // had no work; the observer has not seen it yet
	stopping
	gone
)

// active is a request in the batch, with the number of tokens that it still needs.
type active struct {
	req  int32
	left int32
}

// phase is a run of equal engine steps. Within it the batch does not change, so it is one event.
type phase struct {
	busy    bool
	prefill int32 // the request being admitted, -1 in a decode phase
	start   float64
	step    float64
	steps   int32
}

func (w *worker) pending() int { return len(w.waiting) - w.head }

// idle reports whether w may be evicted.
func (w *worker) idle() bool {
	return w.state == serving && w.inFlight == 0 && w.locks == 0 && !w.kept
}

func (w *worker) popWaiting() int32 {
	r := w.waiting[w.head]
	w.head++
	if w.head == len(w.waiting) {
		w.waiting, w.head = w.waiting[:0], 0
	}
	return r
}

// wake makes a ready worker look at its queue.
func (s *sim) wake(w *worker) {
	f := &s.fns[w.fn]
	if f.engine == nil {
		for w.pending() > 0 {
			s.serve(w, w.popWaiting())
		}
		return
	}
	if !w.phase.busy {
		s.nextPhase(w)
		return
	}
	// A decode phase ends early, at the step boundary after now, to admit the new request.
	if p := &w.phase; p.prefill < 0 {
		steps := int32(math.Floor((s.now-p.start)/p.step)) + 1
		if steps < p.steps {
			p.steps = steps
			w.gen++
			s.agenda.push(event{at: p.start + float64(steps)*p.step, kind: stepped, worker: w, gen: w.gen})
		}
	}
}

// nextPhase is called at a step boundary.
func (s *sim) nextPhase(w *worker) {
	f := &s.fns[w.fn]
	p := phase{busy: true, prefill: -1, start: s.now, steps: 1}
	switch n := len(w.running); {
	case w.pending() > 0:
		p.prefill = w.popWaiting()
		r := &s.requests[p.prefill]
		r.start = s.now
		p.step = f.engine.Prefill + f.engine.PrefillToken*float64(r.prompt)
	case n > 0:
		p.step = f.decode + f.decodeRequest*float64(n)
		p.steps = w.running[0].left
		for _, a := range w.running {
			p.steps = min(p.steps, a.left)
		}
	default:
		w.phase = phase{}
		s.rest(w)
		return
	}
	w.phase = p
	w.gen++
	s.agenda.push(event{at: p.start + float64(p.steps)*p.step, kind: stepped, worker: w, gen: w.gen})
}

// endPhase accounts for the tokens of the phase's steps.
func (s *sim) endPhase(w *worker) {
	p := w.phase
	s.fns[w.fn].busy += s.now - p.start
	w.phase.busy = false
	if p.prefill >= 0 {
		r := &s.requests[p.prefill]
		r.first = s.now
		if r.output <= 1 {
			s.finish(w, p.prefill)
		} else {
			w.running = append(w.running, active{req: p.prefill, left: r.output - 1})
		}
	} else {
		keep := w.running[:0]
		for _, a := range w.running {
			if a.left -= p.steps; a.left > 0 {
				keep = append(keep, a)
			} else {
				s.finish(w, a.req)
			}
		}
		w.running = keep
	}
	s.nextPhase(w)
}

// serve runs a request with a fixed service time beside the other requests on the GPU.
func (s *sim) serve(w *worker, req int32) {
	g := &s.gpus[w.gpu]
	r := &s.requests[req]
	d := r.service
	if d == 0 {
		d = s.fns[w.fn].profile.Service
	}
	d *= 1 + s.spec.Interference*float64(g.active)
	g.active++
	r.start = s.now
	w.until = math.Max(w.until, s.now+d)
	s.fns[w.fn].busy += d
	s.agenda.push(event{at: s.now + d, kind: finished, worker: w, req: req})
}
