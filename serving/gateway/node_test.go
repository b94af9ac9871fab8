package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"medusa/serving/agent"
	"medusa/serving/agent/link"
	"medusa/test/stubengine"
)

// nodeFixture is an agent of two GPUs with stub engines.
type nodeFixture struct {
	*Node
	t    *testing.T
	urls []string
}

const nodeSpec = `
gpus: [x, y]
retry: 100
agent: {listen: ["127.0.0.1:0", "127.0.0.1:0"], secret: secret}
models:
- {name: m0, memory: 0.6, slots: 1, command: [e, "{port}"]}
- {name: m1, memory: 0.6, slots: 1, command: [e, "{port}"]}
- {name: m2, memory: 0.3, slots: 2, command: [e, "{port}"]}
`

func startNode(t *testing.T, change func(s *stubengine.Stub)) *nodeFixture {
	t.Helper()
	before := runtime.NumGoroutine()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	for name, text := range map[string]string{path: nodeSpec, filepath.Join(filepath.Dir(path), "secret"): strings.Repeat("x", 40)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNode(spec, Options{Out: t.Output(), Make: func(m *Model, _ string) agent.Engine {
		s := stubengine.Stub{Model: m.Name, Service: 20 * time.Millisecond, Pieces: 4}
		if change != nil {
			change(&s)
		}
		return stubengine.New(s)
	}})
	if err != nil {
		t.Fatal(err)
	}
	f := &nodeFixture{Node: n, t: t}
	list, err := n.Listen()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list {
		f.urls = append(f.urls, "http://"+l.Addr().String())
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- n.Serve(ctx, list) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before+2*len(f.urls) && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
	})
	return f
}

// ask sends a request with a ticket, and returns status, body and header.
func (f *nodeFixture) ask(ctx context.Context, gpu int, id, model, prompt string) (status int, body string, h http.Header) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.urls[gpu]+"/v1/completions", strings.NewReader(fmt.Sprintf(`{"model": %q, "prompt": %q}`, model, prompt)))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(link.HeaderTicket, f.secret.Ticket(id, model, time.Now().Add(time.Minute)))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer response.Body.Close()
	data, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(data), response.Header
}

