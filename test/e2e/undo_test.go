package e2e

import (
	"path/filepath"
	"testing"

	"medusa/artifacts"
	"medusa/restore/status"
	"medusa/test/testenv"
)

// A native start after a failed restore finds the variables of the engine's modules as the engine left them: the zoo's
// warm-up multiplies one by 1.5, and every output depends on it.
func TestVariablesAfterAFailedRestore(t *testing.T) {
	t.Setenv("ZOO_LATE", "warmed")
	zoo := testenv.Path(t, "build", "zoo")
	path, art := materialized(t, zoo)
	_, want := zooOutput(t, must(t, nil, "zoo"))
	p, _ := restored(t, nil, path, zoo)
	if isRestored, got := zooOutput(t, p); !isRestored || got != want {
		t.Fatalf("restored %v, outputs as native %v", isRestored, got == want)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.medusa")
	for i := range art.Spec.Graphs[0].Nodes {
		if m := art.Spec.Graphs[0].Nodes[i].Memset(); m != nil {
			m.Value = 0x3f // another graph than the verified one
		}
	}
	if err := artifacts.Write(wrong, art); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path, check, variable, reason string
	}{
		{"out of memory while building", path, "none", "SIMGPU_FAIL=cuGraphInstantiateWithFlags:2:CUDA_ERROR_OUT_OF_MEMORY", "memory"},
		{"an upload", path, "none", "SIMGPU_FAIL=cuGraphUpload:1:CUDA_ERROR_INVALID_VALUE", "driver_error"},
		{"the canary", wrong, "canary", "", "check_failed"},
		{"the full check", path, "full", "ZOO_DIRTY=1", "check_failed"},
		{"the engine refuses", path, "none", "ZOO_REFUSES=1", "engine"},
	} {
		file := filepath.Join(t.TempDir(), "status.json")
		p := must(t, []string{tt.variable}, "medusa", "restore", "--addresses", "relocate", "--check", tt.check, "--status", file, tt.path, "--", zoo)
		st, err := status.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		if isRestored, got := zooOutput(t, p); isRestored || got != want || st.Reason != tt.reason {
			t.Errorf("%s: restored %v, outputs as native %v, %s: %s", tt.name, isRestored, got == want, st.Reason, st.Detail)
		}
	}
}

// So does a rank that starts natively only because another one does.
func TestVariablesAfterAPeerFailed(t *testing.T) {
	t.Setenv("ZOO_LATE", "warmed")
	path, _ := twoRanks(t)
	_, want := workers(t, must(t, []string{twoWorkers}, "zoo"))
	p := must(t, []string{twoWorkers, "ZOO_ODD=SIMGPU_FAIL=cuGraphInstantiateWithFlags:1:CUDA_ERROR_OUT_OF_MEMORY"},
		"medusa", "restore", path, "--", testenv.Path(t, "build", "zoo"))
	restored, got := workers(t, p)
	if len(restored) != 2 || restored[0] || restored[1] || got != want {
		t.Errorf("restored %v, outputs as native: %v\n%s", restored, got == want, p.stderr)
	}
}
