package private

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Folder makes a folder that only this user can open, with the folders above it, unless it exists, and checks that it is this user's alone.
func Folder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return Check(path)
}

// Replace makes a new file that only this user can open, in place of a file or link of this name. What the name led to stays as it is.
func Replace(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // O_EXCL follows no link either
}

// WriteFile writes a file as Replace makes it.
func WriteFile(path string, data []byte) error {
	f, err := Replace(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Create is os.Create for a path that the user chose, such as /dev/stdout. It follows a link only if this user or root made it.
func Create(path string) (*os.File, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW, 0o666)
	if !errors.Is(err, unix.ELOOP) {
		return f, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	// mutant: links of others
	if err := owned(path, info, os.Geteuid()); err != nil {
		return nil, err
	}
	return os.OpenFile(path, flags, 0o666)
}
