package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"medusa/serving/agent/link"
	"medusa/serving/picker/settings"
)

// fakeAgent sends the reports that a test sets.
type fakeAgent struct {
	*httptest.Server
	secret link.Secret

	mu     sync.Mutex
	report link.Report
	silent bool // it never answers
}

func newAgent(t *testing.T, secret string) *fakeAgent {
	t.Helper()
	a := &fakeAgent{secret: link.Secret(secret), report: link.Report{Boot: rand.Text(), Models: []link.Model{{Name: "a", Memory: 1, Slots: 1}}}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.report.Version++
		data, err := json.Marshal(a.report)
		silent := a.silent
		a.mu.Unlock()
		if err != nil {
			t.Error(err)
		}
		if silent {
			<-r.Context().Done()
			return
		}
		if err := a.secret.CheckAsk(r.Header.Get(link.HeaderProof), time.Now(), []netip.AddrPort{netip.MustParseAddrPort(a.address())}); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		time.Sleep(5 * time.Millisecond)
		w.Header().Set(link.HeaderProof, a.secret.Seal(r.Header.Get(link.HeaderProof), data))
		_, _ = w.Write(data)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *fakeAgent) address() string { return a.Listener.Addr().String() }

func (a *fakeAgent) set(change func(a *fakeAgent)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

// output collects the lines that a server prints.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) { o.mu.Lock(); defer o.mu.Unlock(); return o.b.Write(p) }
func (o *output) String() string              { o.mu.Lock(); defer o.mu.Unlock(); return o.b.String() }

func startServer(t *testing.T) (p *Server, health healthpb.HealthClient, out *output) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(strings.Repeat("s", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	out = &output{}
	p, err := New(&settings.Settings{Secret: path, MaxWaiting: 9, MaxBody: 1 << 20, MaxEndpoints: 4, Gone: 0.5, Models: []settings.Model{{Name: "a", Weight: 1, Timeout: 9}}}, out, nil)
	if err == nil {
		t.Fatal("a policy without a name is one")
	}
	s := &settings.Settings{Secret: path, MaxWaiting: 9, MaxBody: 1 << 20, MaxEndpoints: 4, Gone: 0.5, Models: []settings.Model{{Name: "a", Weight: 1, Timeout: 9}}}
	s.Policy.Name = "fcfs"
	if p, err = New(s, out, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var listeners []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	ended := make(chan error)
	go func() { ended <- p.Serve(ctx, listeners[0], listeners[1]) }()
	conn, err := grpc.NewClient(listeners[0].Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p, healthpb.NewHealthClient(conn), out
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// A picker is alive at once. It is ready after it has asked each agent, even if one does not
// answer.
func TestHealth(t *testing.T) {
	p, health, _ := startServer(t)
	is := func(service string) healthpb.HealthCheckResponse_ServingStatus {
		r, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		return r.Status
	}
	ready := []string{"readiness", "envoy.service.ext_proc.v3.ExternalProcessor", ""}
	for _, service := range ready {
		if got := is(service); got != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("%q before any endpoint is known: %v", service, got)
		}
	}
	if got := is("liveness"); got != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("liveness: %v", got)
	}
	good, slow := newAgent(t, strings.Repeat("s", 40)), newAgent(t, strings.Repeat("s", 40))
	slow.set(func(a *fakeAgent) { a.silent = true })
	if err := p.Use(t.Context(), []string{good.address(), slow.address()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the good agent does not report", func() bool { return p.fleet.Up() == 1 })
	if got := is("readiness"); got != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("before the slow agent has had its time: %v", got)
	}
	eventually(t, "it is never ready", func() bool { return is("readiness") == healthpb.HealthCheckResponse_SERVING })
	for _, service := range ready {
		if got := is(service); got != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v", service, got)
		}
	}
	page := httptest.NewRecorder()
	if p.pages().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/ready", http.NoBody)); page.Code != http.StatusOK {
		t.Errorf("/ready: status %d", page.Code)
	}
}

func TestAgentsComeAndGo(t *testing.T) {
	p, _, out := startServer(t)
	a, b := newAgent(t, strings.Repeat("s", 40)), newAgent(t, strings.Repeat("s", 40))
	stranger := newAgent(t, strings.Repeat("z", 40))
	if err := p.Use(t.Context(), []string{a.address(), b.address(), stranger.address()}); err != nil {
		t.Fatal(err)
	}
	up := func(n int) {
		t.Helper()
		eventually(t, "the number of endpoints is not what it should be:\n"+out.String(), func() bool { return p.fleet.Up() == n })
	}
	up(2) // an agent with another secret does not count
	a.set(func(a *fakeAgent) { a.silent = true })
	up(1)
	a.set(func(a *fakeAgent) { a.silent = false })
	up(2)
	b.set(func(a *fakeAgent) { a.report.Leaving = true })
	up(1)
	b.set(func(a *fakeAgent) { a.report.Leaving = false })
	up(2)
	if err := p.Use(t.Context(), []string{a.address()}); err != nil {
		t.Fatal(err)
	}
	up(1)
	if err := p.Use(t.Context(), []string{"1.1.1.1:1", "1.1.1.1:2", "1.1.1.1:3", "1.1.1.1:4", a.address()}); err == nil {
		t.Error("five endpoints have four places")
	}
	up(1)
	if !strings.Contains(out.String(), stranger.address()+" does not report") {
		t.Errorf("nobody says why the stranger is no endpoint:\n%s", out.String())
	}
}
