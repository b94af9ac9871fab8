package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"medusa/internal/apierror"
	"medusa/serving/agent"
	"medusa/serving/dispatch"
)

// Handler returns the endpoints.
func (g *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", g.allowed(g.metrics))
	mux.HandleFunc("GET /{$}", g.watched(page))
	mux.HandleFunc("GET /events", g.watched(g.events))
	mux.HandleFunc("GET /v1/models", g.allowed(g.models))
	mux.HandleFunc("POST /v1/completions", g.allowed(g.answer))
	mux.HandleFunc("POST /v1/chat/completions", g.allowed(g.answer))
	mux.HandleFunc("/", g.allowed(func(w http.ResponseWriter, r *http.Request) {
		(&apierror.Error{Status: http.StatusNotFound, Kind: apierror.Request, Code: "unknown_url", Message: fmt.Sprintf("no endpoint %s %s", r.Method, r.URL.Path)}).Write(w)
	}))
	return mux
}

// allowed passes on requests with a known key.
func (g *Server) allowed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !g.known(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			(&apierror.Error{Status: http.StatusUnauthorized, Kind: apierror.Authentication, Code: "invalid_api_key", Message: "the API key is missing or unknown"}).Write(w)
			return
		}
		next(w, r)
	}
}

func (g *Server) known(r *http.Request) bool {
	given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return g.isKey(given)
}

func (g *Server) isKey(given string) bool {
	keys := g.setup.Load().keys
	if keys == nil {
		return true
	}
	found := 0
	for key := range keys {
		// mutant: API keys
		found |= subtle.ConstantTimeCompare([]byte(given), []byte(key))
	}
	return found == 1
}

func (g *Server) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		OwnedBy string `json:"owned_by"`
	}
	list := []model{}
	for _, m := range g.setup.Load().spec.Models {
		list = append(list, model{m.Name, "model", "medusa"})
	}
	apierror.WriteJSON(w, http.StatusOK, struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", list})
}

// answer passes a request to an engine of its model, once the policy has decided.
func (g *Server) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.setup.Load().spec.MaxBody))
	if err != nil {
		classify(err).Write(w)
		return
	}
	q, err := g.enter(body)
	if err != nil {
		classify(err).Write(w)
		return
	}
	defer g.exit(q)
	if q.Flow, q.Deadline, err = Wishes(r.Header); err != nil {
		e := classify(err)
		g.count.answered(q.model.Name, e.Status)
		e.Write(w)
		return
	}
	arrived := time.Now()
	timeout := seconds(q.model.Timeout)
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	// Without a limit, a client that does not read would keep its place in an engine for ever.
	out := http.NewResponseController(w)
	// mutant: clients that do not read
	_ = out.SetWriteDeadline(time.Now().Add(timeout)) // only a test's writer has none
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }()
	p := &passing{ResponseWriter: w, request: r.WithContext(ctx), body: body}
	for attempt := 1; ; attempt++ {
		err := g.turn(ctx, q, p)
		if err == nil {
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
		if p.begun {
			g.count.answered(q.model.Name, http.StatusBadGateway)
			p.breakOff(err)
			return
		}
		if r.Context().Err() != nil {
			g.count.answered(q.model.Name, statusLeft)
			return
		}
		// An engine that was not ready in time has such an error, too.
		// mutant: starts that take too long
		if ctx.Err() != nil {
			err = &apierror.Error{Status: http.StatusGatewayTimeout, Kind: apierror.Server, Code: "timeout", Message: fmt.Sprintf("no answer within %v", timeout)}
		}
		e := classify(err)
		g.count.answered(q.model.Name, e.Status)
		e.Write(w)
		return
	}
}

// statusLeft counts clients that have left before an answer, as nginx does.
const statusLeft = 499

// query is a request for a model.
type query struct {
	dispatch.Ask // Fn is the place of the model
	model        *Model
}

