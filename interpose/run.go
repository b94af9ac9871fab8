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
	told := make(chan struct{})
	var orders, report *os.File
	var patience *time.Timer
	cmd.Cancel = func() error {
		<-told
		if cancel != Kill {
			_, _ = orders.Write([]byte{byte(syscall.SIGTERM)})
		} else {
			_ = orders.Close() // as if this process had died
		}
		if cancel == End {
			patience = time.AfterFunc(endGrace, func() { _ = orders.Close() })
		}
		return os.ErrProcessDone // the command's own exit code is returned
	}
	var err error
	orders, report, err = start(cmd, guarded{Whole: cancel == End})
	if err != nil {
		return err
	}
	defer orders.Close()
	defer report.Close()
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

// start starts the guard of a command. Closing orders ends the command and the processes that it has started.
func start(cmd *exec.Cmd, job guarded) (orders, report *os.File, err error) {
	job.Path, job.Args, job.Env, job.Files = cmd.Path, cmd.Args, cmd.Environ(), len(cmd.ExtraFiles)
	control, orders, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	defer control.Close()
	report, reports, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("run %s: %w", cmd.Path, err), orders.Close())
	}
	defer reports.Close()
	var text bytes.Buffer
	if err = gob.NewEncoder(&text).Encode(job); err == nil {
		cmd.Path, cmd.Args, cmd.Env = "/proc/self/exe", []string{guardName}, []string{}
		cmd.ExtraFiles = append([]*os.File{control, reports}, cmd.ExtraFiles...)
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, errors.Join(err, orders.Close(), report.Close())
	}
	// A command line can be larger than the buffer of a pipe. If the guard is gone, waiting for it returns the error.
	_, _ = orders.Write(text.Bytes())
	return orders, report, nil
}

// Hold starts a command that can be handed on to another process: the process that holds orders owns it. A byte in orders is the number of a signal
// for it. If no process holds orders any more, the command and all that it has started are killed. ended receives the status of waitid as a decimal
// number, or a text if the command was not started; it ends empty if the guard was killed. The caller has to call cmd.Wait, which waits for the
// guard.
func Hold(cmd *exec.Cmd) (orders, ended *os.File, err error) {
	if cmd.Err != nil {
		return nil, nil, cmd.Err
	}
	return start(cmd, guarded{Tell: true})
}

// ExitCode is the exit code of a process as a shell has it: 128 plus the number of a signal that ended it.
func ExitCode(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}
