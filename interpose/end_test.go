package interpose

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"medusa/interpose/trace"
)

func fakeDir(t *testing.T) string { return filepath.Dir(build(t, "build/test/fake/libcuda.so.1")) }

// After any orderly end of a process, its trace ends with the contents of its memory, even if a C program marks no phase.
func TestOrderlyEndSealsTheTrace(t *testing.T) {
	for _, c := range []struct {
		how  string
		exit int
	}{{"return", 0}, {"exit", 7}} {
		recs, _ := record(t, Config{}, c.exit, fakeDir(t), build(t, "build/test/end"), c.how)
		contents := of[*trace.Content](recs)
		if len(contents) != 2 || len(contents[0].Data) != 100 || len(contents[1].Data) != 200 || !bytes.Equal(contents[0].Data, make([]byte, 100)) {
			t.Errorf("%s: contents %v", c.how, contents)
		}
		p := recs[0].(*trace.Process)
		if len(p.Args) != 2 || p.Args[1] != c.how || !strings.HasSuffix(p.Exe, "/end") || p.Protocol != 1 {
			t.Errorf("%s: process %+v", c.how, p)
		}
	}
}

// A process that dies leaves a trace that is incomplete, with the records up to the last written chunk.
func TestDeathLeavesAnIncompleteTrace(t *testing.T) {
	for _, how := range []string{"kill", "kill-early", "_exit"} {
		path := filepath.Join(t.TempDir(), "trace")
		r := run(t, Config{Mode: Record, TracePath: path}, fakeDir(t), build(t, "build/test/end"), how)
		if how != "_exit" && r.signal != syscall.SIGKILL {
			t.Fatalf("%s: exit %d, signal %v", how, r.exit, r.signal)
		}
		recs, err := trace.ReadAll(path)
		var at *trace.Error
		if !errors.Is(err, trace.ErrIncomplete) || !errors.As(err, &at) || at.File != path || at.Offset == 0 || at.Section == "" {
			t.Errorf("%s: error %v, want ErrIncomplete with its place", how, err)
		}
		if n := len(of[*trace.Process](recs)); how == "kill-early" && n != 1 {
			t.Errorf("%s: %d process records, want 1", how, n)
		}
		if n := len(of[*trace.Alloc](recs)); how == "kill" && n != 2 {
			t.Errorf("%s: %d allocations before the last phase mark, want 2", how, n)
		}
	}
}

// "ready" seals the trace: it has the contents and no later event. The process continues unless it was told to exit.
func TestReadySealsTheTrace(t *testing.T) {
	for _, exit := range []bool{false, true} {
		recs, r := record(t, Config{ExitAtReady: exit}, 0, fakeDir(t), build(t, "build/test/end"), "ready")
		if got, want := r.stdout == "still here\n", !exit; got != want {
			t.Errorf("exit %v: output %q", exit, r.stdout)
		}
		if n := len(of[*trace.Alloc](recs)); n != 2 {
			t.Errorf("exit %v: %d allocations, want the 2 before ready", exit, n)
		}
		if c := of[*trace.Content](recs); len(c) != 1 || c[0].Alloc != 1 || len(c[0].Data) != 200 {
			t.Errorf("exit %v: contents %v, want those of the live allocation", exit, c)
		}
	}
}

// The first phase after the identity ends a process that should only state its identity. Other recordings continue.
func TestEndAtIdentity(t *testing.T) {
	for _, exit := range []bool{false, true} {
		recs, r := record(t, Config{ExitAtIdentity: exit}, 0, fakeDir(t), build(t, "build/test/end"), "identity")
		if got, want := r.stdout == "still here\n", !exit; got != want {
			t.Errorf("exit %v: output %q", exit, r.stdout)
		}
		if factors := of[*trace.Identity](recs); len(factors) != 2 || factors[1].Value != "1" {
			t.Errorf("exit %v: factors %v", exit, factors)
		}
	}
}

// No call of a forked child changes the parent's trace.
func TestForkedChildIsNotRecorded(t *testing.T) {
	recs, _ := record(t, Config{}, 0, fakeDir(t), build(t, "build/test/end"), "fork")
	if n := len(of[*trace.Alloc](recs)); n != 2 {
		t.Errorf("%d allocations, want the parent's 2", n)
	}
}

// A child of a process that has not used the driver is recorded.
func TestForkedEngineIsRecorded(t *testing.T) {
	recs, _ := record(t, Config{}, 0, fakeDir(t), build(t, "build/test/end"), "fork-first")
	if n := len(of[*trace.Alloc](recs)); n != 2 {
		t.Errorf("%d allocations, want the child's 2", n)
	}
}

// A second process that calls the driver does not overwrite the first one's trace, and prints a message.
func TestOneTraceOneProcess(t *testing.T) {
	recs, r := record(t, Config{}, 0, fakeDir(t), build(t, "build/test/end"), "twice")
	if n := len(of[*trace.Process](recs)); n != 1 {
		t.Errorf("%d process records", n)
	}
	if !strings.Contains(r.stderr, "is not recorded") {
		t.Errorf("the second process printed no message: %q", r.stderr)
	}
}
