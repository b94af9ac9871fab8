package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/restore/status"
	"medusa/test/calllog"
	"medusa/test/testenv"
)

// Checks before ready: a finding ends in a native start with the right outputs, and memory that the checks write is put back (the
// zoo's cache accumulates: a replay that is not undone shows in every later output).
func TestChecksBeforeReady(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	path, art := materialized(t, zoo)
	_, want := zooOutput(t, must(t, nil, "zoo"))
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
		check, path, variable string
		restored, right       bool
		detail                string
	}{
		{"none", path, "", true, true, ""},
		{"canary", path, "", true, true, ""},
		{"full", path, "", true, true, ""},
		{"none", wrong, "", true, false, ""},
		{"canary", wrong, "", false, true, "check graph fork"},
		{"canary", path, "ZOO_DIRTY=1", true, true, ""},
		{"full", path, "ZOO_DIRTY=1", false, true, "check memory that stays unchanged"},
	} {
		file := filepath.Join(t.TempDir(), "status.json")
		p := must(t, []string{tt.variable}, "medusa", "restore", "--check", tt.check, "--status", file, tt.path, "--", zoo)
		st, err := status.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		isRestored, got := zooOutput(t, p)
		if isRestored != tt.restored || (got == want) != tt.right || !strings.Contains(st.Detail, tt.detail) {
			t.Errorf("--check=%s %s %s: restored %v, outputs as native %v, %s", tt.check, filepath.Base(tt.path), tt.variable, isRestored, got == want, st.Detail)
		}
		if !tt.restored && (st.Status != status.Native || st.Reason != "check_failed") {
			t.Errorf("--check=%s: status %+v", tt.check, st)
		}
		if hashed := st.Hashing == status.OnDevice; hashed != (tt.check != "none") || st.HostHashing != "" {
			t.Errorf("--check=%s: memory was hashed on the %s (%s)", tt.check, st.Hashing, st.HostHashing)
		}
		if _, measured := st.Spans["canary replay"]; measured != (tt.check != "none") && tt.detail != "check memory that stays unchanged" {
			t.Errorf("--check=%s: spans %v", tt.check, st.Spans)
		}
	}
}

// If the driver refuses the hash kernel, in any call that brings it in, the same checks are made on the host, and the
// status says so.
func TestChecksOnTheHost(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	path, _ := materialized(t, zoo)
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	must(t, []string{"SIMGPU_CALL_LOG=" + calls}, "medusa", "restore", "--check", "full", "--addresses", "relocate", path, "--", zoo)
	log, err := calllog.Read(calls)
	if err != nil {
		t.Fatal(err)
	}
	loads := 0 // the hash kernel's module is the last that a restored start loads
	for _, e := range log.Entries {
		if e.Name == "cuModuleLoadData" && e.Thread == 0 {
			loads++
		}
	}
	for _, variable := range []string{"", "ZOO_DIRTY=1"} {
		file := filepath.Join(dir, "status.json")
		env := []string{fmt.Sprintf("SIMGPU_FAIL=cuModuleLoadData:%d:CUDA_ERROR_INVALID_PTX", loads), variable}
		must(t, env, "medusa", "restore", "--check", "full", "--addresses", "relocate", "--status", file, path, "--", zoo)
		st, err := status.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		if st.Hashing != status.OnHost || !strings.Contains(st.HostHashing, "INVALID_PTX") {
			t.Errorf("memory was hashed on the %s (%s)", st.Hashing, st.HostHashing)
		}
		if restored := st.Status == status.Restored; restored != (variable == "") {
			t.Errorf("%s: %+v", variable, st)
		}
	}
}
