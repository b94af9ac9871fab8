package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/materialize/compile"
	"medusa/restore/status"
	"medusa/test/testenv"
)

// Two threads allocate. Each has a fixed order; the total order varies. A start is recorded in one total order, and restored in every other.
func TestThreadsInAnyOrder(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	t.Setenv("ZOO_THREADS", "11122")
	path, art := materialized(t, zoo)
	if !art.Spec.Threaded() {
		t.Fatal("the artifact does not know its threads")
	}
	_, want := zooOutput(t, must(t, nil, "zoo"))
	for _, order := range []string{"11122", "22111", "21211", "12121"} {
		p, st := restored(t, []string{"ZOO_THREADS=" + order}, path, zoo)
		if isRestored, got := zooOutput(t, p); !isRestored || got != want {
			t.Errorf("order %s: restored %v (%s), outputs as native: %v", order, isRestored, st.Detail, got == want)
		}
	}
	p, st := restored(t, []string{"ZOO_THREADS=22111", "ZOO_TWINS=1"}, path, zoo)
	if isRestored, got := zooOutput(t, p); isRestored || got != want || st.Status != status.Native || !strings.Contains(st.Detail, "match threads") {
		t.Errorf("a thread that allocates something else: restored %v, %+v", isRestored, st)
	}
}

// Events of two threads are told apart by their flags alone: an artifact whose graphs could record the wrong one is not made.
func TestEventsOfTwoThreads(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	path := filepath.Join(t.TempDir(), "x.medusa")
	p := start(t, []string{"ZOO_THREADS=1211122", "ZOO_EVENTS=threads"}, "medusa", "materialize", "-o", path, "--", testenv.Path(t, "build", "zoo"))
	if p.code != 1 || !strings.Contains(p.stderr, "creates one with the same flags") {
		t.Errorf("exit %d, want a refusal\n%s", p.code, p.stderr)
	}
}

// The recordings themselves may differ in the total order, but not in the calls of a thread; the error says who called.
func TestRecordingsByThread(t *testing.T) {
	proven := func(a, b []string) error {
		zoo := testenv.Path(t, "build", "zoo")
		_, err := compiled(t, record(t, recordRun{variables: a}, zoo), recordRun{variables: b}, zoo)
		return err
	}
	if err := proven([]string{"ZOO_THREADS=11122"}, []string{"ZOO_THREADS=2211100"}); err != nil {
		t.Errorf("another total order: %v", err)
	}
	err := proven([]string{"ZOO_THREADS=11122"}, []string{"ZOO_THREADS=2211100", "ZOO_TWINS=1"})
	var sequence *compile.SequenceError
	if !errors.As(err, &sequence) || !strings.Contains(sequence.StackA, "zoo+0x") || !strings.Contains(sequence.StackB, "zoo+0x") {
		t.Errorf("another thread's sequence: %v", err)
	}
	err = proven([]string{"ZOO_THREADS=11122", "ZOO_TWINS=1"}, []string{"ZOO_THREADS=1122000", "ZOO_TWINS=1"})
	var refused *compile.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "which is which") {
		t.Errorf("two threads alike: %v", err)
	}
}

// The first start that captures may compile, and measure kernels in memory that no later start allocates. Here it is the second start, since
// the first one profiles. The recordings are made again, once.
func TestRecordingOfAStartThatCompiled(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	for _, c := range []struct {
		allocatesMore string // a condition on the number of the start
		exit          int
	}{{"$n = 2", 0}, {"$((n % 2)) = 0", 1}} {
		dir := t.TempDir()
		engine := filepath.Join(dir, "engine")
		script := "#!/bin/sh\ncd " + dir + "; read n <starts; echo $((n + 1)) >starts\nexport ZOO_THREADS=11122; [ " + c.allocatesMore +
			" ] && export ZOO_TWINS=1\nexec " + testenv.Path(t, "build", "zoo") + "\n"
		err := errors.Join(os.WriteFile(filepath.Join(dir, "starts"), []byte("1\n"), 0o644), os.WriteFile(engine, []byte(script), 0o755))
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, nil, "medusa", "materialize", "-o", filepath.Join(dir, "x.medusa"), "--", engine)
		if p.code != c.exit || c.exit != 0 && !strings.Contains(p.stderr, "compare allocation sequences") {
			t.Errorf("starts with [ %s ] allocate more: exit %d, want %d\n%s", c.allocatesMore, p.code, c.exit, p.stderr)
		}
	}
}
