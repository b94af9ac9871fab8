package interpose

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Cancel is the effect on a command of the end of its context.
type Cancel byte

// The ways to cancel.
const (
	Terminate Cancel = iota // SIGTERM to the command's process, then wait for its end
	Kill                    // SIGKILL to it and to all processes that it started
	End                     // SIGTERM to it, and SIGKILL to all if it has not ended endGrace later
)

// endGrace is more than a server takes for the requests that it finishes after SIGTERM. Tests wait less.
var endGrace = 20 * time.Second

// Run runs the command and waits for it. If this process is killed, all processes that the command started are killed too, so
// that no unwatched process serves or holds a GPU. For that, a guard is the parent of the command (guard.go); it is this program,
// started again. If the command ends by itself, processes that it started may live on, as usual, unless cancel is End. The exit code is in the
// *exec.ExitError; as in a shell, it is 128 plus the signal's number if a signal ended the command.
func Run(cmd *exec.Cmd, cancel Cancel) error {
	if cmd.Err != nil {
		return cmd.Err
	}
	control, orders, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	defer orders.Close()
	report, failure, err := os.Pipe()
	if err != nil {
		_ = control.Close()
		return fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	defer report.Close()
	var job bytes.Buffer
	if err := gob.NewEncoder(&job).Encode(guarded{cmd.Path, cmd.Args, cmd.Environ(), cancel == End}); err != nil {
		return err
	}
	cmd.Path, cmd.Args, cmd.Env = "/proc/self/exe", []string{guardName}, []string{}
	cmd.ExtraFiles = []*os.File{control, failure}
	told := make(chan struct{})
	var patience *time.Timer
	cmd.Cancel = func() error {
		<-told
		if cancel != Kill {
			_, _ = orders.Write([]byte{order})
		} else {
			_ = orders.Close() // as if this process had died
		}
		if cancel == End {
			patience = time.AfterFunc(endGrace, func() { _ = orders.Close() })
		}
		return os.ErrProcessDone // the command's own exit code is returned
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, control.Close(), failure.Close())
	}
	_, _ = control.Close(), failure.Close()
	// A command line can be larger than the buffer of a pipe. If the guard is gone, Wait returns the error.
	_, _ = orders.Write(job.Bytes())
	close(told)
	err = cmd.Wait() // which also waits for Cancel
	if patience != nil {
		patience.Stop()
	}
	if text, _ := io.ReadAll(report); len(text) > 0 {
		return errors.New(string(text))
	}
	return err
}

func exitCode(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}
