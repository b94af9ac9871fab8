// Package scratch makes folders that do not outlive their process: whatever kills it, the next one removes them.
//
// In: a folder and the beginning of a name. Out: a folder that this process holds, by an flock that ends with it. What can
// fail: the disk, and folders that another user made under such a name (they are neither used nor removed).
//
// No age is needed to tell an abandoned folder: its maker looks, once it has the lock, whether its name still leads to it.
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

// Folder is a folder that is held.
type Folder struct {
	Path string
	lock *os.File
}

// attempts bounds how often a folder is made again that another process removed before it was held.
const attempts = 100

// Make makes a folder named prefix and random digits in parent, which only this user may enter, and sweeps.
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
		if attempt == attempts {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
	}
}

// ForRun makes a folder for one run of a command, in the system's temporary directory.
func ForRun() (*Folder, error) { return Make(os.TempDir(), "medusa-run-") }

// Share holds a folder with a given name together with others of this user, makes it if it is missing, and sweeps folders of
// the prefix beside it. check says whether the folder may be used.
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

// Close removes the folder with everything in it, unless others hold it too.
func (f *Folder) Close() error {
	defer f.lock.Close()
	if err := flock(f.lock, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	} else if err != nil {
		return err
	}
	return f.remove()
}

// remove removes a folder that is locked for this process alone.
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

// sweep removes this user's folders of a prefix that nobody holds. One that cannot be removed is left: it is in nobody's way.
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
