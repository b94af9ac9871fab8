package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/internal/test/testenv"
	"medusa/status"
)

// Two equal starts do not leave the same memory: contexts, code, executable graphs and other processes take some of it, not the
// same each time. That is no reason to record again, and a restored start has room.
func TestHeadroomVaries(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo := testenv.Path(t, "build", "zoo")
	variables := []string{"SIMGPU_OVERHEAD=charged"}
	for range 3 {
		path := filepath.Join(t.TempDir(), "x.medusa")
		p := must(t, variables, "medusa", "materialize", "-o", path, "--", zoo)
		if n := strings.Count(p.stderr, "record-a: record the start\n"); n != 1 {
			t.Fatalf("recorded %d times:\n%s", n, p.stderr)
		}
		if _, err := artifacts.Read(path); err != nil {
			t.Fatal(err)
		}
		if p, st := started(t, variables, nil, path, []string{zoo}); st.Status != status.Restored {
			t.Fatalf("native start: %s %s\n%s", st.Reason, st.Detail, p.stderr)
		}
	}
}
