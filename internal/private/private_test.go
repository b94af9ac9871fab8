package private

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/test/testenv"
)

// Every row starts with home/cache/file, which belongs to this user alone, and changes one thing.
func TestCheck(t *testing.T) {

	for _, row := range []struct {
		name   string
		change func(t *testing.T, home string)
		ask    string // relative to home; empty: cache/file
		fails  string // relative to home: the path in the error; empty: it is private
		why    string
		root   bool // needs another owner
	}{
		{name: "as made", change: func(*testing.T, string) {}},
		{name: "a folder", change: func(*testing.T, string) {}, ask: "cache"},
		{name: "group can write the file", change: mode("cache/file", 0o664), fails: "cache/file", why: "group"},
		{name: "others can write the file", change: mode("cache/file", 0o646), fails: "cache/file", why: "others"},
		{name: "all can read", change: mode("cache/file", 0o444)},
		{name: "group can write its folder", change: mode("cache", 0o770), fails: "cache", why: "group"},
		{name: "others can write a folder above", change: mode(".", 0o777), fails: ".", why: "others can write to it (mode 0777; chmod go-w)"},
		{name: "sticky above", change: mode(".", 0o777|fs.ModeSticky)},
		{name: "sticky itself", change: mode("cache", 0o777|fs.ModeSticky), ask: "cache", fails: "cache", why: "others"},
		{name: "a sticky file", change: mode("cache/file", 0o666|fs.ModeSticky), fails: "cache/file", why: "others"},
		{name: "another's file", change: owner("cache/file", other), fails: "cache/file", why: "user 54321 owns it", root: true},
		{name: "another's folder", change: owner("cache", other), fails: "cache", why: "user 54321 owns it", root: true},
		{name: "another's folder above", change: owner(".", other), fails: ".", why: "user 54321 owns it", root: true},
		{name: "another's in a sticky folder", change: func(t *testing.T, home string) {
			mode(".", 0o777|fs.ModeSticky)(t, home)
			owner("cache", other)(t, home)
		}, fails: "cache", why: "user 54321 owns it", root: true},
		{name: "a link", change: link("link", "cache/file"), ask: "link"},
		{name: "a link to a folder on the way", change: link("link", "cache"), ask: "link/file"},
		{name: "an absolute link", change: func(t *testing.T, home string) { link("link", filepath.Join(home, "cache"))(t, home) }, ask: "link/file"},
		{name: "a link that leads back", change: link("cache/link", "../cache/file"), ask: "cache/link"},
		{name: "a link to a folder that others can write", change: func(t *testing.T, home string) {
			link("link", "cache/file")(t, home)
			mode("cache", 0o777)(t, home)
		}, ask: "link", fails: "cache", why: "others"},
		{name: "a link in a folder that others can write", change: func(t *testing.T, home string) {
			link("cache/link", "../file")(t, home)
			write(t, filepath.Join(home, "file"))
			mode("cache", 0o777)(t, home)
		}, ask: "cache/link", fails: "cache", why: "others"},
		{name: "another's link in a sticky folder", change: func(t *testing.T, home string) {
			mode(".", 0o777|fs.ModeSticky)(t, home)
			link("link", "cache/file")(t, home)
			owner("link", other)(t, home)
		}, ask: "link", fails: "link", why: "user 54321 owns it", root: true},
		{name: "a link to itself", change: link("link", "link"), ask: "link", fails: "link", why: "too many symbolic links"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.root && os.Geteuid() != 0 {
				testenv.Skip(t, testenv.Superuser)
			}
			home := t.TempDir()
			if err := os.Mkdir(filepath.Join(home, "cache"), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(home, "cache", "file"))
			row.change(t, home)
			if row.ask == "" {
				row.ask = "cache/file"
			}
			err := Check(filepath.Join(home, row.ask))
			if row.fails == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var bad *Error
			if !errors.As(err, &bad) || bad.Path != filepath.Join(home, row.fails) || !strings.Contains(bad.Cause, row.why) {
				t.Errorf("got %v, want %s: ... %s", err, row.fails, row.why)
			}
		})
	}
}

// A file on a read-only mount passes whatever its mode is. Its owner is checked all the same.
func TestReadOnlyMount(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "policy"))
	mode(".", 0o777)(t, dir)
	path := filepath.Join(dir, "policy")
	if err := Check(path); err == nil {
		t.Error("a folder that others can write")
	}
	old := readOnly
	t.Cleanup(func() { readOnly = old })
	readOnly = func(path string) bool { return strings.HasPrefix(path, dir) }
	if err := Check(path); err != nil {
		t.Error(err)
	}
	if os.Geteuid() == 0 {
		owner("policy", 54321)(t, dir)
		if err := Check(path); err == nil {
			t.Error("another's file")
		}
	}
}

// File checks the open file alone.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"))
	mode(".", 0o777)(t, dir)
	f, err := os.Open(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := File(f); err != nil {
		t.Error(err)
	}
	mode("file", 0o622)(t, dir)
	var bad *Error
	if err := File(f); !errors.As(err, &bad) || bad.Path != f.Name() {
		t.Error(err)
	}
}

// Root may change everything anyway, so files of root pass.
func TestRootMayOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Skip(t, testenv.Superuser)
	}
	if err := check("/etc/passwd", 54321); err != nil {
		t.Error(err)
	}
}

func TestAbsent(t *testing.T) {
	if err := Check(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "file")
	if err := Check("file"); err != nil {
		t.Error(err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func mode(path string, mode fs.FileMode) func(*testing.T, string) {
	return func(t *testing.T, home string) {
		if err := os.Chmod(filepath.Join(home, path), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func owner(path string, uid int) func(*testing.T, string) {
	return func(t *testing.T, home string) {
		if err := os.Lchown(filepath.Join(home, path), uid, -1); err != nil {
			t.Fatal(err)
		}
	}
}

func link(path, to string) func(*testing.T, string) {
	return func(t *testing.T, home string) {
		if err := os.Symlink(to, filepath.Join(home, path)); err != nil {
			t.Fatal(err)
		}
	}
}
