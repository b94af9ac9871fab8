package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/restore/status"
	"medusa/test/testenv"
)

// Another driver of the same major version restores after one full check on this machine, and natively before; another major
// version never.
func TestAnotherDriver(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	path, _ := materialized(t, zoo)
	cache := t.TempDir()
	at := func(driver string) []string {
		return []string{"SIMGPU_DRIVER_VERSION=" + driver, "MEDUSA_CACHE=" + cache}
	}
	restored := func(when, driver string, want bool, detail ...string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "status.json")
		p := must(t, at(driver), "medusa", "restore", "--status", file, path, "--", zoo)
		st, err := status.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		if (st.Status == status.Restored) != want {
			t.Errorf("%s, driver %s: %s start: %s %s", when, driver, st.Status, st.Reason, st.Detail)
		}
		for _, text := range detail {
			if !strings.Contains(st.Detail, text) || !strings.Contains(p.stderr, text) {
				t.Errorf("%s, driver %s: neither status nor stderr may lack %q: %s, %s", when, driver, text, st.Detail, p.stderr)
			}
		}
	}
	hint := "medusa verify " + path + " -- ENGINE"
	restored("as made", "12080", true)
	restored("before a check", "12090", false, `driver.version: want "12080", got "12090"`, hint)
	restored("another major version", "13000", false, `got "13000"`)
	if p := start(t, at("13000"), "medusa", "verify", path, "--", zoo); p.code == 0 || !strings.Contains(p.stderr, "13000") {
		t.Errorf("verify with another major version: exit code %d: %s", p.code, p.stderr)
	}
	if p := must(t, at("12080"), "medusa", "verify", path, "--", zoo); strings.Contains(p.stdout, "from now on") {
		t.Errorf("verify with the artifact's own driver records: %s", p.stdout)
	}
	restored("after other checks", "12090", false, hint)

	if p := must(t, at("12090"), "medusa", "verify", path, "--", zoo); !strings.Contains(p.stdout, "driver 12090 passes on this machine from now on") {
		t.Errorf("verify with another driver: %s", p.stdout)
	}
	restored("after the check", "12090", true)
	restored("a driver that was not checked", "12060", false, hint)
	restored("after the check, as made", "12080", true)

	// The check counts on this machine only, whose cache has its record, for these bytes of the artifact, and not if other
	// users can write the record.
	own := cache
	cache = t.TempDir()
	restored("another machine", "12090", false, hint)
	cache = own
	records, err := filepath.Glob(filepath.Join(cache, "drivers", "*"))
	if err != nil || len(records) != 1 {
		t.Fatalf("%d records (%v), want 1", len(records), err)
	}
	if err := os.Chmod(records[0], 0o666); err != nil {
		t.Fatal(err)
	}
	restored("a record that others can write", "12090", false, hint)
}

// A start says how much device memory is free when it is ready, and a restored one how much was when the artifact was verified.
func TestMemoryIsReported(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	path, art := materialized(t, zoo)
	v := art.Verification
	if v.NativeFree == 0 || v.RestoredFree == 0 {
		t.Errorf("verified with %d bytes free natively and %d restored", v.NativeFree, v.RestoredFree)
	}
	for name, argv := range map[string][]string{"restored": {"restore", path}, "native": {"restore", filepath.Join(t.TempDir(), "absent.medusa")}} {
		file := filepath.Join(t.TempDir(), "status.json")
		must(t, nil, "medusa", append(append(argv[:1:1], "--status", file, argv[1], "--"), zoo)...)
		st, err := status.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		m := st.Memory
		if st.Status != name || m == nil || m.Total != 8<<30 || m.Free == 0 || m.Free >= m.Total {
			t.Fatalf("%s start (%s): memory %+v", name, st.Status, m)
		}
		if said := m.VerifiedNative == v.NativeFree && m.VerifiedRestored == v.RestoredFree; said != (name == "restored") {
			t.Errorf("%s start: verified %+v, the artifact says %d and %d", name, m, v.NativeFree, v.RestoredFree)
		}
	}
	if p := must(t, nil, "medusa", "inspect", path); !strings.Contains(p.stdout, "device memory") {
		t.Errorf("inspect says nothing of device memory: %s", p.stdout)
	}
}
