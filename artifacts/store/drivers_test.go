package store

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A driver counts for the bytes that were checked, on a record that this user alone can have made.
func TestDrivers(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, defaultLimit)
	if err != nil {
		t.Fatal(err)
	}
	one, other := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "other")
	for path, text := range map[string]string{one: "one", other: "other"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what, path string, want ...Driver) {
		t.Helper()
		if got, err := s.Drivers(path); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
	a, b := Driver{"GPU", "12090"}, Driver{"GPU", "12060"}
	expect("nothing was checked", one)
	for _, d := range []Driver{a, b, a} {
		if err := s.AddDriver(one, d); err != nil {
			t.Fatal(err)
		}
	}
	expect("two drivers", one, a, b)
	expect("other bytes", other)
	if err := s.forget(); err != nil {
		t.Fatal(err)
	}
	expect("an artifact outside of the cache", one, a, b)
	digits, err := fileDigits(one)
	if err != nil {
		t.Fatal(err)
	}
	// The digest of the three bytes, by another program.
	if want := "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"; digits != want {
		t.Errorf("digest %s, want %s", digits, want)
	}
	record := filepath.Join(dir, "drivers", digits)
	if err := os.Chmod(record, 0o666); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Drivers(one); err == nil || len(got) != 0 {
		t.Errorf("a record that others can write counts: %v", got)
	}
	if err := os.Chmod(record, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record, []byte("no JSON"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Drivers(one); err == nil || len(got) != 0 {
		t.Errorf("a damaged record counts: %v", got)
	}
	if err := s.AddDriver(one, b); err != nil {
		t.Fatal(err)
	}
	expect("a damaged record replaced", one, b)
	if _, err := s.Drivers(filepath.Join(dir, "absent")); err == nil {
		t.Error("an absent artifact has drivers")
	}
}
