package supervisor

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

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
	inside, folderMode, pipeMode := folder.Path, os.FileMode(0o700), os.FileMode(0o600)
	if os.Geteuid() == 0 {
		// The entry point may give up root's privileges before the engine begins. So another user can go through this folder, but has to
		// know the name of the one inside, which only the engine's processes do.
		inside, folderMode, pipeMode = filepath.Join(folder.Path, rand.Text()), 0o777|os.ModeSticky, 0o666
		if err := errors.Join(os.Mkdir(inside, 0o700), os.Chmod(inside, folderMode), os.Chmod(folder.Path, 0o711)); err != nil {
			return err
		}
	}
	pipe, meeting := filepath.Join(inside, "unmarked"), filepath.Join(inside, "ranks")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return fmt.Errorf("make pipe %s: %w", pipe, err)
	}
	if err := errors.Join(os.Chmod(pipe, pipeMode), os.Mkdir(meeting, 0o700), os.Chmod(meeting, folderMode)); err != nil {
		return err
	}
	d.pipe, d.meeting = pipe, meeting
	if status {
		d.status = filepath.Join(inside, "status.json")
	}
	return nil
}

// bring takes statuses from the folder in which the engine's processes meet to their place, and says whether that of the start is among them.
func (d *desk) bring() bool {
	if d.meeting == "" || d.status == "" {
		return false
	}
	left := filepath.Join(d.meeting, status.Meeting)
	for _, file := range statusFiles(left) {
		if st, err := status.Read(file); err == nil {
			_ = status.Write(d.status+strings.TrimPrefix(file, left), st)
		}
	}
	_, err := status.Read(left)
	return err == nil
}

// bringEvery is the time between two looks for a status that an engine could not write to its place.
const bringEvery = 50 * time.Millisecond

// bringing brings the status while the engine runs: others wait for it. Only root's engines may have other rights than this process.
func (d *desk) bringing() (end func()) {
	if os.Geteuid() != 0 {
		return func() {}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		look := time.NewTicker(bringEvery)
		defer look.Stop()
		for !d.bring() {
			select {
			case <-stop:
				return
			case <-look.C:
			}
			if _, err := os.Lstat(d.status); err == nil {
				return // the engine could write it
			}
		}
	}()
	return func() {
		close(stop)
		<-done
		d.bring() // a sticky error comes after the first status
	}
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
