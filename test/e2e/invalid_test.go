package e2e

import (
	"strings"
	"testing"

	"medusa/test/calllog"
	"medusa/test/testenv"
)

// An engine that frees a weight after ready gets an error from the next launch, and goes on without restored graphs.
func TestFreeOfReferencedMemory(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	path, _ := materialized(t, zoo)
	_, want := zooOutput(t, must(t, nil, "zoo"))
	for _, lazy := range []string{"0", "1"} {
		p, _ := restored(t, []string{"ZOO_RELOAD=1", "MEDUSA_LAZY=" + lazy}, path, zoo)
		isRestored, got := zooOutput(t, p)
		if isRestored || got != want || !strings.Contains(p.stderr, "freed memory that restored graphs refer to") {
			t.Errorf("lazy %s: still restored %v, outputs as native: %v, %q", lazy, isRestored, got == want, p.stderr)
		}
	}
}

// The same if it unloads the kernels' module, or destroys an event that a graph records.
func TestUnloadOfReferencedModule(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	path, _ := zooArtifact(t, []string{"ZOO_EVENTS=1"})
	_, want := zooOutput(t, must(t, []string{"ZOO_EVENTS=1"}, "zoo"))
	if isRestored, got := zooOutput(t, must(t, []string{"ZOO_EVENTS=1"}, "medusa", "restore", path, "--", zoo)); !isRestored || got != want {
		t.Errorf("nothing given up: restored %v, outputs as native: %v", isRestored, got == want)
	}
	for _, variables := range [][]string{
		{"ZOO_EVENTS=1", "ZOO_RELOAD=module"},
		{"ZOO_EVENTS=1", "ZOO_RELOAD=module", "MEDUSA_LAZY=1"},
		{"ZOO_EVENTS=1", "ZOO_RELOAD=event"},
	} {
		p := must(t, variables, "medusa", "restore", path, "--", zoo)
		isRestored, got := zooOutput(t, p)
		if isRestored || got != want || !strings.Contains(p.stderr, "unloaded a module, or destroyed an event") {
			t.Errorf("%v: still restored %v, outputs as native: %v, %q", variables, isRestored, got == want, p.stderr)
		}
	}
}

// A lazy graph is built when it is first launched, and not before.
func TestLazyGraphs(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	path, _ := materialized(t, zoo)
	_, want := zooOutput(t, must(t, nil, "zoo"))
	calls := t.TempDir() + "/calls"
	p := must(t, []string{"SIMGPU_CALL_LOG=" + calls}, "medusa", "restore", "--lazy", path, "--", zoo)
	if isRestored, got := zooOutput(t, p); !isRestored || got != want {
		t.Errorf("restored %v, outputs as native: %v", isRestored, got == want)
	}
	log, err := calllog.Read(calls)
	if err != nil {
		t.Fatal(err)
	}
	before, after := log.Between("", "ready"), log.Between("ready", "")
	if n, m := calllog.Count(before, "cuGraphInstantiateWithFlags"), calllog.Count(after, "cuGraphInstantiateWithFlags"); n != 0 || m != 2 {
		t.Errorf("%d graphs built before ready and %d after, want 0 and 2", n, m)
	}
}
