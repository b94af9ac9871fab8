package scratch

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// holder is the environment variable that makes this test program hold a folder until it is killed.
const holder = "SCRATCH_TEST_HOLD"

func TestMain(m *testing.M) {
	if parent := os.Getenv(holder); parent != "" {
		f, err := Make(parent, "x-")
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString("held\n")
		time.Sleep(time.Minute)
		runtime.KeepAlive(f)
	}
	os.Exit(m.Run())
}

// A folder that cannot be held does not stay.
func TestMakeThatFails(t *testing.T) {
	parent := t.TempDir()
	var limit, none unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none.Max = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	_, err := Make(parent, "x-")
	if restored := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); restored != nil {
		t.Fatal(restored)
	}
	if left, _ := os.ReadDir(parent); !errors.Is(err, unix.EMFILE) || len(left) > 0 {
		t.Errorf("%v, and %d folders stay", err, len(left))
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// The next process removes the folder of a killed one. Folders of running processes stay, and so do files with similar names.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holder+"="+parent)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 5)); n != 5 {
		t.Fatal(n, err)
	}
	held, _ := filepath.Glob(filepath.Join(parent, "x-*"))
	if len(held) != 1 {
		t.Fatalf("held %v", held)
	}
	outside := t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(held[0], "file"), nil, 0o600),
		os.Mkdir(filepath.Join(parent, "x-1a"), 0o700),
		os.WriteFile(filepath.Join(parent, "x-2"), nil, 0o600),
		os.Symlink(outside, filepath.Join(parent, "x-3")),
		os.Mkdir(filepath.Join(parent, "x-4"), 0o700), // killed before it got the lock
		os.Mkdir(filepath.Join(parent, "x-5"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	another := os.Geteuid() == 0
	if another {
		if err := os.Chown(filepath.Join(parent, "x-5"), 54321, -1); err != nil {
			t.Fatal(err)
		}
	}
	first, err := Make(parent, "x-")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{held[0]: true, first.Path: true, filepath.Join(parent, "x-1a"): true, filepath.Join(parent, "x-2"): true,
		filepath.Join(parent, "x-3"): true, filepath.Join(parent, "x-4"): false, filepath.Join(parent, "x-5"): another} {
		if exists(path) != want {
			t.Errorf("%s is there: %v", path, !want)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	second, err := Make(parent, "x-")
	if err != nil {
		t.Fatal(err)
	}
	if exists(held[0]) || !exists(first.Path) || !exists(outside) {
		t.Error("the killed process's folder stays, or a held one went")
	}
	for _, f := range []*Folder{first, second} {
		if err := f.Close(); err != nil || exists(f.Path) {
			t.Errorf("after its end: %v", err)
		}
	}
}

// The last of several processes that share a folder removes it.
func TestShare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x-1")
	all := func(string) error { return nil }
	a, err := Share(path, "x-", all)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Share(path, "x-", all)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil || !exists(path) {
		t.Errorf("b's went with a: %v", err)
	}
	if err := b.Close(); err != nil || exists(path) {
		t.Errorf("it stays: %v", err)
	}
	refused := errors.New("another's")
	if _, err := Share(path, "x-", func(string) error { return refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	if err := errors.Join(os.RemoveAll(path), os.Symlink(t.TempDir(), path)); err != nil {
		t.Fatal(err)
	}
	if _, err := Share(path, "x-", all); err == nil {
		t.Error("a link is held")
	}
}

// Makers, sharers and sweepers of one prefix do not remove each other's folders.
func TestConcurrent(t *testing.T) {
	parent := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				var f *Folder
				var err error
				if i%2 == 0 {
					f, err = Make(parent, "x-")
				} else {
					f, err = Share(filepath.Join(parent, "x-1"), "x-", func(string) error { return nil })
				}
				if err == nil {
					err = os.WriteFile(filepath.Join(f.Path, "file"), nil, 0o600)
				}
				if err != nil {
					t.Error(err)
					return
				}
				if err := f.Close(); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("left %v %v", left, err)
	}
}
