package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
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

// An engine is ready if its own process answers, which may be a grandchild of its command.
func TestProcessStarts(t *testing.T) {
	for _, address := range []string{"127.0.0.1:{port}", ":{port}"} {
		p := NewProcess([]string{"/bin/sh", "-c", os.Args[0] + " & wait"}, append(os.Environ(), listenAt+"="+address), io.Discard)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := p.Start(ctx); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		cancel()
		p.Stop()
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

// A program that has taken the port of an engine is not the engine, however well it answers.
func TestForeignProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "port")
	p := NewProcess([]string{"/bin/sh", "-c", "echo {port} > " + file + "; exec sleep 1000"}, os.Environ(), io.Discard)
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

// The end of an engine ends its start, even if another program holds a health check open.
func TestEndWithinHealthCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "port")
	script := fmt.Sprintf("echo {port} > %s; until [ -e %[1]s.end ]; do sleep 0.01; done; echo address in use; exit 3", file)
	p := NewProcess([]string{"/bin/sh", "-c", script}, os.Environ(), io.Discard)
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
