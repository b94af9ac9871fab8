package e2e

import (
	"encoding/json"
	"slices"
	"testing"

	"medusa/internal/testenv"
	"medusa/restore/status"
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
	for _, model := range []string{"tiny", "tiny-f16"} {
		t.Run(model, func(t *testing.T) {
			args := []string{"run", "--model", testenv.Path(t, "runners", "reference", "models", model),
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
