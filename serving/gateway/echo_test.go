package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"medusa/serving/agent"
)

// echo is an engine whose answers a test makes. Its starts wait for a channel, if there is one.
type echo struct {
	handler http.HandlerFunc
	starts  <-chan error // nil: at once
	server  *http.Server
	url     string
	ended   chan struct{}
	once    sync.Once
}

func (e *echo) Start(ctx context.Context) error {
	if e.starts != nil {
		select {
		case err := <-e.starts:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e.url, e.server = "http://"+l.Addr().String(), &http.Server{Handler: e.handler}
	go func() { _ = e.server.Serve(l) }()
	return nil
}

func (e *echo) Stop() {
	e.once.Do(func() {
		if e.server != nil {
			_ = e.server.Close()
		}
		close(e.ended)
	})
}

func (e *echo) URL() string                          { return e.url }
func (e *echo) Key() string                          { return "" }
func (e *echo) Healthy(context.Context) error        { return nil }
func (e *echo) Sleep(context.Context, int) error     { return nil }
func (e *echo) Wake(context.Context) error           { return nil }
func (e *echo) HostMemory() int64                    { return 0 }
func (e *echo) DeviceMemory(context.Context) float64 { return 0 }
func (e *echo) Ended() <-chan struct{}               { return e.ended }
func (e *echo) Err() error                           { return errors.New("stopped") }

// port is a server on a real listener, in front of engines whose answers a test makes.
type port struct {
	*Server
	at   string // its address
	said said
}

// echoes serves models of a file as the command does.
func echoes(t *testing.T, text string, starts <-chan error, handler http.HandlerFunc) *port {
	t.Helper()
	before := runtime.NumGoroutine()
	s, err := parse("/nowhere/serve.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	f := &port{}
	f.Server, err = New(s, Options{Out: io.MultiWriter(t.Output(), &f.said), Make: func(*Model, string) agent.Engine {
		return &echo{handler: handler, starts: starts, ended: make(chan struct{})}
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.at = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(ctx, l) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				buf := make([]byte, 1<<20)
				t.Fatalf("%d goroutines are left, %d were there\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
			}
		}
	})
	return f
}

const two = "gpus: ['0']\nretry: 0\nmodels:\n- {name: org/a, memory: 0.5, command: ['{port}'], aliases: [short]}\n- {name: b, memory: 0.5, command: ['{port}']}\n"

const one = "gpus: ['0']\nretry: 0\nmodels:\n- {name: a, command: ['{port}']}\n"

// mirror answers with the request as the engine got it.
func mirror(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, "%s %s\nlength %d, transfer %v\n", r.Method, r.URL, r.ContentLength, r.TransferEncoding)
	for _, name := range []string{"Authorization", "X-Api-Key", "Content-Encoding", "Content-Type", "Expect", "Upgrade", "X-Request-Id", "Traceparent", "Tracestate"} {
		if v := r.Header.Get(name); v != "" {
			fmt.Fprintf(w, "%s: %s\n", name, v)
		}
	}
	fmt.Fprintf(w, "\n%s", body)
}

// raw sends bytes and returns what comes until the end of the connection.
func (f *port) raw(t *testing.T, text string, halfClose bool) string {
	t.Helper()
	c := f.dial(t)
	// The server may refuse and close before all is sent.
	_, _ = io.Copy(c, strings.NewReader(text))
	if halfClose {
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	var got bytes.Buffer
	_, _ = io.Copy(&got, c) // a reset ends it, too
	return got.String()
}

func (f *port) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", f.at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c
}

// post is a request in the form of HTTP/1.1.
func post(path, body string, headers ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n%s", path, len(body),
		strings.Join(append(headers, ""), "\r\n"), body)
}

// counted returns how often requests of a model have ended with a status.
func (g *Server) counted(model string, status int) int {
	g.count.mu.Lock()
	defer g.count.mu.Unlock()
	return g.count.answers[model][status]
}