// enter finds the model that a body asks for. The place stays that model's until exit.
func (g *Server) enter(body []byte) (*query, error) {
	var asked struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Message: fmt.Sprintf("read body: %v", err)}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.setup.Load()
	place, ok := now.functions[asked.Model]
	if !ok {
		return nil, &apierror.Error{Status: http.StatusNotFound, Kind: apierror.Request, Code: "model_not_found", Param: "model",
			Message: fmt.Sprintf("the model %q does not exist", asked.Model)}
	}
	g.using[place]++
	return &query{dispatch.Ask{Fn: place}, now.models[place]}, nil
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
	g.count.waited(q.model.Name, began.Sub(arrived))
	if err := g.pass(address, p, func() bool { return g.agent.Doubt(t.Decision) }); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// mutant: an engine that has not answered
		g.agent.Doubt(t.Decision)
		return &agent.EngineError{Model: q.model.Name, GPU: t.GPU, Cause: err}
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

// passing is a request that is passed on, and the answer to it.
type passing struct {
	http.ResponseWriter
	request *http.Request
	body    []byte
	begun   bool // a byte of the answer may be with the client
	status  int
	stream  bool
}

func (p *passing) WriteHeader(status int) {
	if status >= 200 {
		p.begun, p.status = true, status
		p.stream = strings.HasPrefix(p.Header().Get("Content-Type"), "text/event-stream")
	}
	p.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the server's controller flush.
func (p *passing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// buffers are the buffers for copies.
var buffers = bufferPool{sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}}

type bufferPool struct{ sync.Pool }

func (b *bufferPool) Get() []byte  { return *b.Pool.Get().(*[]byte) }
func (b *bufferPool) Put(x []byte) { b.Pool.Put(&x) }

var silent = log.New(io.Discard, "", 0)

// pass sends a request to an engine and its answer to the client, byte by byte. lives reports whether the engine is
// healthy.
func (g *machine) pass(to agent.Address, p *passing, lives func() bool) (err error) {
	target, err := url.Parse(to.URL)
	if err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{
		Transport: g.transport, FlushInterval: -1, BufferPool: &buffers,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(p.body)), int64(len(p.body))
			r.Out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.body)), nil }
			r.Out.Header.Del("Authorization") // this server's, not the engine's
			// mutant: keys of engines
			if to.Key != "" {
				r.Out.Header.Set("Authorization", "Bearer "+to.Key)
			}
		},
		ModifyResponse: func(r *http.Response) error { return unwell(r, lives) },
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, failed error) { err = failed },
		ErrorLog:       silent, // the client gets the error
	}
	defer func() {
		// The proxy panics with this value if an answer broke off.
		if r := recover(); r == http.ErrAbortHandler {
			err = errors.New("its answer broke off")
		} else if r != nil {
			panic(r)
		}
	}()
	proxy.ServeHTTP(p, p.request)
	return err
}

// breakOff ends an answer that has begun. A stream gets an error as its last event. Any other answer ends with its
// connection.
func (p *passing) breakOff(err error) {
	if !p.stream {
		panic(http.ErrAbortHandler)
	}
	data, _ := json.Marshal(classify(err).Body())
	fmt.Fprintf(p.ResponseWriter, "\n\ndata: %s\n\n", data)
}

func classify(err error) *apierror.Error {
	var known *apierror.Error
	var large *http.MaxBytesError
	var engine *agent.EngineError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &large):
		return &apierror.Error{Status: http.StatusRequestEntityTooLarge, Kind: apierror.Request, Code: "request_too_large", Message: fmt.Sprintf("the body has more than %d bytes", large.Limit)}
	case errors.As(err, &engine):
		return &apierror.Error{Status: http.StatusBadGateway, Kind: apierror.Server, Code: "engine_failed", Message: engine.Error()}
	}
	return &apierror.Error{Status: http.StatusInternalServerError, Kind: apierror.Server, Message: err.Error()}
}
