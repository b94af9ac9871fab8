package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/restore/status"
	"medusa/test/testenv"
)

// Two equal starts do not leave the same memory: contexts, code, executable graphs and other processes take some of it, not the same
// each time. A small difference is no reason to record again, and a restored start has room. A large one is a reason. Here other
// processes that take memory beside check-restored alone make the difference, so no chance decides.
func TestHeadroomVaries(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo := testenv.Path(t, "build", "zoo")
	for _, row := range []struct {
		variable, others string
		recorded         int
	}{
		{"SIMGPU_OVERHEAD=charged", "0", 1},
		{"SIMGPU_OVERHEAD=off", "16777216", 1},
		{"SIMGPU_OVERHEAD=off", "67108864", 2},
	} {
		variables := []string{row.variable, "ZOO_CACHE=100663296"} // more than the other processes take
		path := filepath.Join(t.TempDir(), "x.medusa")
		engine := []string{"sh", "-c", `[ "$MEDUSA_RUN" != check-restored ] || export SIMGPU_NEIGHBOUR=` + row.others + `; exec ` + zoo}
		p := must(t, variables, "medusa", append([]string{"materialize", "-o", path, "--"}, engine...)...)
		if n := strings.Count(p.stderr, "record-a: record the start\n"); n != row.recorded {
			t.Fatalf("%v: recorded %d times, want %d:\n%s", row, n, row.recorded, p.stderr)
		}
		if _, err := artifacts.Read(path); err != nil {
			t.Fatal(err)
		}
		if p, st := started(t, variables, nil, path, engine); st.Status != status.Restored {
			t.Fatalf("%v: native start: %s %s\n%s", row, st.Reason, st.Detail, p.stderr)
		}
	}
}
