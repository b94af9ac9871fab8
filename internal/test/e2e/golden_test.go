package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"medusa/internal/test/testenv"
	"medusa/restore/status"
)

// goldenTokens is the SHA-256 of what the engine decoded with build 12b1c5e, natively and restored alike: the JSON array of its
// runs' tokens, without spaces.
const goldenTokens = "f2fa11263c64665488833c9a65e3a8a0e88db24296f4a1cf1503ed818c7cd150"

// An artifact of an earlier build restores under this one, and the engine decodes what it decoded then. Build 12b1c5e made
// testdata/golden/reference.medusa with
//
//	SIMGPU_MEMORY=8G medusa materialize -o reference.medusa -- \
//		reference run --model runners/reference/models/tiny --batch-sizes 1,2,8,72 --batches 1:20,2,8:20,72 --seed 11 -o json
//
// and it is not made anew: a build that cannot restore it has changed the format, the identity or the recorded sequence of
// allocations. It holds kernels that a triggering layer makes appear, saved buffers, and a recorded region of addresses. No factor is
// relaxed: each build compiles the engine and its vendor BLAS, so their build-ids differ from the recorded ones, but this engine's
// identity has no dso factor, and a module whose build-id differs is found by the hash of its image.
func TestGoldenArtifactRestores(t *testing.T) {
	testenv.Build(t, "lib", "bin")
	engine := []string{testenv.Path(t, "build", "reference"), "run", "--model", testenv.Path(t, "runners", "reference", "models", "tiny"),
		"--batch-sizes", "1,2,8,72", "--batches", "1:20,2,8:20,72", "--seed", "11", "-o", "json"}
	p, st := restored(t, []string{"SIMGPU_MEMORY=8G"}, testenv.Path(t, "internal", "test", "e2e", "testdata", "golden", "reference.medusa"), engine...)
	if st.Status != status.Restored {
		t.Fatalf("native start: %s %s\n%s", st.Reason, st.Detail, p.stderr)
	}
	if st.Graphs != 4 || st.Nodes != 139 {
		t.Errorf("%d graphs with %d nodes restored, the artifact holds 4 with 139", st.Graphs, st.Nodes)
	}
	var tokens [][][]int
	for _, run := range decode(t, p).Runs {
		tokens = append(tokens, run.Tokens)
	}
	text, err := json.Marshal(tokens)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != goldenTokens {
		t.Errorf("tokens %s have digest %x, those of the build that made the artifact %s", text, sum, goldenTokens)
	}
}
