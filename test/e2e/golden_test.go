package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/restore/status"
	"medusa/test/testenv"
)

// goldenTokens is the engine's output with build 12b1c5e, natively and restored alike, after the word that says which it was.
const goldenTokens = "10 10 19 28 37 46 55 64 63 9 8 7 37 46 55 64 29 25 51 13 6 5 4 3 17 25 51 13 6 5 4 3 9 57 21 49 6 5 4 3 " +
	"25 57 33 9 39 1 27 53 57 57 33 9 39 1 27 53 57 57 41 25 39 1 27 53 57 57 25 57 13 41 5 33"

// An artifact of an earlier build restores under this one, and the engine decodes the same as then. Build 12b1c5e made
// testdata/golden/example.medusa with
//
//	SIMGPU_MEMORY=8G medusa materialize -o example.medusa -- ./engine
//
// from the engine beside it, compiled against that build's libmedusa.h. Neither is made anew: a build that does not compile the engine
// has changed the C ABI, and one that does not restore the artifact has changed the format, the identity or the recorded sequence of
// allocations. The engine's source stays as it was, because an artifact refers to the modules that its engine loads.
func TestGoldenArtifactRestores(t *testing.T) {
	golden := testenv.Path(t, "test", "e2e", "testdata", "golden")
	source, err := os.ReadFile(filepath.Join(golden, "engine.c"))
	if err != nil {
		t.Fatal(err)
	}
	engine := engineInC(t, string(source), golden)
	for _, addresses := range []string{"exact", "relocate"} {
		p, st := started(t, []string{"SIMGPU_MEMORY=8G"}, []string{"--addresses=" + addresses}, filepath.Join(golden, "example.medusa"), []string{engine})
		if st.Status != status.Restored {
			t.Fatalf("native start: %s %s\n%s", st.Reason, st.Detail, p.stderr)
		}
		if st.Graphs != 3 {
			t.Errorf("%d graphs restored, the artifact has 3", st.Graphs)
		}
		if got := strings.Join(strings.Fields(p.stdout), " "); got != "restored "+goldenTokens {
			t.Errorf("the engine printed %q, with the build that made the artifact %q", got, "restored "+goldenTokens)
		}
	}
}
