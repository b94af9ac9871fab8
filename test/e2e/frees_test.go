package e2e

import (
	"testing"

	"medusa/test/testenv"
)

// torch's emptyCache frees in the order of addresses, those of streams among others. It is another one in each process.
func TestFreesInAnyOrder(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	zoo := testenv.Path(t, "build", "zoo")
	t.Setenv("ZOO_FREES", "varies")
	path, _ := materialized(t, zoo)
	_, want := zooOutput(t, must(t, nil, "zoo"))
	for _, order := range []string{"012", "120", "210"} {
		p, st := restored(t, []string{"ZOO_FREES=" + order}, path, zoo)
		if isRestored, got := zooOutput(t, p); !isRestored || got != want {
			t.Errorf("frees in the order %s: restored %v (%s), outputs as native: %v", order, isRestored, st.Detail, got == want)
		}
	}
	// A free that was not recorded counts.
	p, st := restored(t, []string{"ZOO_FREES=01"}, path, zoo)
	if isRestored, got := zooOutput(t, p); isRestored || got != want {
		t.Errorf("one free less: restored %v (%s), outputs as native: %v", isRestored, st.Detail, got == want)
	}
}
