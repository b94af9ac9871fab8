package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"medusa/internal/test/testenv"
)

// A candidate with a mistake is refused before it gets a name, by a replay: the mistakes of make test-tokens, made in the candidate's file when
// check-restored starts.
func TestMistakesAreRefused(t *testing.T) {
	testenv.Build(t, "lib", "bin")
	dir := t.TempDir()
	tool, traces := filepath.Join(dir, "tokens"), filepath.Join(dir, "traces")
	if out, err := exec.Command("go", "build", "-o", tool, "medusa/internal/test/tokens").CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", tool, err, out)
	}
	engine := []string{"--", "sh", "-c", `[ "$MEDUSA_RUN" != check-restored ] || [ -z "$MISTAKE" ] || ` + tool + ` "$MEDUSA_ARTIFACT" "$MEDUSA_ARTIFACT" "$MISTAKE" decode-8 || exit
		exec "$0" "$@"`, testenv.Path(t, "build", "reference"), "run", "--model", testenv.Path(t, "runners", "reference", "models", "tiny"), "--batch-sizes", "1,2,8", "--batches", "8"}
	must(t, nil, "medusa", append([]string{"materialize", "--keep-traces", traces, "-o", filepath.Join(dir, "right.medusa")}, engine...)...)
	for _, mistake := range []string{"kernel", "pointer", "content", "key"} {
		path := filepath.Join(dir, mistake+".medusa")
		p := start(t, []string{"MISTAKE=" + mistake}, "medusa", append([]string{"materialize", "--resume", traces, "-o", path}, engine...)...)
		if _, err := os.Stat(path); p.code == 0 || err == nil || !strings.Contains(p.stderr, `verify graph "`) {
			t.Errorf("mistake %s: exit code %d, artifact %v\n%s", mistake, p.code, err == nil, p.stderr)
		}
	}
}
