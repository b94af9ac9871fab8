package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"medusa/internal/apierror"
	"medusa/internal/apirequest"
	"medusa/internal/httplimit"
	"medusa/serving/agent"
	"medusa/serving/dispatch"
)

// answer passes a request to an engine of its model, once the policy has decided.
func (g *Server) answer(w http.ResponseWriter, r *http.Request, e apirequest.Endpoint) {
	q, err := g.enter(w, r, e)
	if err != nil {
		decline(w, r, e.Errors, err)
		return
	}
	defer g.exit(q)
	defer q.release()
	v := visiting(r)
	v.Model, v.In, v.Stream = q.model.Name, int64(len(q.body.Bytes())), q.stream
	if q.Flow, q.Deadline, err = Wishes(r.Header); err != nil {
		g.count.answered(q.model.Name, http.StatusBadRequest)
		decline(w, r, e.Errors, err)
		return
	}
	arrived := time.Now()
	timeout := seconds(q.model.Timeout)
	ctx, cancel := present(r, timeout)
	defer cancel()
	// A client that reads too slowly would keep its place in an engine for ever.
	out := http.NewResponseController(w)
	// mutant: clients that do not read
	_ = out.SetWriteDeadline(time.Now().Add(timeout + lastWords)) // only a test's writer has none
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }()
	p := &passing{ResponseWriter: w, request: r.WithContext(ctx), body: q.body.Bytes(), form: e.Errors, onBegin: q.release}
	if q.stream {
		p.signs = g.sign(w, q)
		defer p.signs.end()
	}
	for attempt := 1; ; attempt++ {
		err := g.turn(ctx, q, p)
		if err == nil {
			v.Status = p.status
			g.count.answered(q.model.Name, p.status)
			if p.status < http.StatusBadRequest {
				g.count.judged(q.model.Name, time.Since(arrived).Seconds(), cmp.Or(q.Deadline, q.model.Deadline))
			}
			return
		}
		var engine *agent.EngineError
		// mutant: a request whose engine has died is tried once more
		if attempt == 1 && errors.As(err, &engine) && !p.begun && ctx.Err() == nil {
			continue
		}
		p.signs.end()
		g.fail(ctx, w, r, q, p, err)
		return
	}
}

// lastWords is the time to tell a client that its answer takes too long.
const lastWords = 2 * time.Second

// statusLeft counts clients that have left before the end of their answer, as nginx does.
const statusLeft = 499

// fail ends a request that has no answer, or not all of it.
func (g *Server) fail(ctx context.Context, w http.ResponseWriter, r *http.Request, q *query, p *passing, err error) {
	e := classify(err)
	var engine *agent.EngineError
	switch {
	// An engine that was not ready in time has an error of its own, too.
	// mutant: starts that take too long
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		e = &apierror.Error{Status: http.StatusGatewayTimeout, Kind: apierror.Server, Code: "timeout", Message: fmt.Sprintf("no whole answer within %v", seconds(q.model.Timeout))}
	// mutant: clients that leave within a stream
	case p.lost || errors.Is(context.Cause(ctx), errLeft):
		e = &apierror.Error{Status: statusLeft}
	case errors.As(err, &engine):
		e.Retry = g.retry(q.Fn)
	}
	visiting(r).Status = e.Status
	g.count.answered(q.model.Name, e.Status)
	switch {
	case e.Status == statusLeft:
		panic(http.ErrAbortHandler) // otherwise a client that has only said that it sends no more would get an empty answer
	case p.begun || p.signs.given():
		p.breakOff(e)
	default:
		decline(w, r, p.form, e)
	}
}

// retry is the number of seconds until a model that has failed is started again; 0 if it may be started now.
func (g *Server) retry(fn int) int {
	now, first := g.clock(), math.Inf(1)
	for gpu := range g.agent.GPUs() {
		at := g.agent.Standing(gpu, fn)
		if at.State != agent.Failed {
			return 0
		}
		first = min(first, at.Retry-now)
	}
	return int(math.Ceil(max(0, first)))
}

// query is a request for a model.
type query struct {
	dispatch.Ask // Fn is the place of the model
	model        *Model
	body         *httplimit.Body
	stream       bool
}

