package gateway

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"medusa/serving/agent"
	"medusa/serving/schedule"
)

// signs keep a stream alive whose engine is not ready: the head of the answer, and then a comment every few seconds. A nil *signs gives none.
//
// A comment is one line without an empty one after it, since some clients take an empty line for an event without data.
type signs struct {
	over    chan struct{} // closed by end
	ended   chan struct{} // closed after the last sign
	once    sync.Once
	decided atomic.Pointer[schedule.Decision] // the request's turn; nil before it
	begun   atomic.Bool
}

// sign begins signs of life for a request, as the file says.
func (g *Server) sign(w http.ResponseWriter, q *query) *signs {
	spec := g.setup.Load().spec
	if spec.SignEvery == 0 {
		return nil
	}
	s := &signs{over: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		next := time.NewTimer(seconds(spec.SignAfter))
		defer next.Stop()
		for {
			select {
			case <-next.C:
			case <-s.over:
				return
			}
			stage, left, waits := g.stage(q, s.decided.Load())
			// An engine that has its request soon answers, with a status.
			if !waits && !s.begun.Load() {
				return
			}
			if s.begun.CompareAndSwap(false, true) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Cache-Control", "no-cache")
				w.Header().Set("X-Accel-Buffering", "no") // a proxy that collects an answer would keep the signs
				w.WriteHeader(http.StatusOK)
			}
			if _, err := fmt.Fprintf(w, ": %s is %s, about %.0f s left\n", q.model.Name, stage, math.Ceil(left)); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush() // only a test's writer cannot
			next.Reset(seconds(spec.SignEvery))
		}
	}()
	return s
}

// stage tells how far a request's engine is, and the seconds until it is expected to answer.
func (g *Server) stage(q *query, d *schedule.Decision) (stage string, left float64, waits bool) {
	if d == nil {
		g.mu.Lock()
		before := g.waiting[q.Fn] - 1
		g.mu.Unlock()
		return "waiting for its turn", g.agent.Drain(q.Fn, before), true
	}
	at := g.agent.Standing(d.GPU, d.Request.Fn)
	switch at.State {
	case agent.Awake:
		return "answering", g.agent.Service(q.Fn), false
	case agent.Starting:
		return "starting", max(0, at.Delay-(g.clock()-at.Since)), true
	case agent.Waking:
		return "waking", max(0, at.Delay-(g.clock()-at.Since)), true
	case agent.Cold, agent.Dozing, agent.Asleep1, agent.Asleep2, agent.Evicted, agent.Failed:
	}
	return "waiting for room", at.Delay, true
}

// turn notes that a request has its turn.
func (s *signs) turn(d schedule.Decision) {
	if s != nil {
		s.decided.Store(&d)
	}
}

// given reports whether the client has the head of a stream.
func (s *signs) given() bool { return s != nil && s.begun.Load() }

// end returns after the last sign.
func (s *signs) end() {
	if s != nil {
		s.once.Do(func() { close(s.over) })
		<-s.ended
	}
}
