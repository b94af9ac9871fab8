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
)

// Cancel says what the end of its context does to a command.
type Cancel byte

// The ways to cancel.
const (
	Terminate Cancel = iota // SIGTERM to the command's process, whose end is waited for
	Kill                    // SIGKILL to it and all that it started
)

// Run runs the command and waits for it. If this process is killed, all processes that the command started are killed, so that
// nothing serves, or holds a GPU, that nobody watches any more: a guard, which is this program once more, is the command's parent
// (guard.go). A command that ends by itself may leave processes behind, as ever. Its exit code is the *exec.ExitError's; 128 plus
// the number of a signal that ended it, as in a shell.
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
	if err := gob.NewEncoder(&job).Encode(guarded{cmd.Path, cmd.Args, cmd.Environ()}); err != nil {
		return err
	}
	cmd.Path, cmd.Args, cmd.Env = "/proc/self/exe", []string{guardName}, []string{}
	cmd.ExtraFiles = []*os.File{control, failure}
	told := make(chan struct{})
	cmd.Cancel = func() error {
		<-told
		if cancel == Terminate {
			_, _ = orders.Write([]byte{order})
		} else {
			_ = orders.Close() // as if this process had died
		}
		return os.ErrProcessDone // its exit code counts
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, control.Close(), failure.Close())
	}
	_, _ = control.Close(), failure.Close()
	// A command line can be larger than a pipe holds. If the guard is gone, Wait says so.
	_, _ = orders.Write(job.Bytes())
	close(told)
	err = cmd.Wait()
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
