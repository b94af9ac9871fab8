package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"medusa/serving/agent"
	"medusa/serving/dispatch"
	"medusa/test/stubengine"
)

// patience is enough for a loaded machine.
const patience = 2 * time.Minute

// fixture is a server whose engines are stubs in this process.
type fixture struct {
	*Server
	url  string
	log  bytes.Buffer
	said said         // what the server has printed
	live atomic.Int32 // engines that were started and not stopped
}

// start makes a server from YAML. The models' commands are never run. At the end no engine and no goroutine is left, and the log replays.
func start(t *testing.T, config string, change func(fn int, s *stubengine.Stub)) *fixture {
	t.Helper()
	before := runtime.NumGoroutine()
	s, err := parse("serve.yaml", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{}
	log := dispatch.NewLog(&f.log)
	f.Server, err = New(s, Options{Log: log, Out: io.MultiWriter(t.Output(), &f.said), Make: func(m *Model, _ string) agent.Engine {
		var fn int
		if _, err := fmt.Sscanf(m.Name, "m%d", &fn); err != nil {
			t.Error(err)
		}
		stub := stubengine.Stub{Model: m.Name, Service: time.Millisecond, Pieces: 4, Observe: func(what string) {
			switch what {
			case "start":
				f.live.Add(1)
			case "stop":
				f.live.Add(-1)
			}
		}}
		if change != nil {
			change(fn, &stub)
		}
		return stubengine.New(stub)
	}})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(f.Handler())
	f.url = front.URL
	t.Cleanup(func() {
		front.Close()
		f.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		if waiting, running := f.queue.Queued(); waiting+running != 0 {
			t.Errorf("%d requests wait and %d run at the end", waiting, running)
		}
		r, err := dispatch.Replay(bytes.NewReader(f.log.Bytes()))
		if err != nil {
			t.Errorf("replay the log: %v", err)
		}
		t.Logf("replayed: %+v", r)
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				buf := make([]byte, 1<<20)
				t.Fatalf("%d goroutines are left, %d were there\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
			}
		}
	})
	return f
}

// said is text that many goroutines write and read.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// config has n models that need half a GPU each, on two GPUs.
func config(policy string, n int, more string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "gpus: ['0', '1']\npolicy: {name: %s}\nretry: 0\nhost_memory_gb: 1\n%smodels:\n", policy, more)
	for i := range n {
		fmt.Fprintf(&out, "- {name: m%d, command: [engine, '{port}'], memory: 0.5, deadline: 5, slots: 2, start: 0.01, service: 0.01, sleep: %d, asleep: 0.05}\n", i, i%3)
	}
	return out.String()
}

// Many clients of many models get their own answers under every policy, streamed and not. Some leave, and some kill the engine that they
// have. No other request fails.
func TestServe(t *testing.T) {
	for _, policy := range []string{"mqfq", "torpor", "lalbo3", "fcfs"} {
		t.Run(policy, func(t *testing.T) {
			f := start(t, config(policy, 6, ""), nil)
			var all sync.WaitGroup
			for i := range 240 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					model, prompt := fmt.Sprint("m", i%5), fmt.Sprint("prompt ", i)
					if i%10 == 0 { // a client that leaves
						time.AfterFunc(time.Duration(i%7)*time.Millisecond, cancel)
						_, _ = stubengine.Ask(ctx, f.url, model, prompt, i%20 == 0)
						return
					}
					text, err := stubengine.Ask(ctx, f.url, model, prompt, i%2 == 0)
					if want := stubengine.Answer(model, prompt); err != nil || text != want {
						t.Errorf("request %d: %q, %v; want %q", i, text, err, want)
					}
				})
			}
			for i := range 12 {
				all.Go(func() { // m5 only gets requests that fail
					prompt := []string{stubengine.Die, stubengine.Break, stubengine.Garbage}[i%3]
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					if text, err := stubengine.Ask(ctx, f.url, "m5", prompt, true); err == nil {
						t.Errorf("%s is answered by %q", prompt, text)
					}
				})
			}
			all.Wait()
		})
	}
}

var failureID = regexp.MustCompile(`failure ([A-Z0-9]{10})\b`)

