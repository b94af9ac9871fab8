// Package private checks whether a file or folder belongs to this user alone: only this user and root can change it or replace
// it.
//
// In: a path. Out: nil, or an *Error with the path that fails and the reason. A missing path gives an error that wraps
// fs.ErrNotExist. The file, and every folder and symbolic link on the way, must be owned by this user or root. The folders must
// not be writable by a group or by others, with two exceptions. In sticky folders such as /tmp, others can only add names. On a
// file system that is read-only itself, such as an image, no user can write; a mount that is read-only may have a writable one
// beside it. The group bits cover access control lists too, because they are then the mask of the list.
//
// The answer stays valid: after a yes, only this user, root, and whoever can mount the file system elsewhere can make it wrong.
package private

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Error gives the reason why a path is not this user's alone.
type Error struct {
	Path  string // the file, folder or link that fails: the requested one, or one on the way to it
	Cause string
}

func (e *Error) Error() string { return e.Path + ": " + e.Cause }

// maxLinks is the number of symbolic links that Linux follows in one path.
const maxLinks = 40

// File checks an open file or folder, but not the way to it. Other users may be able to replace it by a file of theirs, but they
// cannot change the open one.
func File(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return one(f.Name(), info, os.Geteuid(), false)
}

// Check returns nil if the file or folder at path belongs to this user alone.
func Check(path string) error { return check(path, os.Geteuid()) }

func check(path string, uid int) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	// Look up each step in a folder that has passed the check, so that no other user can exchange it between check and use.
	at, rest, links := "/", split(abs), 0
	info, err := os.Lstat(at)
	if err != nil {
		return err
	}
	for {
		link := info.Mode()&fs.ModeSymlink != 0
		if err := one(at, info, uid, len(rest) > 0); err != nil {
			return err
		}
		if link {
			if links++; links > maxLinks {
				return &Error{path, "too many symbolic links"}
			}
			to, err := os.Readlink(at)
			if err != nil {
				return err
			}
			rest = append(split(to), rest...)
			if at = filepath.Dir(at); filepath.IsAbs(to) {
				at = "/"
			}
		} else if len(rest) == 0 {
			return nil
		} else {
			at, rest = filepath.Join(at, rest[0]), rest[1:] // ".." is safe here: the parent of a folder that has passed has passed too
		}
		if info, err = os.Lstat(at); err != nil {
			return err
		}
	}
}

// split returns the names of a path. It keeps "..", because after a symbolic link it does not cancel the name before it.
func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// Tree checks a folder and everything in it. Links count by their owner: other users cannot have made them.
func Tree(path string) error {
	if err := Check(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return tree(path, closed(info))
}

// closed says whether only this user and root can open a folder. Modes of what it holds have no effect on others then.
func closed(folder fs.FileInfo) bool { return folder.Mode().Perm()&0o077 == 0 }

func tree(folder string, behind bool) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		info, err := e.Info()
		if err != nil {
			return err
		}
		// mutant: what others left in a folder
		if err = owned(path, info, os.Geteuid()); err == nil && !behind {
			err = unwritable(path, info, false)
		}
		if err == nil && info.IsDir() {
			err = tree(path, behind || closed(info))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// one checks a single file, folder or link. A folder on the way may be sticky.
func one(path string, info fs.FileInfo, uid int, onTheWay bool) error {
	if err := owned(path, info, uid); err != nil {
		return err
	}
	return unwritable(path, info, onTheWay)
}

// owned checks that this user or root owns the file, folder or link.
func owned(path string, info fs.FileInfo, uid int) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return &Error{path, "the file system gives no owner"}
	}
	if owner := int(st.Uid); owner != uid && owner != 0 {
		return &Error{path, fmt.Sprintf("user %d owns it, not user %d or root", owner, uid)}
	}
	return nil
}

// unwritable checks that the mode keeps others from writing.
func unwritable(path string, info fs.FileInfo, onTheWay bool) error {
	mode := info.Mode()
	// mutant: folders on the way count
	if mode&fs.ModeSymlink != 0 || mode.Perm()&0o022 == 0 || onTheWay && mode.IsDir() && mode&fs.ModeSticky != 0 || readOnly(path) {
		return nil
	}
	who := "others"
	if mode.Perm()&0o002 == 0 {
		who = fmt.Sprintf("group %d", info.Sys().(*syscall.Stat_t).Gid)
	}
	return &Error{path, fmt.Sprintf("%s can write to it (mode %#o; chmod go-w)", who, mode.Perm())}
}
