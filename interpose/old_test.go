package interpose

import (
	"strings"
	"testing"

	"medusa/interpose/trace"
)

// The first forms of functions are hooked like the later ones: captures that they begin are active, executable graphs are known,
// and contexts that they end lose their memory.
func TestFirstFormsAreHooked(t *testing.T) {
	recs, r := record(t, Config{Exact: DefaultRegion}, 0, simulated(t), build(t, "build/test/old"))
	if n := strings.Count(r.stdout, "while-capturing 900\n"); n != 2 {
		t.Errorf("%d of 2 captures forbid an allocation:\n%s", n, r.stdout)
	}
	if n := len(of[*trace.Graph](recs)); n != 2 {
		t.Errorf("%d graphs recorded, want 2", n)
	}
	if n := len(of[*trace.Exec](recs)); n != 2 {
		t.Errorf("%d executable graphs recorded, want 2", n)
	}
	var at []string
	for _, line := range strings.Split(r.stdout, "\n") {
		if a, ok := strings.CutPrefix(line, "at "); ok {
			at = append(at, a)
		}
	}
	if len(at) != 3 || at[0] != at[1] || at[1] != at[2] {
		t.Errorf("allocations of three contexts, one after the other, are at %v: memory of ended contexts still occupies its places", at)
	}
}
