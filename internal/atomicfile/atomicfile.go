// Package atomicfile replaces files in one step: a reader of the path finds the old content or the new one, also after a power
// failure.
//
// In: a path, a mode and the content. Out: the file. Fails: if the content cannot be read, or if a step of writing fails. The
// old file then stays, and no temporary file remains.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Write stores content under path, with exactly this mode. The temporary file is in the same folder, because a rename needs the
// same file system. Write syncs the file and the folder; renameio does not sync the folder.
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