func (q *query) release() { q.body.Release() }

// enter reads a request and finds the model that it asks for. The place stays that model's until exit.
func (g *Server) enter(w http.ResponseWriter, r *http.Request, e apirequest.Endpoint) (*query, error) {
	if err := e.Check(r.Header); err != nil {
		return nil, err
	}
	body, err := read(w, r, g.bodies, g.setup.Load().spec.MaxBody)
	if err != nil {
		return nil, err
	}
	q := &query{body: body}
	if err := g.understand(q, r, e); err != nil {
		q.release()
		return nil, err
	}
	return q, nil
}

// understand finds the model of a request.
func (g *Server) understand(q *query, r *http.Request, e apirequest.Endpoint) error {
	asked, err := e.Read(r.Header, r.URL.RawQuery, q.body.Bytes())
	if err != nil {
		return err
	}
	q.stream = asked.Stream && e.Streams
	g.mu.Lock()
	now := g.setup.Load()
	place, ok := now.functions[asked.Model]
	if asked.Model == "" && len(now.functions) == 1 {
		for _, only := range now.functions {
			place, ok = only, true
		}
	}
	if !ok {
		g.mu.Unlock()
		if asked.Model == "" {
			return &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Param: "model", Message: "you must provide a model parameter"}
		}
		return noModel(asked.Model)
	}
	g.using[place]++
	g.mu.Unlock()
	q.Ask, q.model = dispatch.Ask{Fn: place}, now.models[place]
	if asked.Model == "" || asked.Model == q.model.Name {
		return nil
	}
	query, renamed, err := asked.Rename(q.model.Name, r.URL.RawQuery, q.body.Bytes())
	if err == nil {
		r.URL.RawQuery = query
		q.body.Release()
		q.body = g.bodies.New(now.spec.MaxBody + int64(len(q.model.Name)))
		err = q.body.Append(renamed)
	}
	if err != nil {
		g.exit(q)
	}
	return err
}

func (g *Server) exit(q *query) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.using[q.Fn]--
}

// turn waits for a turn and an engine, and passes the request on. The turn ends in each case.
func (g *Server) turn(ctx context.Context, q *query, p *passing) error {
	if err := g.join(q); err != nil {
		return err
	}
	arrived := time.Now()
	t, err := g.queue.Wait(ctx, q.Ask)
	g.leave(q)
	if err != nil {
		return err
	}
	p.signs.turn(t.Decision)
	service := 0.0 // stays 0 if the request was not answered or was refused
	defer func() {
		// The turn ends last, so that the next decision sees the place.
		g.agent.Release(t.Decision, service)
		if service > 0 {
			t.Done(service)
		} else {
			t.Lost()
		}
	}()
	address, err := g.agent.Acquire(ctx, t.Decision)
	if err != nil {
		return err
	}
	began := time.Now()
	visiting(p.request).Waited = began.Sub(arrived).Seconds()
	g.count.waited(q.model.Name, began.Sub(arrived))
	if err := g.pass(address, p, func() bool { return g.agent.Doubt(t.Decision) }); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p.lost {
			return errLeft
		}
		// mutant: an engine that has not answered
		g.agent.Doubt(t.Decision)
		return g.agent.Failed(q.model.Name, t.GPU, err)
	}
	// mutant: answers that are measured
	if p.status < http.StatusBadRequest {
		service = time.Since(began).Seconds() // an engine refuses at once
	}
	return nil
}

// join counts a waiting request. It refuses the request if too many of its model wait.
func (g *Server) join(q *query) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	// mutant: bound of waiting requests
	if waiting := g.waiting[q.Fn]; waiting >= g.setup.Load().spec.MaxWaiting {
		return &apierror.Error{Status: http.StatusTooManyRequests, Kind: apierror.RateLimit, Code: "queue_full",
			Message: fmt.Sprintf("%d requests wait for %s already", waiting, q.model.Name), Retry: int(math.Ceil(max(1, g.agent.Drain(q.Fn, waiting))))}
	}
	g.waiting[q.Fn]++
	return nil
}

func (g *Server) leave(q *query) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[q.Fn]--
}