// report asks for a report, as a picker does.
func (f *nodeFixture) report(gpu int, query string) *link.Report {
	f.t.Helper()
	r, err := http.NewRequest(http.MethodGet, f.urls[gpu]+link.ReportPath+"?"+query, http.NoBody)
	if err != nil {
		f.t.Fatal(err)
	}
	proof := f.secret.Ask(time.Now(), strings.TrimPrefix(f.urls[gpu], "http://"))
	r.Header.Set(link.HeaderProof, proof)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		f.t.Fatalf("status %d: %s, %v", response.StatusCode, data, err)
	}
	if err := f.secret.CheckSeal(response.Header.Get(link.HeaderProof), proof, data); err != nil {
		f.t.Error(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	out := &link.Report{}
	if err := d.Decode(out); err != nil {
		f.t.Fatal(err)
	}
	return out
}

func TestNodeAnswers(t *testing.T) {
	f := startNode(t, nil)
	for gpu := range f.urls {
		status, body, h := f.ask(t.Context(), gpu, fmt.Sprint("p.", gpu), "m0", "hello")
		if status != 200 || !strings.Contains(body, "m0 repeats hello") || h.Get(link.HeaderHeld) == "" {
			t.Errorf("GPU %d: %d %s %v", gpu, status, body, h)
		}
		r := f.report(gpu, "")
		if len(r.Models) != 3 || len(r.Engines) != 1 || r.Engines[0].State != agent.Awake || !r.Engines[0].Wanted || len(r.Requests) != 0 {
			t.Errorf("GPU %d reports %+v", gpu, r)
		}
		if len(r.Ended) != 1 || r.Ended[0].ID != fmt.Sprint("p.", gpu) || r.Ended[0].Service < 0.02 {
			t.Errorf("GPU %d: ended %+v", gpu, r.Ended)
		}
		if s := r.Models[0].Service; s < 0.02 || s >= 1 {
			t.Errorf("the estimate is %g, measured was %g", s, r.Ended[0].Service)
		}
	}
}

// A request without a ticket is refused, and so is one for a report without a proof.
func TestNodeRefusesStrangers(t *testing.T) {
	f := startNode(t, nil)
	for name, ticket := range map[string]string{"none": "", "of another model": f.secret.Ticket("p.1", "m1", time.Now().Add(time.Minute)),
		"too old": f.secret.Ticket("p.1", "m0", time.Now().Add(-time.Minute)), "of another secret": link.Secret(strings.Repeat("y", 40)).Ticket("p.1", "m0", time.Now().Add(time.Minute))} {
		r, _ := http.NewRequest(http.MethodPost, f.urls[0]+"/v1/completions", strings.NewReader(`{"model": "m0", "prompt": "x"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(link.HeaderTicket, ticket)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("a ticket that is %s: status %d", name, response.StatusCode)
		}
	}
	response, err := http.Get(f.urls[0] + link.ReportPath)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a report without a proof: status %d", response.StatusCode)
	}
	if r := f.report(0, ""); len(r.Engines) != 0 {
		t.Errorf("a stranger has started an engine: %+v", r.Engines)
	}
}

// If there are more requests than places, the others are held, in order, and each is
// answered. The report says which are held.
func TestNodeHolds(t *testing.T) {
	f := startNode(t, func(s *stubengine.Stub) { s.Load = 50 * time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 12 {
		model := []string{"m0", "m1", "m2"}[i%3] // m0 and m1 do not fit together
		wg.Go(func() {
			if status, body, _ := f.ask(ctx, 0, fmt.Sprint("p.", i), model, "x"); status != 200 {
				t.Errorf("request %d: %d %s", i, status, body)
			}
		})
	}
	most := 0
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
			held := 0
			for _, q := range f.report(0, "").Requests {
				if q.Held {
					held++
				}
			}
			most = max(most, held)
		}
	}
	if most == 0 {
		t.Error("no report has a request that is held")
	}
	if r := f.report(0, ""); len(r.Requests) != 0 || len(r.Ended) != 12 {
		t.Errorf("afterwards: %d requests, %d have ended", len(r.Requests), len(r.Ended))
	}
}

// A client that leaves while its request is held gives its place up.
func TestNodeLeavers(t *testing.T) {
	f := startNode(t, func(s *stubengine.Stub) { s.Load = 200 * time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	for _, model := range []string{"m0", "m1"} {
		if status, body, _ := f.ask(ctx, 0, "p."+model, model, "x"); status != 0 {
			t.Errorf("%s: %d %s", model, status, body)
		}
	}
	if status, body, _ := f.ask(t.Context(), 0, "p.3", "m1", "x"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if r := f.report(0, ""); len(r.Requests) != 0 {
		t.Errorf("requests %+v", r.Requests)
	}
}

func TestNodeEngineFails(t *testing.T) {
	f := startNode(t, nil)
	if status, body, _ := f.ask(t.Context(), 0, "p.1", "m0", stubengine.Die); status != 502 || !strings.Contains(body, "engine_failed") {
		t.Errorf("%d %s", status, body)
	}
	r := f.report(0, "")
	if len(r.Engines) != 1 || r.Engines[0].State != agent.Failed || r.Engines[0].Retry <= 0 || r.Engines[0].Error == "" {
		t.Errorf("engines %+v", r.Engines)
	}
	if len(r.Ended) != 1 || r.Ended[0].Service != 0 {
		t.Errorf("ended %+v", r.Ended)
	}
	if status, _, _ := f.ask(t.Context(), 0, "p.2", "m0", "x"); status != 502 {
		t.Errorf("before retry has passed: %d", status)
	}
	if status, _, _ := f.ask(t.Context(), 1, "p.3", "m0", "x"); status != 200 {
		t.Errorf("the other GPU: %d", status)
	}
}

// A report that a picker has seen is not sent again before there is a change.
func TestReportsWait(t *testing.T) {
	f := startNode(t, nil)
	r := f.report(0, "")
	again := fmt.Sprintf("boot=%s&after=%d&wait=60s", r.Boot, r.Version)
	if f.report(0, "boot=another&after=9&wait=60s") == nil {
		t.Error("a picker that knows another process has to wait")
	}
	began := time.Now()
	go func() {
		time.Sleep(50 * time.Millisecond)
		f.ask(context.Background(), 0, "p.1", "m0", "x")
	}()
	if next := f.report(0, again); next.Version <= r.Version || time.Since(began) < 50*time.Millisecond || time.Since(began) > 30*time.Second {
		t.Errorf("version %d after %v", next.Version, time.Since(began))
	}
	if next := f.report(0, fmt.Sprintf("boot=%s&after=1000000&wait=30ms", r.Boot)); next.Leaving {
		t.Error("it is not about to end")
	}
	f.cards[0].news.close()
	if next := f.report(0, again); !next.Leaving {
		t.Error("an agent that ends does not say so")
	}
}

func TestNodeSpec(t *testing.T) {
	for _, row := range []struct{ from, to, want string }{
		{`secret: secret`, ``, "secret is missing"},
		{`["127.0.0.1:0", "127.0.0.1:0"]`, `["127.0.0.1:0"]`, "1 addresses for 2 GPUs"},
		{`["127.0.0.1:0", "127.0.0.1:0"]`, `["127.0.0.1:0", "x"]`, "no address with a port"},
		{`secret: secret`, `secret: secret, advertise: ["10.0.0.1:1"]`, "1 addresses for 2 GPUs"},
		{`secret: secret`, `secret: secret, advertise: ["10.0.0.1:1", "name:2"]`, "not an IP address with a port"},
	} {
		if _, err := parse("agent.yaml", []byte(strings.Replace(nodeSpec, row.from, row.to, 1))); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.to, err)
		}
	}
	s, err := parse("agent.yaml", []byte(strings.Replace(nodeSpec, "agent:", "#", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewNode(s, Options{}); err == nil || !strings.Contains(err.Error(), "needs the section agent") {
		t.Error(err)
	}
}
