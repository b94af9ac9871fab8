// Package stubengine is an engine without a model: its answers repeat the prompt, after times that a test chooses. Prompts make it
// fail in the ways in which engines do.
//
// In: times. Out: an http.Handler with the endpoints of an engine, and an agent.Engine in this process.
package stubengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"medusa/serving/agent"
)

// Prompts that make an engine fail.
const (
	Die     = "die"     // it ends before it answers
	Break   = "break"   // it ends within a stream
	Garbage = "garbage" // its answer is no HTTP
	Hang    = "hang"    // it stops answering, /health included
	Fail    = "fail"    // it answers with an error, and is well
	Cut     = "cut"     // from here on it closes connections without an answer, and is not healthy
)

// Stub describes an engine.
type Stub struct {
	Model                 string
	Load, WakeUp, Service time.Duration
	Pieces                int                       // of a stream
	Secret                string                    // API key that it wants; "": none
	Holds                 int64                     // bytes of host memory
	Device                func(asleep bool) float64 // share of its GPU's memory; nil: unknown
	Refuses               error                     // of a start
	Crash                 int                       // it ends at its request of this number; 0: never
	Sicken                int                       // from its request of this number on, it answers with errors and is not healthy; 0: never
	Drowsy                bool                      // it never wakes
	Metrics               string                    // its text at /metrics; "": it has none
	Observe               func(what string)         // is told each start, sleep, wake and stop; may be nil
	sleeping              bool                      // guarded by its engine's lock
}

// Engine is a Stub that serves in this process.
type Engine struct {
	Stub
	mu     sync.Mutex
	server *http.Server
	url    string
	hung   bool
	cuts   bool
	dead   bool
	asked  int // requests
	ended  chan struct{}
	once   sync.Once
	err    error
}

var _ agent.Engine = (*Engine)(nil)

// New makes an engine.
func New(s Stub) *Engine { return &Engine{Stub: s, ended: make(chan struct{})} }

func (e *Engine) observe(what string) {
	if e.Observe != nil {
		e.Observe(what)
	}
}

// Start implements [agent.Engine].
func (e *Engine) Start(ctx context.Context) error {
	e.observe("start")
	if err := wait(ctx, e.Load); err != nil {
		return err
	}
	if e.Refuses != nil {
		return e.Refuses
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e.url = "http://" + l.Addr().String()
	e.server = &http.Server{Handler: e.Handler(func() { go e.end(errors.New("killed")) }), ConnState: func(c net.Conn, s http.ConnState) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.dead { // it was accepted while the server closed
			_ = c.Close()
		}
	}}
	go func() { _ = e.server.Serve(l) }()
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// URL implements [agent.Engine].
func (e *Engine) URL() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.url
}

// Key implements [agent.Engine].
func (e *Engine) Key() string { return e.Secret }

// HostMemory implements [agent.Engine].
func (e *Engine) HostMemory() int64 { return e.Holds }

// DeviceMemory implements [agent.Engine].
func (e *Engine) DeviceMemory(context.Context) float64 {
	if e.Device == nil {
		return 0
	}
	e.mu.Lock()
	asleep := e.sleeping
	e.mu.Unlock()
	return e.Device(asleep)
}

// Healthy implements [agent.Engine].
func (e *Engine) Healthy(ctx context.Context) error {
	e.mu.Lock()
	hung, dead, sick := e.hung, e.dead, e.cuts || e.Sicken > 0 && e.asked >= e.Sicken
	e.mu.Unlock()
	switch {
	case dead:
		return errors.New("connection refused")
	case sick:
		return errors.New("status 503")
	case hung:
		<-ctx.Done()
	}
	return ctx.Err()
}

// Sleep implements [agent.Engine].
func (e *Engine) Sleep(_ context.Context, level int) error {
	e.observe(fmt.Sprintf("sleep %d", level))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sleeping = true
	return nil
}

