package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/test/testenv"
)

// A handle of the engine's own memory is valid in a restored start: another process writes the input of a restored graph and reads its
// output. Memory of another process that the engine opens, and that no graph uses, is no obstacle.
func TestMemoryBetweenProcesses(t *testing.T) {
	for _, kind := range []string{"reads", "opened"} {
		t.Run(kind, func(t *testing.T) {
			t.Setenv("ZOO_PEER", kind)
			path, _ := zooArtifact(t, nil)
			_, want := zooOutput(t, must(t, nil, "zoo"))
			for _, addresses := range []string{"exact", "relocate"} {
				p, _ := started(t, nil, []string{"--addresses=" + addresses}, path, []string{testenv.Path(t, "build", "zoo")})
				if isRestored, got := zooOutput(t, p); !isRestored || got != want {
					t.Errorf("%s: restored %v, outputs as native: %v\n%s", addresses, isRestored, got == want, p.stderr)
				}
			}
		})
	}
}

// No artifact holds memory of another process: a graph that refers to it is refused by name, be it by
// a parameter or by way of saved memory, and so is a graph with an event of another process.
func TestGraphsOfAnotherProcess(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	path := filepath.Join(t.TempDir(), "x.medusa")
	for kind, reason := range map[string]string{
		"graph": `graph "fork": node 9 (axpy): it refers to another process's memory (alloc#7)`,
		"event": `graph "fork": node 9 (event record): the creation of its event was not seen (it may be another process's), or the event is gone`,
		"table": `graph "nested": node 1 (kernel): alloc#12+0, which it reaches, refers to another process's memory (alloc#7)`,
	} {
		p := start(t, []string{"ZOO_PEER=" + kind}, "medusa", "materialize", "-o", path, "--", testenv.Path(t, "build", "zoo"))
		if p.code != 1 || !strings.Contains(p.stderr, reason) {
			t.Errorf("%s: exit %d, %q; want %q", kind, p.code, p.stderr, reason)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: an artifact was made", kind)
		}
	}
}
