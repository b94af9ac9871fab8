package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"medusa/internal/apierror"
	"medusa/internal/httplimit"
	"medusa/serving/agent"
	"medusa/serving/agent/link"
)

// handler returns the endpoints of a GPU.
func (k *card) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET "+link.ReportPath, k.report)
	mux.HandleFunc("POST /v1/completions", k.answer)
	mux.HandleFunc("POST /v1/chat/completions", k.answer)
	return mux
}

// answer runs a request that a picker has sent here.
func (k *card) answer(w http.ResponseWriter, r *http.Request) {
	n := k.node
	// The ticket is judged before any of the body is read.
	id, model, err := n.secret.CheckTicket(r.Header.Get(link.HeaderTicket), time.Now())
	if err != nil {
		refuse(w, &apierror.Error{Status: http.StatusUnauthorized, Kind: apierror.Authentication, Code: "invalid_ticket", Message: err.Error()})
		return
	}
	place, ok := n.setup.functions[model]
	if !ok {
		refuse(w, &apierror.Error{Status: http.StatusNotFound, Kind: apierror.Request, Code: "model_not_found", Param: "model",
			Message: fmt.Sprintf("the model %q does not exist here", model)})
		return
	}
	body := n.bodies.New(n.spec.MaxBody)
	defer body.Release()
	if _, err := body.ReadFrom(r.Body); err != nil {
		refuse(w, unread(err))
		return
	}
	var asked struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal(body.Bytes(), &asked); err != nil {
		(&apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Message: fmt.Sprintf("read body: %v", err)}).Write(w)
		return
	}
	// mutant: tickets for another model
	if asked.Model != model {
		(&apierror.Error{Status: http.StatusUnauthorized, Kind: apierror.Authentication, Code: "invalid_ticket",
			Message: fmt.Sprintf("the ticket is for the model %q", model)}).Write(w)
		return
	}
	timeout := seconds(n.setup.models[place].Timeout)
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Now().Add(timeout)) // as in Server.answer
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }()
	r.Header.Del(link.HeaderTicket) // it is for this server
	p := &passing{ResponseWriter: w, request: r.WithContext(ctx), body: body.Bytes()}
	switch err := k.run(ctx, id, place, p); {
	case err == nil:
	case p.begun:
		p.breakOff(err)
	case r.Context().Err() != nil: // the client has left
	case ctx.Err() != nil:
		(&apierror.Error{Status: http.StatusGatewayTimeout, Kind: apierror.Server, Code: "timeout", Message: fmt.Sprintf("no answer within %v", timeout)}).Write(w)
	default:
		classify(err).Write(w)
	}
}

// refuse answers a request whose body is not read, and ends its connection: the rest of the body is not worth reading.
func refuse(w http.ResponseWriter, e *apierror.Error) {
	w.Header().Set("Connection", "close")
	e.Write(w)
}

// unread is the error for a body that could not be read.
func unread(err error) *apierror.Error {
	switch {
	case errors.Is(err, httplimit.ErrFull):
		return &apierror.Error{Status: http.StatusServiceUnavailable, Kind: apierror.Server, Code: "busy", Message: err.Error(), Retry: 1}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &apierror.Error{Status: http.StatusRequestTimeout, Kind: apierror.Request, Code: "timeout", Message: "the body did not come in time"}
	}
	return classify(err)
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
		return &agent.EngineError{Model: n.setup.models[fn].Name, GPU: k.gpu, Cause: err}
	}
	if p.status < http.StatusBadRequest {
		service = max(n.clock()-began, minService)
	}
	return nil
}

// minService is the shortest service time of an answer. 0 means that there was no answer.
const minService = 1e-6
