// Package scratch makes folders that are removed after their process: if the process is killed, the next one removes them.
//
// In: a folder and a prefix. Out: a folder that this process holds, by an flock that ends with the process. Fails: if the disk
// does, or if another user made a folder under such a name (it is neither used nor removed).
//
// An abandoned folder is recognized without its age: after its maker gets the lock, it checks that the name still leads to the
// folder.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Folder is a folder that this process holds.
type Folder struct {
	Path string
	lock *os.File
}

// attempts bounds how often Make starts again after another process has removed the folder before it was held.
const attempts = 100

// Make sweeps, and makes a folder in parent that only this user may enter. Its name is prefix and random digits.
func Make(parent, prefix string) (*Folder, error) {
	sweep(parent, prefix)
	for attempt := 1; ; attempt++ {
		path, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		f, err := hold(path, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		// Another process may have taken it for an abandoned one. If not, no later attempt is better.
		if removed := os.RemoveAll(path); removed != nil || attempt == attempts || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(err, removed)
		}
	}
}

// At makes the folder of this path, which only this user may enter. It fails if the path exists.
func At(path string) (*Folder, error) {
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, err
	}
	f, err := hold(path, unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return f, nil
}

// ForRun makes a folder for one run of a command, in the system's temporary directory.
func ForRun() (*Folder, error) { return Make(os.TempDir(), "medusa-run-") }

// Share holds a folder of a given name together with other processes of this user, and makes it if it is missing. It sweeps
// folders with the prefix beside it. check returns an error if the folder must not be used.
func Share(path, prefix string, check func(path string) error) (*Folder, error) {
	sweep(filepath.Dir(path), prefix)
	for attempt := 1; ; attempt++ {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		err := check(path)
		if err == nil {
			var f *Folder
			if f, err = hold(path, unix.LOCK_SH); err == nil {
				return f, nil
			}
		}
		if !errors.Is(err, fs.ErrNotExist) || attempt == attempts {
			return nil, err
		}
	}
}

// Close removes the folder and its contents, unless other processes hold it too.
func (f *Folder) Close() error {
	defer f.lock.Close()
	if err := flock(f.lock, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	} else if err != nil {
		return err
	}
	return f.remove()
}

// remove removes a folder on which this process has the exclusive lock.
func (f *Folder) remove() error {
	if !f.named() {
		return nil
	}
	return os.RemoveAll(f.Path)
}

// named says whether the folder's name still leads to it.
func (f *Folder) named() bool {
	held, err := f.lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(f.Path)
	return err == nil && os.SameFile(held, there)
}

func hold(path string, how int) (*Folder, error) {
	lock, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	f := &Folder{path, lock}
	err = flock(lock, how)
	if err == nil && !f.named() {
		err = fmt.Errorf("hold %s: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// sweep removes this user's folders with the prefix that no process holds. It leaves those that cannot be removed.
func sweep(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		digits, found := strings.CutPrefix(e.Name(), prefix)
		// mutant: folders of killed commands
		if !found || strings.Trim(digits, "0123456789") != "" || !e.IsDir() || !own(e) {
			continue
		}
		if f, err := hold(filepath.Join(parent, e.Name()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			_ = f.remove()
			_ = f.lock.Close()
		}
	}
}

func own(e fs.DirEntry) bool {
	info, err := e.Info()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
