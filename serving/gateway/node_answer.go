package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"medusa/internal/apierror"
	"medusa/internal/apirequest"
	"medusa/internal/httplimit"
	"medusa/serving/agent/link"
)

// handler returns the endpoints of a GPU.
func (k *card) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", k.node.metrics)
	mux.HandleFunc("GET "+link.ReportPath, k.report)
	for _, e := range apirequest.Endpoints() {
		mux.HandleFunc(e.Method+" "+e.Path, func(w http.ResponseWriter, r *http.Request) { k.answer(w, r, e) })
	}
	return mux
}

// answer runs a request that a picker has sent here.
func (k *card) answer(w http.ResponseWriter, r *http.Request, e apirequest.Endpoint) {
	n := k.node
	refuse := func(e2 *apierror.Error) {
		w.Header().Set("Connection", "close") // the rest of the body is not worth reading
		e2.WriteAs(w, e.Errors)
	}
	// The ticket is judged before any of the body is read.
	id, model, err := n.secret.CheckTicket(r.Header.Get(link.HeaderTicket), time.Now())
	if err != nil {
		refuse(&apierror.Error{Status: http.StatusUnauthorized, Kind: apierror.Authentication, Code: "invalid_ticket", Message: err.Error()})
		return
	}
	place, ok := n.setup.functions[model]
	if !ok {
		refuse(&apierror.Error{Status: http.StatusNotFound, Kind: apierror.Request, Code: "model_not_found", Param: "model",
			Message: fmt.Sprintf("the model %q does not exist here", model)})
		return
	}
	body, asked, err := n.enter(w, r, e)
	if err != nil {
		decline(w, r, e.Errors, err)
		return
	}
	defer body.Release()
	// mutant: tickets for another model
	if asked.Model != "" && asked.Model != model {
		decline(w, r, e.Errors, &apierror.Error{Status: http.StatusUnauthorized, Kind: apierror.Authentication, Code: "invalid_ticket",
			Message: fmt.Sprintf("the ticket is for the model %q", model)})
		return
	}
	timeout := seconds(n.setup.models[place].Timeout)
	ctx, cancel := present(r, timeout)
	defer cancel()
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Now().Add(timeout + lastWords)) // as in Server.answer
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }()
	r.Header.Del(link.HeaderTicket) // it is for this server
	p := &passing{ResponseWriter: w, request: r.WithContext(ctx), body: body.Bytes(), form: e.Errors, onBegin: body.Release}
	err = k.run(ctx, id, place, p)
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) && err != nil {
		err = &apierror.Error{Status: http.StatusGatewayTimeout, Kind: apierror.Server, Code: "timeout", Message: fmt.Sprintf("no whole answer within %v", timeout)}
	}
	switch {
	case err == nil:
	case p.lost, errors.Is(context.Cause(ctx), errLeft):
		panic(http.ErrAbortHandler) // as in Server.fail
	case p.begun:
		p.breakOff(err)
	default:
		decline(w, r, e.Errors, err)
	}
}

// enter reads a request. The caller releases the body.
func (n *Node) enter(w http.ResponseWriter, r *http.Request, e apirequest.Endpoint) (*httplimit.Body, *apirequest.Asked, error) {
	if err := e.Check(r.Header); err != nil {
		return nil, nil, err
	}
	body, err := read(w, r, n.bodies, n.spec.MaxBody)
	if err != nil {
		return nil, nil, err
	}
	asked, err := e.Read(r.Header, r.URL.RawQuery, body.Bytes())
	if err != nil {
		body.Release()
		return nil, nil, err
	}
	return body, asked, nil
}

// run holds a request until it has a place and its engine answers, and passes it on. The place is free afterwards in each case.
func (k *card) run(ctx context.Context, id string, fn int, p *passing) error {
	n := k.node
	v := k.come(id, fn)
	service := 0.0 // stays 0 if the request was not answered or was refused
	defer func() { k.leave(v, service) }()
	select {
	case <-v.admitted:
	case <-ctx.Done():
		return ctx.Err()
	}
	address, err := n.agent.Acquire(ctx, v.at)
	if err != nil {
		return err
	}
	began := n.clock()
	p.Header().Set(link.HeaderHeld, strconv.FormatFloat(began-v.came, 'f', 6, 64))
	if err := n.pass(address, p, func() bool { return n.agent.Doubt(v.at) }); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n.agent.Doubt(v.at)
		return n.agent.Failed(n.setup.models[fn].Name, k.gpu, err)
	}
	if p.status < http.StatusBadRequest {
		service = max(n.clock()-began, minService)
	}
	return nil
}

// minService is the shortest service time of an answer. 0 means that there was no answer.
const minService = 1e-6
