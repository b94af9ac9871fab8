// Package openai serves an engine over HTTP as OpenAI's API has it: completions and chat completions, streamed and not.
//
// In: a serve.Loop, a tokenizer and a name. Out: an http.Handler. Answers are greedy. A request that asks for anything else is
// refused, as are unknown models, texts that are too long and bodies that are too large: each with OpenAI's error object.
package openai

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"medusa/internal/apierror"
	"medusa/runners/reference/engine"
	"medusa/runners/reference/serve"
	"medusa/runners/reference/tokenizer"
)

// maxBody bounds a request in bytes. A text of the longest length takes far less.
const maxBody = 4 << 20

// Server answers requests for one model.
type Server struct {
	Loop        *serve.Loop
	Tokenizer   tokenizer.Tokenizer
	Model       string // the name by which clients ask for it
	MaxModelLen int    // tokens of prompt and answer together
	Log         io.Writer

	count atomic.Uint64
}

// Handler returns the endpoints.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, completions) })
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, chat) })
	mux.HandleFunc("POST /sleep", s.sleep)
	mux.HandleFunc("POST /wake_up", s.wake)
	mux.HandleFunc("GET /is_sleeping", func(w http.ResponseWriter, _ *http.Request) {
		apierror.WriteJSON(w, http.StatusOK, struct {
			IsSleeping bool `json:"is_sleeping"`
		}{s.Loop.Asleep() != 0})
	})
	mux.HandleFunc("GET /kv_cache", func(w http.ResponseWriter, _ *http.Request) { writeSize(w)(s.Loop.KVSize()) })
	mux.HandleFunc("POST /kv_cache", s.resize)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, &apierror.Error{Status: http.StatusNotFound, Kind: apierror.Request, Code: "unknown_url", Message: fmt.Sprintf("no endpoint %s %s", r.Method, r.URL.Path)})
	})
	return mux
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	select {
	case <-s.Loop.Ended():
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
	}
}

// sleep and wake are as vLLM has them.
func (s *Server) sleep(w http.ResponseWriter, r *http.Request) {
	level := 1
	if text := r.URL.Query().Get("level"); text != "" {
		var err error
		if level, err = strconv.Atoi(text); err != nil {
			fail(w, invalid("level", "level %q is no number", text))
			return
		}
	}
	freed, err := s.Loop.Sleep(r.Context(), level)
	switch {
	case errors.Is(err, engine.ErrNoSleep), err != nil && level != 1 && level != 2:
		fail(w, invalid("level", "%v", err))
	case err != nil:
		fail(w, err)
	default:
		fmt.Fprintf(s.Log, "asleep at level %d: %d bytes of device memory are free\n", level, freed)
	}
}

func (s *Server) wake(w http.ResponseWriter, _ *http.Request) {
	if err := s.Loop.Wake(); err != nil {
		fail(w, err)
		return
	}
	fmt.Fprintln(s.Log, "awake")
}

// resize changes the memory of an elastic KV cache, and answers once it is done.
func (s *Server) resize(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("bytes")
	bytes, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		fail(w, invalid("bytes", "size %q is no number of bytes", text))
		return
	}
	writeSize(w)(s.Loop.Resize(r.Context(), bytes))
}

func writeSize(w http.ResponseWriter) func(engine.KVSize, error) {
	return func(size engine.KVSize, err error) {
		var refused *engine.KVSizeError
		switch {
		case errors.Is(err, engine.ErrFixedKV) || errors.As(err, &refused):
			fail(w, invalid("bytes", "%v", err))
		case err != nil:
			fail(w, err)
		default:
			apierror.WriteJSON(w, http.StatusOK, size)
		}
	}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		OwnedBy     string `json:"owned_by"`
		MaxModelLen int    `json:"max_model_len"`
	}
	apierror.WriteJSON(w, http.StatusOK, struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", []model{{s.Model, "model", "medusa", s.MaxModelLen}}})
}

// answer reads a request, and writes its answer as a whole or token by token.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, k kind) {
	q, err := s.read(w, r, k)
	if err != nil {
		fail(w, err)
		return
	}
	a := &answer{kind: k, model: s.Model, id: fmt.Sprintf("%s-%d", k.prefix(), s.count.Add(1)), created: time.Now().Unix(), request: q}
	if q.Stream {
		a.stream = newStream(w)
	}
	text := text{tokenizer: s.Tokenizer}
	reason, err := s.Loop.Answer(r.Context(), q.prompt, q.limits, func(id int) error {
		a.tokens = append(a.tokens, id)
		if a.stream == nil {
			return nil
		}
		return a.piece(text.add(id), []int{id})
	})
	if err != nil {
		a.fail(w, err)
		return
	}
	if a.stream == nil {
		apierror.WriteJSON(w, http.StatusOK, a.whole(s.Tokenizer.Decode(a.tokens), reason))
		return
	}
	_ = a.finish(text.rest(), reason) // a client that has left reads no end
}

// classify makes any error an error of the API.
func classify(err error) *apierror.Error {
	var known *apierror.Error
	var length *engine.LengthError
	var prompt *serve.PromptError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &length):
		return &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Code: "context_length_exceeded", Message: err.Error()}
	case errors.As(err, &prompt):
		return &apierror.Error{Status: http.StatusBadRequest, Kind: apierror.Request, Param: "prompt", Message: err.Error()}
	case errors.As(err, &large):
		return &apierror.Error{Status: http.StatusRequestEntityTooLarge, Kind: apierror.Request, Code: "request_too_large",
			Message: fmt.Sprintf("the body has more than %d bytes", large.Limit)}
	case errors.Is(err, serve.ErrAsleep):
		return &apierror.Error{Status: http.StatusServiceUnavailable, Kind: apierror.Server, Code: "asleep", Message: err.Error()}
	case errors.Is(err, serve.ErrEnded):
		return &apierror.Error{Status: http.StatusServiceUnavailable, Kind: apierror.Server, Code: "engine_ended", Message: err.Error()}
	}
	return &apierror.Error{Status: http.StatusInternalServerError, Kind: apierror.Server, Message: err.Error()}
}

func fail(w http.ResponseWriter, err error) { classify(err).Write(w) }

// readBody reads a body of at most maxBody bytes.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
}