// If its engine fails, a client gets a clear error, as the whole answer or as the last event of its stream. It does not get the cause, which may be
// the last line of the engine and repeat what another client has asked: it gets the name by which the log has the cause.
func TestEngineFails(t *testing.T) {
	f := start(t, config("fcfs", 2, ""), func(fn int, s *stubengine.Stub) {
		if fn == 1 {
			s.Refuses = errors.New("no kernel image")
		}
	})
	for _, row := range []struct{ model, prompt, want string }{
		{"m0", stubengine.Die, "engine_failed"}, {"m0", stubengine.Garbage, "engine_failed"}, {"m1", "x", "engine_failed"},
	} {
		var got *stubengine.StatusError
		if text, err := stubengine.Ask(t.Context(), f.url, row.model, row.prompt, false); !errors.As(err, &got) || got.Status != 502 || !strings.Contains(got.Body, row.want) {
			t.Errorf("%s of %s: %q, %v; want status 502 and %q", row.prompt, row.model, text, err, row.want)
			continue
		}
		id := failureID.FindStringSubmatch(got.Body)
		if id == nil || strings.Contains(got.Body, "kernel") || strings.Contains(got.Body, "malformed") || !regexp.MustCompile("failure "+id[1]+": .").MatchString(f.said.String()) {
			t.Errorf("%s of %s: %s; the log has %s", row.prompt, row.model, got.Body, f.said.String())
		}
	}
	if !strings.Contains(f.said.String(), "no kernel image") {
		t.Errorf("the cause is lost: %s", f.said.String())
	}
	text, err := stubengine.Ask(t.Context(), f.url, "m0", stubengine.Break, true)
	if err == nil || !strings.Contains(err.Error(), "error in the stream") || !strings.HasPrefix(stubengine.Answer("m0", stubengine.Break), text) || text == "" {
		t.Errorf("a stream that breaks off: %q, %v", text, err)
	}
	if text, err := stubengine.Ask(t.Context(), f.url, "m0", "x", false); err != nil || text != stubengine.Answer("m0", "x") {
		t.Errorf("afterwards: %q, %v", text, err)
	}
}

// If the engine of a request dies, the request is tried once more if no byte was answered yet.
func TestRetry(t *testing.T) {
	var starts atomic.Int32
	f := start(t, config("fcfs", 1, ""), func(_ int, s *stubengine.Stub) {
		if starts.Add(1) == 1 {
			s.Refuses = errors.New("out of memory")
		}
	})
	if text, err := stubengine.Ask(t.Context(), f.url, "m0", "x", false); err != nil || text != stubengine.Answer("m0", "x") || starts.Load() != 2 {
		t.Errorf("%q, %v after %d starts", text, err, starts.Load())
	}
}

