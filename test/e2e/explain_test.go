package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"medusa/test/testenv"
)

// The traces that materialize keeps show a parameter: values, verdicts and neighbours in both runs.
func TestExplainShowsAParameter(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	traces := filepath.Join(t.TempDir(), "traces")
	must(t, nil, "medusa", "materialize", "--keep-traces", traces, "-o", filepath.Join(t.TempDir(), "x.medusa"), "--", testenv.Path(t, "build", "zoo"))
	p := must(t, nil, "medusa", "explain", traces, "--graph", "fork", "--node", "2", "--parameter", "0")
	for _, want := range []string{"kernel axpy", "parameter 0: 24 bytes at 0  <-", "byte 0: 0x", "pointer to alloc#1+0",
		"byte 16: 0x40040000000 in record-a, 0x40040000000 in record-b: constant", "record-a: alloc#1 at 0x", "record-b: alloc#2 at 0x"} {
		if !strings.Contains(p.stdout, want) {
			t.Errorf("no %q in\n%s", want, p.stdout)
		}
	}
	if p := start(t, nil, "medusa", "explain", traces, "--graph", "fork", "--node", "99"); p.code != 1 || !strings.Contains(p.stderr, "no node 99") {
		t.Errorf("a node that is not there: exit %d, %q", p.code, p.stderr)
	}
}
