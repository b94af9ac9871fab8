package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/artifacts/store"
	"medusa/graphir"
)

// The engine's process is told of the drivers that full checks on this machine have passed with: for these bytes, on this GPU, of the
// same major version as the artifact's.
func TestCheckedDrivers(t *testing.T) {
	t.Setenv("MEDUSA_CACHE", t.TempDir())
	id := artifacts.Identity{{Key: artifacts.KeyGPUName, Value: "one"}, {Key: artifacts.KeyDriverVersion, Value: "12080"}}
	path, other := filepath.Join(t.TempDir(), "a.medusa"), filepath.Join(t.TempDir(), "b.medusa")
	for path, notes := range map[string][]graphir.Note{path: nil, other: {{Name: "other", Value: []byte("bytes")}}} {
		if err := artifacts.Write(path, &artifacts.Artifact{Identity: id, Spec: &graphir.Spec{Notes: notes}}); err != nil {
			t.Fatal(err)
		}
	}
	told := func(o Options) (relax, lines string) {
		t.Helper()
		o, log := withoutMedusaIn(t, o, `echo "[$MEDUSA_RELAX]" >&2`)
		if _, err := Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		lines = log()
		from, to := strings.IndexByte(lines, '['), strings.IndexByte(lines, ']')
		if from < 0 || to < from {
			t.Fatalf("the engine did not run: %s", lines)
		}
		return lines[from+1 : to], lines
	}
	expect := func(what string, o Options, want string) (lines string) {
		t.Helper()
		got, lines := told(o)
		if got != want {
			t.Errorf("%s: MEDUSA_RELAX is %q, want %q: %s", what, got, want, lines)
		}
		return lines
	}
	ref := func(path string) Options { return Options{Artifact: Choice{Ref: path}} }
	expect("nothing was checked", ref(path), "")
	cache, err := store.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []store.Driver{{GPU: "one", Version: "12090"}, {GPU: "two", Version: "12070"}, {GPU: "one", Version: "13000"}, {GPU: "one", Version: "12060"}} {
		if err := cache.AddDriver(path, d); err != nil {
			t.Fatal(err)
		}
	}
	both := "driver.version=12090,driver.version=12060"
	expect("checked", ref(path), both)
	relaxed := ref(path)
	relaxed.Relax = artifacts.Relaxed{"dso.*"}
	expect("besides what the user allows", relaxed, "dso.*,"+both)
	expect("other bytes", ref(other), "")
	expect("chosen by the engine's process", Options{Artifact: Choice{Auto: true}}, "")
	records, err := filepath.Glob(filepath.Join(os.Getenv("MEDUSA_CACHE"), "drivers", "*"))
	if err != nil || len(records) != 1 {
		t.Fatalf("%d records (%v), want 1", len(records), err)
	}
	if err := os.Chmod(records[0], 0o666); err != nil {
		t.Fatal(err)
	}
	if lines := expect("a record that others can write", ref(path), ""); !strings.Contains(lines, "read checked drivers: ") {
		t.Errorf("nothing is said of it: %s", lines)
	}
}

// withoutMedusaIn is withoutMedusa for other options, in the cache that is set.
func withoutMedusaIn(t *testing.T, o Options, script string) (Options, func() string) {
	cache := os.Getenv("MEDUSA_CACHE")
	base, log := withoutMedusa(t, script)
	t.Setenv("MEDUSA_CACHE", cache)
	base.Artifact, base.Relax = o.Artifact, o.Relax
	return base, log
}
