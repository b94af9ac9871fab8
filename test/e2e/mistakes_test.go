package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/test/testenv"
)

// A candidate with a mistake is refused before it gets a name, by a replay: the mistakes of make test-tokens, made in the candidate's file when
// check-restored starts.
func TestMistakesAreRefused(t *testing.T) {
	testenv.Build(t, "lib", "bin")
	dir := t.TempDir()
	tool, traces := filepath.Join(dir, "tokens"), filepath.Join(dir, "traces")
	if out, err := exec.Command("go", "build", "-o", tool, "medusa/test/tokens").CombinedOutput(); err != nil {
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

// A pointer within a struct that leads elsewhere may be bytes that no code wrote, so the comparison of nodes does not decide. If the replay
// then differs, verification says which bytes may be why.
func TestMovedPointerOfAStruct(t *testing.T) {
	engine := []string{testenv.Path(t, "build", "reference"), "run", "--model", testenv.Path(t, "runners", "reference", "models", "tiny"), "--batch-sizes", "1", "--batches", "1"}
	_, art := materialized(t, engine...)
	g := art.Spec.Graphs[0]
	at := slices.IndexFunc(g.Nodes, func(n graphir.Node) bool {
		k := n.Kernel()
		return k != nil && strings.Contains(art.Spec.Kernels[k.Kernel].Name, "AttentionArgs")
	})
	if at < 0 {
		t.Fatal("no kernel takes a struct")
	}
	moved := &g.Nodes[at].Kernel().Relocations[1].Pointer
	moved.Index++
	path := filepath.Join(t.TempDir(), "moved.medusa")
	if err := artifacts.Write(path, art); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, "medusa", append([]string{"verify", path, "--"}, engine...)...)
	for _, part := range []string{fmt.Sprintf("node %d (kernel)", at), "in a native start", "by the artifact", "restored and native differ"} {
		if p.code == 0 || !strings.Contains(p.stderr, part) {
			t.Errorf("exit code %d, no %q in\n%s", p.code, part, p.stderr)
		}
	}
}
