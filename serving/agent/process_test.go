package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	patience = 2 * time.Minute
	listenAt = "AGENT_TEST_LISTEN" // this program is an engine that listens there
)

func TestMain(m *testing.M) {
	if address := os.Getenv(listenAt); address != "" {
		_ = http.ListenAndServe(address, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		return
	}
	os.Exit(m.Run())
}

// An engine is ready if its own process answers. That may be a grandchild of its command.
func TestProcessStarts(t *testing.T) {
	for _, address := range []string{"127.0.0.1:{port}", ":{port}"} {
		p := NewProcess("m", []string{"/bin/sh", "-c", os.Args[0] + " & wait"}, append(os.Environ(), listenAt+"="+address), nil, io.Discard)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := p.Start(ctx); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		cancel()
		// A Go program, its shell and its guard hold some MiB, and not the memory of this program.
		if held := p.HostMemory(); held < 1<<20 || held > 200<<20 {
			t.Errorf("%s: the engine holds %d bytes of host memory", address, held)
		}
		p.Stop()
		if held := p.HostMemory(); held != 0 {
			t.Errorf("%s: after its end, the engine holds %d bytes", address, held)
		}
		if err := p.Healthy(t.Context()); err == nil {
			t.Errorf("%s: it answers after its end", address)
		}
	}
}

// foreign listens on the port of an engine that does not, and returns the number of health checks that it gets.
func foreign(t *testing.T, file string, answer http.HandlerFunc) *atomic.Int32 {
	t.Helper()
	var asked atomic.Int32
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		port, _ := os.ReadFile(file)
		if !strings.HasSuffix(string(port), "\n") {
			if time.Now().After(end) {
				t.Fatal("no engine was started")
			}
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:"+strings.TrimSpace(string(port)))
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			answer(w, r)
		})}
		t.Cleanup(func() { _ = s.Close() })
		go func() { _ = s.Serve(l) }()
		return &asked
	}
}

// A program that has taken the port of an engine is not the engine, even if it answers health checks.
func TestForeignProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "port")
	p := NewProcess("m", []string{"/bin/sh", "-c", "echo {port} > " + file + "; exec sleep 1000"}, os.Environ(), nil, io.Discard)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- p.Start(ctx) }()
	asked := foreign(t, file, func(http.ResponseWriter, *http.Request) {})
	for asked.Load() < 3 {
		select {
		case err := <-started:
			t.Fatalf("the start returns %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-started; err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("the start returns %v", err)
	}
}

// An engine behind a wrapper, whose processes are not the command's, is known by its key: it refuses other keys, and serves the model.
func TestEngineBehindAWrapper(t *testing.T) {
	for _, row := range []struct {
		what   string
		want   bool
		strict bool   // refuses other keys
		model  string // that it lists
		key    string // that it takes; "": the one that it was given
	}{
		{"the engine", true, true, "m", ""},
		{"a program that takes any key", false, false, "m", ""},
		{"an engine with another key", false, true, "m", "other"},
		{"an engine of another model", false, true, "n", ""},
	} {
		file := filepath.Join(t.TempDir(), "port")
		p := NewProcess("m", []string{"/bin/sh", "-c", "echo $KEY > " + file + ".key; echo {port} > " + file + "; exec sleep 1000"},
			append(os.Environ(), "KEY={key}"), nil, io.Discard)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		started := make(chan error, 1)
		go func() { started <- p.Start(ctx) }()
		var models atomic.Int32
		foreign(t, file, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" {
				return
			}
			models.Add(1)
			key := row.key
			if key == "" {
				data, _ := os.ReadFile(file + ".key")
				key = strings.TrimSpace(string(data))
			}
			if row.strict && r.Header.Get("Authorization") != "Bearer "+key {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprintf(w, `{"object": "list", "data": [{"id": "n0"}, {"id": %q}]}`, row.model)
		})
		if row.want {
			if err := <-started; err != nil {
				t.Errorf("%s: %v", row.what, err)
			}
			p.Stop()
		} else {
			for models.Load() < 6 && len(started) == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
			if err := <-started; err == nil || !strings.Contains(err.Error(), "another program") {
				t.Errorf("%s: the start returns %v", row.what, err)
			}
		}
		cancel()
	}
}

// Sockets of another user at the port of an engine are not trusted. The lines are those of /proc/net/tcp.
func TestListeners(t *testing.T) {
	const of = "   0: %s:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 %5d        0 4711 1 0000000000000000 100 0 0 10 0"
	for _, row := range []struct {
		users []int
		want  bool
	}{{nil, true}, {[]int{1000}, true}, {[]int{0}, true}, {[]int{1001}, false}, {[]int{1000, 65534}, false}} {
		var list []socket
		for _, user := range row.users {
			s, ok := listener(fmt.Sprintf(of, "0100007F", user), 8080)
			if !ok || s.link != "socket:[4711]" {
				t.Fatalf("%+v, %v", s, ok)
			}
			list = append(list, s)
		}
		if got := trusted(list, 1000); got != row.want {
			t.Errorf("sockets of users %v: trusted %v", row.users, got)
		}
	}
	if s, ok := listener(fmt.Sprintf(of, "0100007F", 0), 8081); ok {
		t.Errorf("%+v is found for another port", s)
	}
}

// The end of an engine ends its start, even if another program holds a health check open.
func TestEndWithinHealthCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "port")
	script := fmt.Sprintf("echo {port} > %s; until [ -e %[1]s.end ]; do sleep 0.01; done; echo address in use; exit 3", file)
	p := NewProcess("m", []string{"/bin/sh", "-c", script}, os.Environ(), nil, io.Discard)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- p.Start(ctx) }()
	asked := foreign(t, file, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for asked.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := os.WriteFile(file+".end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err == nil || !strings.Contains(err.Error(), "address in use") || ctx.Err() != nil {
		t.Errorf("the start returns %v", err)
	}
}

// An engine that redirects does not lend its key, or its health, to another program.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	engine := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer engine.Close()
	p := &Process{url: engine.URL, key: "key"}
	if err := p.Healthy(t.Context()); err == nil || asked.Load() > 0 {
		t.Errorf("%v, the other program was asked %d times", err, asked.Load())
	}
}
