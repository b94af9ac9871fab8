package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"medusa/internal/scratch"
	"medusa/restore/status"
)

// desk has the files in which the engine's processes leave news for other processes. The path of a file that cannot be written is empty: a
// start works without it, but its result is not known then.
type desk struct {
	status  string // the status file
	meeting string // workers of one engine agree there whether they restore; their number is not known here
	pipe    string // for the interposer to say that a capture began unmarked
	folder  *scratch.Folder
}

// statusRoom is more than a status takes, in bytes.
const statusRoom = 16 << 10

// openDesk makes the files before the engine starts, because later it is too late to report that one cannot be made.
func (o *Options) openDesk() (*desk, error) {
	d := &desk{}
	var statusErr error
	if o.Status != "" {
		d.status, statusErr = freshStatus(o.Status)
	}
	folderErr := d.open(o.Status == "")
	if statusErr != nil {
		statusErr = fmt.Errorf("prepare status: %w (this start leaves none)", statusErr)
	}
	if folderErr != nil {
		folderErr = fmt.Errorf("prepare folder for this start: %w (make room in TMPDIR)", folderErr)
	}
	return d, errors.Join(statusErr, folderErr)
}

func (d *desk) open(status bool) error {
	folder, err := scratch.ForRun()
	if err != nil {
		return err
	}
	d.folder = folder
	if err := hasRoom(folder.Path); err != nil {
		return err
	}
	pipe := filepath.Join(folder.Path, "unmarked")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return fmt.Errorf("make pipe %s: %w", pipe, err)
	}
	meeting := filepath.Join(folder.Path, "ranks")
	if err := os.Mkdir(meeting, 0o700); err != nil {
		return err
	}
	d.pipe, d.meeting = pipe, meeting
	if status {
		d.status = filepath.Join(folder.Path, "status.json")
	}
	return nil
}

func (d *desk) close() {
	if d.folder != nil {
		_ = d.folder.Close()
	}
}

// freshStatus returns the absolute path of a status file that can be written and is not an earlier start's.
func freshStatus(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for _, old := range append(statusFiles(path), path, path+status.Unwritten) {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
	}
	if err := hasRoom(filepath.Dir(path)); err != nil {
		return "", err
	}
	return path, nil
}

// hasRoom returns the reason why a status could not be written in a folder.
func hasRoom(dir string) error {
	f, err := os.CreateTemp(dir, ".medusa-room-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, statusRoom))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
