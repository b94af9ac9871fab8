package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/restore/status"
	"medusa/test/checkpoints"
	"medusa/test/testenv"
)

// decoded is the part of the engine's JSON result that must not depend on how it started.
type decoded struct {
	Start string
	Runs  []struct {
		Batch  int
		Tokens [][]int
	}
}

func decode(t *testing.T, p process) decoded {
	t.Helper()
	var d decoded
	if err := json.Unmarshal([]byte(p.stdout), &d); err != nil || len(d.Runs) == 0 {
		t.Fatalf("reference printed %q: %v", p.stdout, err)
	}
	return d
}

// One batch size for each module of the vendor BLAS, hidden ones included; 20 steps cross a page of the KV cache.
func TestReferenceRestores(t *testing.T) {
	tiny, rounded := testenv.Path(t, "runners", "reference", "models", "tiny"), filepath.Join(t.TempDir(), "tiny")
	if err := checkpoints.Half(tiny, rounded); err != nil {
		t.Fatal(err)
	}
	for name, model := range map[string]string{"tiny": tiny, "tiny-f16": rounded} {
		t.Run(name, func(t *testing.T) {
			args := []string{"run", "--model", model,
				"--batch-sizes", "1,2,8,72", "--batches", "1:20,2,8:20,72", "--seed", "11", "-o", "json"}
			engine := append([]string{testenv.Path(t, "build", "reference")}, args...)
			path, art := materialized(t, engine...)
			want := decode(t, must(t, nil, "reference", args...))
			p, st := restored(t, nil, path, engine...)
			got := decode(t, p)
			if st.Status != status.Restored || got.Start != "restored" {
				t.Fatalf("native start: %s %s\n%s", st.Reason, st.Detail, p.stderr)
			}
			for i, r := range want.Runs {
				for slot := range r.Tokens {
					if !slices.Equal(r.Tokens[slot], got.Runs[i].Tokens[slot]) {
						t.Errorf("batch %d slot %d: tokens %v natively, %v restored", r.Batch, slot, r.Tokens[slot], got.Runs[i].Tokens[slot])
					}
				}
			}
			if len(art.Spec.Triggers) == 0 || len(art.Spec.Contents) == 0 {
				t.Errorf("%d triggers and %d permanent buffers: the BLAS needs both", len(art.Spec.Triggers), len(art.Spec.Contents))
			}
		})
	}
}

// If a checkpoint lacks a tensor, materialize fails, names the tensor and leaves no artifact.
func TestReferenceNamesAMissingTensor(t *testing.T) {
	testenv.Build(t, "lib", "bin")
	source := testenv.Path(t, "runners", "reference", "models", "tiny")
	model := t.TempDir()
	data, err := os.ReadFile(filepath.Join(source, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	const name = "model.layers.1.mlp.down_proj.weight"
	if n := bytes.Count(data, []byte(name)); n != 1 {
		t.Fatalf("the checkpoint names %s %d times", name, n)
	}
	data = bytes.Replace(data, []byte(name), []byte("model.layers.1.mlp.dawn_proj.weight"), 1)
	if err := os.WriteFile(filepath.Join(model, "model.safetensors"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"config.json", "tokenizer.json"} {
		if err := os.Symlink(filepath.Join(source, file), filepath.Join(model, file)); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "x.medusa")
	p := start(t, nil, "medusa", "materialize", "-o", out, "--", testenv.Path(t, "build", "reference"), "run", "--model", model, "--batches", "1")
	if p.code != 1 || !strings.Contains(p.stderr, name) {
		t.Errorf("exit %d: %s", p.code, p.stderr)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an artifact was left: %v", err)
	}
}
