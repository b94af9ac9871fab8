// Package atomicfile puts files in place in one step: whoever opens the name finds the old content or the new one, also after
// the machine lost its power.
//
// In: a path, a mode and the content. Out: the file. What can fail: reading the content, and every step of writing; the old
// file then stays as it was, and no temporary file is left.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Write stores content under path, with exactly this mode. The temporary file lies in the same folder, which may be the only one on
// its file system. It and the folder are synced: renameio leaves the folder to its caller.
func Write(path string, mode os.FileMode, content io.Reader) (err error) {
	dir := filepath.Dir(path)
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(mode))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Cleanup()) }()
	if _, err := io.Copy(f, content); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