// Wake implements [agent.Engine].
func (e *Engine) Wake(ctx context.Context) error {
	e.observe("wake")
	if e.Drowsy {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := wait(ctx, e.WakeUp); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sleeping = false
	return nil
}

// Stop implements [agent.Engine].
func (e *Engine) Stop() {
	e.observe("stop")
	e.end(errors.New("stopped"))
	<-e.ended
}

func (e *Engine) end(err error) {
	e.once.Do(func() {
		e.mu.Lock()
		server := e.server
		e.dead = true
		e.mu.Unlock()
		if server != nil {
			_ = server.Close()
		}
		e.err = err
		close(e.ended)
	})
}

// Ended implements [agent.Engine].
func (e *Engine) Ended() <-chan struct{} { return e.ended }

// Err implements [agent.Engine].
func (e *Engine) Err() error { return e.err }

type body struct {
	Model  string `json:"model"`
	Prompt string `json:"prompt"`
	Stream bool   `json:"stream"`
}

// Handler has an engine's endpoints. die ends the engine.
func (e *Engine) Handler(die func()) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) {
		if e.Healthy(r.Context()) != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	if e.Metrics != "" {
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(e.Metrics)) })
	}
	mux.HandleFunc("POST /sleep", func(_ http.ResponseWriter, r *http.Request) {
		level, _ := strconv.Atoi(r.URL.Query().Get("level"))
		_ = e.Sleep(r.Context(), level)
	})
	mux.HandleFunc("POST /wake_up", func(_ http.ResponseWriter, r *http.Request) { _ = e.Wake(r.Context()) })
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) {
		var q body
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		e.mu.Lock()
		sleeping := e.sleeping
		e.hung = e.hung || q.Prompt == Hang
		e.cuts = e.cuts || q.Prompt == Cut
		cuts := e.cuts
		e.asked++
		crash := e.asked == e.Crash
		sick := e.Sicken > 0 && e.asked >= e.Sicken
		e.mu.Unlock()
		switch {
		case e.Secret != "" && r.Header.Get("Authorization") != "Bearer "+e.Secret:
			http.Error(w, "another key", http.StatusUnauthorized)
		case q.Model != e.Model || sleeping:
			http.Error(w, fmt.Sprintf("%s is asked of the engine of %s, asleep: %v", q.Model, e.Model, sleeping), http.StatusInternalServerError)
		case cuts:
			panic(http.ErrAbortHandler)
		case q.Prompt == Die || crash:
			die()
			<-r.Context().Done()
		case (sick || q.Prompt == Fail) && q.Stream:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"error\": {\"message\": %q}}\n\ndata: [DONE]\n\n", failure)
		case sick || q.Prompt == Fail:
			http.Error(w, failure, http.StatusInternalServerError)
		case q.Prompt == Hang:
			<-r.Context().Done()
		case q.Prompt == Garbage:
			Garble(w)
		case q.Stream:
			e.stream(w, r, q, die)
		case wait(r.Context(), e.Service) == nil:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"object":"text_completion","choices":[{"index":0,"text":%q,"finish_reason":"stop"}]}`, Answer(q.Model, q.Prompt))
		}
	})
	return mux
}

// failure is the error of an engine that answers with one.
const failure = "the engine has failed"

// Answer is the text of an answer.
func Answer(model, prompt string) string { return model + " repeats " + prompt }

// stream sends the answer in pieces.
func (e *Engine) stream(w http.ResponseWriter, r *http.Request, q body, die func()) {
	w.Header().Set("Content-Type", "text/event-stream")
	text := Answer(q.Model, q.Prompt)
	pieces := max(1, min(e.Pieces, len(text)))
	for i := range pieces {
		if wait(r.Context(), e.Service/time.Duration(pieces)) != nil {
			return
		}
		if i == 1 && q.Prompt == Break {
			die()
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"text\":%q}]}\n\n", text[i*len(text)/pieces:(i+1)*len(text)/pieces])
		_ = http.NewResponseController(w).Flush()
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// Garble answers with bytes that are no HTTP.
func Garble(w http.ResponseWriter) {
	var c net.Conn
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = c.Write([]byte("\x00\x01this is no HTTP\n\n"))
	_ = c.Close()
}
