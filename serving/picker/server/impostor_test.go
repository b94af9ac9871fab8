package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"medusa/serving/agent"
	"medusa/serving/gateway"
	"medusa/test/stubengine"
)

// realAgent starts an agent with the picker's secret, and returns its address.
func realAgent(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"secret": strings.Repeat("s", 40),
		"agent.yaml": "gpus: [x]\nagent: {listen: ['127.0.0.1:0'], secret: secret}\nmodels:\n- {name: a, command: [e, '{port}']}\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := gateway.Load(filepath.Join(folder, "agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := gateway.NewNode(spec, gateway.Options{Out: t.Output(), Make: func(m *gateway.Model, _ string) agent.Engine {
		return stubengine.New(stubengine.Stub{Model: m.Name})
	}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := n.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- n.Serve(ctx, list) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return list[0].Addr().String()
}

// A program without the secret does not become an endpoint with the help of an agent that has it.
func TestImpostors(t *testing.T) {
	real := realAgent(t)
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+real+r.URL.RequestURI(), http.StatusFound)
		},
		"relays": func(w http.ResponseWriter, r *http.Request) {
			r2, err := http.NewRequest(r.Method, "http://"+real+r.URL.RequestURI(), r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			r2.Header = r.Header
			response, err := http.DefaultTransport.RoundTrip(r2)
			if err != nil {
				return
			}
			defer response.Body.Close()
			for key, values := range response.Header {
				w.Header()[key] = values
			}
			w.WriteHeader(response.StatusCode)
			_, _ = io.Copy(w, response.Body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			impostor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer(w, r)
				asked.Add(1)
			}))
			t.Cleanup(impostor.Close)
			p, _, out := startServer(t)
			if err := p.Use(t.Context(), []string{impostor.Listener.Addr().String()}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the impostor was not asked", func() bool { return asked.Load() > 2 })
			if p.fleet.Up() != 0 {
				t.Errorf("the impostor is an endpoint:\n%s", out)
			}
			if err := p.Use(t.Context(), []string{impostor.Listener.Addr().String(), real}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the agent is no endpoint:\n"+out.String(), func() bool { return p.fleet.Up() == 1 })
			time.Sleep(2 * askAgain)
			if p.fleet.Up() != 1 {
				t.Errorf("the impostor is an endpoint beside the agent:\n%s", out)
			}
		})
	}
}

// One GPU of an agent is one endpoint, if its agent knows two addresses of it, too.
func TestOneGPUIsOneEndpoint(t *testing.T) {
	p, _, out := startServer(t)
	a, b := newAgent(t, strings.Repeat("s", 40)), newAgent(t, strings.Repeat("s", 40))
	for _, x := range []*fakeAgent{a, b} {
		x.set(func(x *fakeAgent) { x.report.Boot, x.report.GPU = "one", "0" })
	}
	if err := p.Use(t.Context(), []string{a.address(), b.address()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nobody says that a GPU is there twice:\n"+out.String(), func() bool { return strings.Contains(out.String(), "is the GPU of endpoint") })
	if n := p.fleet.Up(); n != 1 {
		t.Errorf("one GPU is %d endpoints:\n%s", n, out)
	}
	b.set(func(x *fakeAgent) { x.report.GPU = "1" })
	eventually(t, "another GPU of the agent is no endpoint:\n"+out.String(), func() bool { return p.fleet.Up() == 2 })
}
