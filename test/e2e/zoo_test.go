package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/restore/status"
	"medusa/test/testenv"
)

func TestZooRestores(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	path, art := materialized(t, zoo)
	_, want := zooOutput(t, must(t, nil, "zoo"))
	for _, seed := range []string{"1", "2", "3"} {
		p, st := restored(t, []string{"SIMGPU_SEED=" + seed}, path, zoo)
		isRestored, got := zooOutput(t, p)
		if !isRestored || st.Status != status.Restored {
			t.Fatalf("seed %s: native start: %s %s\n%s", seed, st.Reason, st.Detail, p.stderr)
		}
		if got != want {
			t.Errorf("seed %s: restored outputs differ from native ones", seed)
		}
	}
	if len(art.Spec.Graphs) != 2 || len(art.Spec.Triggers) != 1 {
		t.Errorf("%d graphs and %d triggers, want 2 and 1", len(art.Spec.Graphs), len(art.Spec.Triggers))
	}
	for _, c := range art.Verification.Graphs {
		if !c.NativeDeterministic || c.BytesCompared == 0 {
			t.Errorf("graph %s: %+v", c.Label, c)
		}
	}
}

// Saved are the pointer table and the magic value; the arena's blocks are free at ready, and the buffer at the reused
// address is written before it is read, but only the engine could say so.
func TestZooSavesPermanentBuffersOnly(t *testing.T) {
	_, art := materialized(t, testenv.Path(t, "build", "zoo"))
	sizes := map[uint64]int{}
	for _, c := range art.Spec.Contents {
		sizes[art.Spec.Allocations[c.Alloc].Size]++
		if art.Spec.Allocations[c.Alloc].Owner != graphir.OwnerGraph {
			t.Errorf("alloc#%d is the engine's, yet saved", c.Alloc)
		}
	}
	if sizes[32] != 1 || sizes[4] != 1 || sizes[4*4096] != 0 {
		t.Errorf("saved buffers by size: %v, want the table (32) and the magic value (4), not the arena (16384)", sizes)
	}
}

// If an artifact does not fit, the engine starts natively, with the reason in one line and the right outputs. With
// --strict, medusa exits with code 3 or 5.
func TestZooFailsOpen(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	path, art := materialized(t, zoo)
	_, want := zooOutput(t, must(t, nil, "zoo"))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.medusa")
	data[len(data)/2] ^= 1
	if err := os.WriteFile(damaged, data, 0o644); err != nil {
		t.Fatal(err)
	}
	driver := filepath.Join(t.TempDir(), "driver.medusa")
	art.Identity = slices.Clone(art.Identity)
	for i, f := range art.Identity {
		if f.Key == artifacts.KeyDriverVersion {
			art.Identity[i].Value = "11000"
		}
	}
	if err := artifacts.Write(driver, art); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		env        []string
		reason     string
		strict     int
	}{
		{"another model", path, []string{"ZOO_MODEL=fancy"}, "model.config", 3},
		{"another GPU", path, []string{"SIMGPU_COMPUTE_CAPABILITY=8.0"}, "gpu.compute_capability", 3},
		{"less memory", path, []string{"SIMGPU_MEMORY=1G"}, "gpu.memory", 3},
		{"another driver", driver, nil, "driver.version", 3},
		{"damaged", damaged, nil, "corrupt", 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, st := restored(t, tt.env, tt.path, zoo)
			isRestored, got := zooOutput(t, p)
			if isRestored || st.Status != status.Native || got != want {
				t.Errorf("status %+v, outputs as native: %v; want a native start", st, got == want)
			}
			if strings.Count(p.stderr, "native start") != 1 || !strings.Contains(p.stderr, tt.reason) {
				t.Errorf("standard error %q, want one line with %q", p.stderr, tt.reason)
			}
			s := start(t, tt.env, "medusa", "restore", "--strict", tt.path, "--", zoo)
			if s.code != tt.strict || s.stdout != "" {
				t.Errorf("--strict: exit %d, output %q; want exit %d and none", s.code, s.stdout, tt.strict)
			}
		})
	}
}

// An engine that dies in the middle of recording leaves no artifact, and the error says which run it was.
func TestDyingEngineLeavesNothing(t *testing.T) {
	testenv.Build(t, "lib", "bin", "zoo")
	dir := t.TempDir()
	path := filepath.Join(dir, "x.medusa")
	p := start(t, nil, "medusa", "materialize", "-o", path, "--", "sh", "-c", "kill -9 $$")
	if p.code != 1 || !strings.Contains(p.stderr, "run engine (profile)") {
		t.Errorf("exit %d: %s", p.code, p.stderr)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}
