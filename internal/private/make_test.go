package private

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"medusa/test/testenv"
)

const other = 54321

// A file that another user has planted in a folder is found, however deep it lies.
func TestTree(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(t *testing.T, home string)
		fails  string
		why    string
		root   bool
	}{
		{name: "as made", change: func(*testing.T, string) {}},
		{name: "a file that others can write", change: mode("cache/file", 0o646), fails: "cache/file", why: "others"},
		{name: "a folder that others can write", change: mode("cache", 0o777), fails: "cache", why: "others"},
		{name: "behind a folder that only this user can open", change: func(t *testing.T, home string) {
			mode("cache/file", 0o666)(t, home)
			mode("cache", 0o700)(t, home)
		}},
		{name: "a link of this user", change: link("cache/link", "/etc/passwd")},
		{name: "another's file", change: owner("cache/file", other), fails: "cache/file", why: "user 54321 owns it", root: true},
		{name: "another's file behind a closed folder", change: func(t *testing.T, home string) {
			owner("cache/file", other)(t, home)
			mode("cache", 0o700)(t, home)
		}, fails: "cache/file", why: "user 54321 owns it", root: true},
		{name: "another's link", change: func(t *testing.T, home string) {
			link("cache/link", "file")(t, home)
			owner("cache/link", other)(t, home)
		}, fails: "cache/link", why: "user 54321 owns it", root: true},
		{name: "another's folder", change: owner(".", other), fails: ".", why: "user 54321 owns it", root: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.root && os.Geteuid() != 0 {
				testenv.Skip(t, testenv.Superuser)
			}
			home := t.TempDir()
			if err := os.Mkdir(filepath.Join(home, "cache"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(home, "cache", "file"))
			row.change(t, home)
			err := Tree(home)
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

// A new file takes the place of a link, and what the link leads to stays as it is.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "path")
	for _, plant := range []func(from, to string) error{os.Symlink, os.Link} {
		if err := os.WriteFile(victim, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		os.Remove(path)
		if err := plant(victim, path); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(path, []byte("mine")); err != nil {
			t.Error(err)
		}
		if data, err := os.ReadFile(victim); err != nil || string(data) != "secret" {
			t.Errorf("the victim has %q (%v)", data, err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
			t.Errorf("the file has %q (%v)", data, err)
		}
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A user's own link is followed, such as that of /dev/stdout; another user's is not.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "path")
	write(t, victim)
	link("path", "victim")(t, dir)
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if data, err := os.ReadFile(victim); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
	if os.Geteuid() != 0 {
		testenv.Skip(t, testenv.Superuser)
	}
	owner("path", other)(t, dir)
	var bad *Error
	if _, err := Create(path); !errors.As(err, &bad) {
		t.Errorf("another's link: %v", err)
	}
	if data, err := os.ReadFile(victim); err != nil || string(data) != "text" {
		t.Errorf("another's link: %q, %v", data, err)
	}
}

// A folder that is new is closed to others. One that others own is refused.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b")
	if err := Folder(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
	mode("a", 0o777)(t, dir)
	if err := Folder(path); err == nil {
		t.Error("a folder that others can exchange")
	}
}

// A bind mount can be read-only while the file system is not: others write through another mount.
func TestReadOnlyBindMount(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Skip(t, testenv.Superuser)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "policy")
	for _, row := range []struct {
		name  string
		mount func() error
		want  bool
	}{
		{"a bind mount", func() error {
			if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
				return err
			}
			return syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
		}, false},
		{"a file system", func() error {
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
				return err
			}
			write(t, path)
			mode("policy", 0o666)(t, dir)
			return syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
		}, true},
	} {
		write(t, path)
		mode("policy", 0o666)(t, dir)
		if err := row.mount(); errors.Is(err, syscall.EPERM) {
			testenv.Skip(t, testenv.Mounts)
		} else if err != nil {
			t.Fatal(err)
		}
		err := Check(path)
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Fatal(err)
		}
		if (err == nil) != row.want {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
