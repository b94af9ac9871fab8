package e2e

import (
	"testing"

	"medusa/test/testenv"
)

// An engine pins memory for copies as often as its timing asks for. No graph refers to it, so each start may pin another
// number of times.
func TestPinnedMemoryInAnyOrder(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo := testenv.Path(t, "build", "zoo")
	t.Setenv("ZOO_PINNED", "varies")
	path, _ := materialized(t, zoo)
	_, want := zooOutput(t, must(t, []string{"ZOO_PINNED="}, "zoo"))
	for _, pinned := range []string{"", "1", "0201", "3333"} {
		p, st := restored(t, []string{"ZOO_PINNED=" + pinned}, path, zoo)
		if isRestored, got := zooOutput(t, p); !isRestored || got != want {
			t.Errorf("pinned %q: restored %v (%s), outputs as native: %v", pinned, isRestored, st.Detail, got == want)
		}
	}
}
