package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"

	"medusa/internal/apierror"
	"medusa/internal/httplimit"
	"medusa/serving/agent"
)

// passing is a request that is passed on, and the answer to it.
type passing struct {
	http.ResponseWriter
	request *http.Request
	body    []byte
	form    apierror.Form
	onBegin func() // called when the engine's answer begins; may be nil
	signs   *signs // nil: none

	begun  bool // a byte of the answer may be with the client
	status int
	stream bool
	lost   bool   // the client takes no more
	last   []byte // the last bytes of the stream
	// instead has the engine's answer if it is no stream, and the client has got the head of one already.
	instead *bytes.Buffer
}

// WriteHeader takes the head of the engine's answer.
func (p *passing) WriteHeader(status int) {
	p.begun, p.status = true, status
	if p.onBegin != nil {
		p.onBegin()
	}
	// mutant: statuses after signs of life
	if !p.signs.given() {
		p.ResponseWriter.WriteHeader(status)
	} else if !p.stream || status != http.StatusOK {
		p.instead = &bytes.Buffer{}
	}
}

// maxInstead bounds the part of an error that a stream gets.
const maxInstead = 64 << 10

func (p *passing) Write(b []byte) (int, error) {
	if p.instead != nil {
		p.instead.Write(b[:min(len(b), maxInstead-p.instead.Len())])
		return len(b), nil
	}
	n, err := p.ResponseWriter.Write(b)
	p.lost = p.lost || err != nil
	p.last = append(p.last[:0], b[max(0, n-4):n]...)
	return n, err
}

// Unwrap lets the server's controller flush.
func (p *passing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// finish ends an answer that is complete.
func (p *passing) finish() {
	if p.instead == nil {
		return
	}
	var one bytes.Buffer
	if json.Compact(&one, p.instead.Bytes()) != nil || p.status == http.StatusOK {
		p.write((&apierror.Error{Kind: apierror.Server, Status: p.status, Code: "no_stream", Message: fmt.Sprintf("the engine's answer is no stream (status %d)", p.status)}).Event(p.form))
		return
	}
	head := ""
	if p.form != apierror.OpenAI {
		head = "event: error\n"
	}
	p.write(fmt.Appendf(nil, "%sdata: %s\n\n", head, one.Bytes()))
}

// breakOff ends an answer that has begun. A stream gets an error as its last event. Any other answer ends with its
// connection.
func (p *passing) breakOff(err error) {
	if p.lost || !p.stream && !p.signs.given() {
		panic(http.ErrAbortHandler)
	}
	if whole := bytes.HasSuffix(p.last, []byte("\n\n")) || bytes.HasSuffix(p.last, []byte("\n\r\n")); p.begun && len(p.last) > 0 && !whole {
		p.write([]byte("\n\n"))
	}
	p.write(classify(err).Event(p.form))
}

func (p *passing) write(b []byte) { _, _ = p.ResponseWriter.Write(b) } // a client that has left gets nothing

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
		Transport: final{g.transport, p.request.Context()}, FlushInterval: -1, BufferPool: &buffers,
		Rewrite: func(r *httputil.ProxyRequest) {
			out := r.Out
			out.URL.Scheme, out.URL.Host = target.Scheme, target.Host
			out.Body, out.ContentLength, out.TransferEncoding, out.Trailer = io.NopCloser(bytes.NewReader(p.body)), int64(len(p.body)), nil, nil
			out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.body)), nil }
			if len(p.body) == 0 {
				out.Body = http.NoBody
			}
			// Keys are this server's, not the engine's. The body is whole and decoded, and the connection is another.
			for _, name := range []string{"Authorization", "X-Api-Key", "Content-Encoding", "Expect", "Upgrade", "Connection", "Http2-Settings"} {
				out.Header.Del(name)
			}
			if p.signs.given() {
				out.Header.Del("Accept-Encoding")
			}
			// mutant: keys of engines
			if to.Key != "" {
				out.Header.Set("Authorization", "Bearer "+to.Key)
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if err := unwell(r, lives); err != nil {
				return err
			}
			r.Header.Del(headerID) // the client has it
			p.stream = isStream(r.Header)
			p.signs.end()
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, failed error) { err = failed },
		ErrorLog:     silent, // the client gets the error
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
	if err == nil {
		p.finish()
	}
	return err
}

// final leaves out what an engine sends before its answer (1xx). The proxy would write it while signs of life are written.
type final struct {
	http.RoundTripper
	ctx context.Context
}

func (f final) RoundTrip(r *http.Request) (*http.Response, error) {
	return f.RoundTripper.RoundTrip(r.WithContext(f.ctx))
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
	case errors.Is(err, httplimit.ErrFull):
		return &apierror.Error{Status: http.StatusServiceUnavailable, Kind: apierror.Server, Code: "busy", Message: err.Error(), Retry: 1}
	case errors.As(err, &engine):
		return &apierror.Error{Status: http.StatusBadGateway, Kind: apierror.Server, Code: "engine_failed", Message: engine.Error()}
	}
	return &apierror.Error{Status: http.StatusInternalServerError, Kind: apierror.Server, Message: err.Error()}
}
