package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"medusa/test/testenv"
)

// Eager steps leave other bytes in a native start, which warms up, than in a restored one, which runs triggering layers. In memory that
// no graph refers to, these bytes have no effect. A graph that reads there is refused.
func TestLeftByEagerSteps(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	for _, kind := range []string{"workspace", "returned", "dropped", "traces"} {
		t.Run(kind, func(t *testing.T) {
			t.Setenv("ZOO_ALLOCATOR", "unnamed")
			t.Setenv("ZOO_LIBRARY", kind)
			path, art := materialized(t, zoo)
			if len(art.Spec.BlockMap) == 0 || len(art.Spec.Vacant) == 0 {
				t.Errorf("block map %x, %d vacant pieces", art.Spec.BlockMap, len(art.Spec.Vacant))
			}
			_, want := zooOutput(t, must(t, nil, "zoo"))
			p, st := started(t, nil, []string{"--check=full"}, path, []string{zoo})
			if isRestored, got := zooOutput(t, p); !isRestored || got != want {
				t.Errorf("restored %v (%s %s), outputs as native: %v", isRestored, st.Reason, st.Detail, got == want)
			}
		})
	}
}

// A graph that reads memory which its engine has given back: the next owner's bytes would be its input.
func TestGraphReadsWhatNobodyOwns(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	path := filepath.Join(t.TempDir(), "x.medusa")
	p := start(t, []string{"ZOO_LIBRARY=stray", "ZOO_ALLOCATOR=unnamed"}, "medusa", "materialize", "-o", path, "--", testenv.Path(t, "build", "zoo"))
	if want := `verify graph "fork": output "output"`; p.code != 1 || !strings.Contains(p.stderr, want) || !strings.Contains(p.stderr, "it depends on memory that the graph does not write") {
		t.Errorf("exit %d, want %s:\n%s", p.code, want, p.stderr)
	}
}
