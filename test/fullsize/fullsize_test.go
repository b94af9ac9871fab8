package fullsize_test

import (
	"testing"

	"medusa/test/fullsize"
	"medusa/test/testenv"
)

// A device of 141 GB with a KV cache of 100 GiB: few graphs here, as many as large engines have in `make test-full-size`.
func TestFullSize(t *testing.T) {
	testenv.Build(t, "lib", "bin", "fullsize-engine")
	done, err := fullsize.Run(t.Context(), testenv.Path(t, "build"), t.TempDir(), fullsize.Sizes{Device: 141e9, KV: 90 << 30, Graphs: 20, Nodes: 30})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range done {
		if p.Peak > 2<<30 {
			t.Errorf("%s took %d MiB", p.Name, p.Peak>>20)
		}
	}
}