// An engine that does not answer any more is ended, and its requests with it.
func TestHang(t *testing.T) {
	f := start(t, config("fcfs", 1, "health: 0.05\n"), nil)
	var got *stubengine.StatusError
	if text, err := stubengine.Ask(t.Context(), f.url, "m0", stubengine.Hang, false); !errors.As(err, &got) || got.Status != 502 {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := stubengine.Ask(t.Context(), f.url, "m0", "x", false); err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// If an engine closes a connection without an answer, its health is checked before the next request gets it.
func TestClosedConnection(t *testing.T) {
	f := start(t, config("fcfs", 1, ""), nil)
	var got *stubengine.StatusError
	if text, err := stubengine.Ask(t.Context(), f.url, "m0", stubengine.Cut, false); !errors.As(err, &got) || got.Status != 502 {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := stubengine.Ask(t.Context(), f.url, "m0", "x", false); err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// If an engine has died, the server in front of it answers with errors for some time. Requests do not get these errors: the engine is started
// again, and answers.
func TestErrorsOfADeadEngine(t *testing.T) {
	for _, stream := range []bool{false, true} {
		f := start(t, config("fcfs", 1, ""), func(_ int, s *stubengine.Stub) { s.Sicken = 3 })
		for i := range 8 {
			if text, err := stubengine.Ask(t.Context(), f.url, "m0", "x", stream); err != nil || text != stubengine.Answer("m0", "x") {
				t.Errorf("stream %t: request %d: %q, %v", stream, i, text, err)
			}
		}
	}
}

// An error of a healthy engine is about the request. The client gets it as it is.
func TestErrorsOfALivingEngine(t *testing.T) {
	starts := 0
	f := start(t, config("fcfs", 1, ""), func(_ int, _ *stubengine.Stub) { starts++ })
	for range 3 {
		var got *stubengine.StatusError
		if text, err := stubengine.Ask(t.Context(), f.url, "m0", stubengine.Fail, false); !errors.As(err, &got) || got.Status != 500 || !strings.Contains(got.Body, "the engine has failed") {
			t.Errorf("%q, %v", text, err)
		}
		if text, err := stubengine.Ask(t.Context(), f.url, "m0", stubengine.Fail, true); err == nil || !strings.Contains(err.Error(), "the engine has failed") {
			t.Errorf("stream: %q, %v", text, err)
		}
	}
	if starts != 1 {
		t.Errorf("the engine was started %d times", starts)
	}
}

// The server refuses these requests itself.
func TestRefusals(t *testing.T) {
	f := start(t, config("fcfs", 1, "max_body: 1000\n"), nil)
	f.setup.Load().keys = map[string]bool{"right": true, "also right": true}
	for _, row := range []struct {
		name, method, path, key, body string
		status                        int
		want                          string
	}{
		{"no key", "POST", "/v1/completions", "", `{"model": "m0", "prompt": "x"}`, 401, "invalid_api_key"},
		{"a wrong key", "GET", "/v1/models", "wrong", "", 401, "invalid_api_key"},
		{"half a key", "GET", "/v1/models", "righ", "", 401, "invalid_api_key"},
		{"metrics without a key", "GET", "/metrics", "", "", 401, "invalid_api_key"},
		{"health without a key", "GET", "/health", "", "", 200, ""},
		{"an unknown model", "POST", "/v1/completions", "right", `{"model": "m1"}`, 404, "model_not_found"},
		{"no JSON", "POST", "/v1/chat/completions", "right", `{"model": `, 400, "too early"},
		{"a large body", "POST", "/v1/completions", "right", `{"model": "m0", "prompt": "` + strings.Repeat("x", 1000) + `"}`, 413, "request_too_large"},
		{"another endpoint", "POST", "/v1/embedding", "right", "{}", 404, "unknown_url"},
		{"a model", "GET", "/v1/models", "also right", "", 200, `"id":"m0"`},
		{"an answer", "POST", "/v1/completions", "also right", `{"model": "m0", "prompt": "x"}`, 200, "repeats"},
		{"metrics", "GET", "/metrics", "right", "", 200, `medusa_serve_requests_total{model="m0",code="200"} 1`},
	} {
		r, err := http.NewRequestWithContext(t.Context(), row.method, f.url+row.path, strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if row.key != "" {
			r.Header.Set("Authorization", "Bearer "+row.key)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != row.status || !strings.Contains(string(text), row.want) {
			t.Errorf("%s: status %d, %s; want %d and %q", row.name, response.StatusCode, text, row.status, row.want)
		}
	}
}

// If too many requests of a model wait, the next one is refused, with a time to come again. Other models go on.
func TestBound(t *testing.T) {
	f := start(t, "gpus: ['0']\nmax_waiting: 3\npolicy: {name: lalb}\nmodels:\n"+
		"- {name: m0, command: [e, '{port}'], slots: 1, memory: 0.5, service: 4}\n- {name: m1, command: [e, '{port}'], memory: 0.5}\n",
		func(fn int, s *stubengine.Stub) {
			if fn == 0 {
				s.Service = time.Hour
			}
		})
	f.crowd(t, 4)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a request that waits is answered in an hour
	defer cancel()
	var got *stubengine.StatusError
	if _, err := stubengine.Ask(ctx, f.url, "m0", "x", false); !errors.As(err, &got) || got.Status != 429 || got.Retry != "12" {
		t.Errorf("%v, retry after %+v", err, got)
	}
	if _, err := stubengine.Ask(t.Context(), f.url, "m1", "x", false); err != nil {
		t.Errorf("another model: %v", err)
	}
}

// At its end, the server lets present requests end, takes no others, and stops its engines.
func TestDrain(t *testing.T) {
	f := start(t, config("mqfq", 1, ""), func(_ int, s *stubengine.Stub) { s.Service = 300 * time.Millisecond })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(ctx, l) }()
	url := "http://" + l.Addr().String()
	answered := make(chan error, 1)
	go func() {
		_, err := stubengine.Ask(t.Context(), url, "m0", "x", true)
		answered <- err
	}()
	for _, running := f.queue.Queued(); running == 0; _, running = f.queue.Queued() {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-answered; err != nil {
		t.Errorf("a request on its way: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := stubengine.Ask(t.Context(), url, "m0", "x", false); err == nil {
		t.Error("a request is answered after the end")
	}
	if f.live.Load() != 0 {
		t.Errorf("%d engines are left", f.live.Load())
	}
}
