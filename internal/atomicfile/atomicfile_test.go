package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

func TestWrite(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"first, which is longer", "second", ""} {
		if err := Write(path, 0o644, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("holds %q (%v), want %q", got, err, content)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v (%v): the umask must not matter", info.Mode(), err)
	}
	only(t, filepath.Dir(path), "file")
}

func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	path, broken := filepath.Join(t.TempDir(), "file"), errors.New("no more")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Write(path, 0o644, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("holds %q (%v)", got, err)
	}
	only(t, filepath.Dir(path), "file")
}

func TestNameThatCannotBeTaken(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "folder")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, 0o644, strings.NewReader("text")); err == nil {
		t.Error("a folder was replaced")
	}
	only(t, dir, "folder")
	if err := Write(filepath.Join(dir, "missing", "file"), 0o644, strings.NewReader("text")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, and the folder is missing", err)
	}
}

// only demands that the folder has no entry but name, and thus no temporary file.
func only(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("%s holds %v (%v), want %s alone", dir, entries, err, name)
	}
}
