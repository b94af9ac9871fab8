package materialize

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/artifacts/bundled"
)

// The runs of a series compile into folders of its own, unless the user chose others.
func TestCaches(t *testing.T) {
	for _, c := range bundled.Caches {
		t.Setenv(c.Variable, "")
	}
	scratch, mine := t.TempDir(), t.TempDir()
	t.Setenv("TRITON_CACHE_DIR", mine)
	var notes []string
	note := func(text string) { notes = append(notes, text) }
	dirs, env := withCaches([]Dir{{Name: "vllm", Path: mine}, {Name: "other", Path: mine}}, scratch, note)
	want := []string{"FLASHINFER_WORKSPACE_BASE=" + scratch + "/flashinfer", "TORCHINDUCTOR_CACHE_DIR=" + scratch + "/inductor", "VLLM_CACHE_ROOT=" + mine}
	if !slices.Equal(env, want) {
		t.Errorf("environment %q, want %q", env, want)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "unset TRITON_CACHE_DIR, or add --dir triton="+mine) {
		t.Errorf("notes %q", notes)
	}
	if err := os.MkdirAll(filepath.Join(scratch, "inductor", "ab"), 0o755); err != nil {
		t.Fatal(err)
	}
	layers, closing, err := packDirs(dirs, t.TempDir(), note)
	if err != nil {
		t.Fatal(err)
	}
	defer closing()
	paths := map[string]string{}
	for _, l := range layers {
		paths[l.Name] = l.Path
	}
	// FlashInfer compiled no kernel.
	if len(paths) != 3 || paths["vllm"] != mine || paths["inductor"] != scratch+"/inductor" || paths["other"] != mine {
		t.Errorf("layers %v", paths)
	}
}
