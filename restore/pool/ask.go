package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"medusa/interpose"
)

func folderOf(socket string) string { return filepath.Dir(socket) }

// Yes is the value of MEDUSA_POOLED in a process of a pool.
const Yes = "yes"

// Cold has the reasons why a start is cold.
type Cold struct{ Differences []string }

func (c *Cold) Error() string { return strings.Join(c.Differences, ", ") }

func cold(format string, args ...any) *Cold { return &Cold{[]string{fmt.Sprintf(format, args...)}} }

// Started is a process that was handed over. It ends with this one.
type Started struct {
	Pid            int
	Engine         string
	control, ended *os.File
	arrived        chan os.Signal
}

// guardFiles are descriptors that a command of interpose.Run never inherits: its guard uses these numbers itself.
var guardFiles = []int{3, 4}

// Ask asks a pool for a process equal to the one that cmd would start under interpose.Run. own is true if the pool is the start's own: then it may
// have to import first. The error is a [*Cold].
func Ask(socket string, cmd *exec.Cmd, own bool) (*Started, error) {
	files, err := streams(cmd)
	if err != nil {
		return nil, err
	}
	socket, err = filepath.Abs(socket)
	if err != nil {
		return nil, cold("ask pool: %v", err)
	}
	c, err := dial(socket)
	if err != nil {
		return nil, cold("ask pool: %v", err)
	}
	defer c.Close()
	if own {
		_ = c.SetDeadline(time.Now().Add(importLimit))
	}
	like, numbers, end, err := child(files)
	if err != nil {
		return nil, cold("look at what a child inherits: %v", err)
	}
	defer end()
	folder, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, cold("open working folder: %v", err)
	}
	sent := []*os.File{os.NewFile(uintptr(folder), ".")}
	defer sent[0].Close()
	for _, n := range numbers {
		if n < len(files) {
			sent = append(sent, files[n])
			continue
		}
		// A duplicate, since the File closes its descriptor.
		dup, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, cold("pass descriptor %d: %v", n, err)
		}
		f := os.NewFile(uintptr(dup), "passed")
		defer f.Close()
		sent = append(sent, f)
	}
	a, got, err := exchange(c, request{
		Protocol: protocol, Ask: "start", Argv: packed(cmd.Args), Executable: cmd.Path, Environment: packed(cmd.Environ()), Descriptors: numbers, Like: like,
	}, sent...)
	if err == nil && len(a.Differences) > 0 {
		err = &Cold{a.Differences}
	} else if err == nil && len(got) != 3 {
		err = cold("ask pool: the answer has %d descriptors", len(got))
	} else if err != nil {
		err = cold("ask pool: %v", err)
	}
	if err != nil {
		closeAll(got)
		return nil, err
	}
	s := &Started{Pid: a.Pid, Engine: a.Engine, control: got[0], ended: got[1], arrived: make(chan os.Signal, 16)}
	// mutant: signals from the program's first moment
	s.catch()
	_, err = got[2].Write([]byte{'G'})
	_ = got[2].Close()
	if err != nil { // it has ended before its program began
		signal.Stop(s.arrived)
		_, _ = s.control.Close(), s.ended.Close()
		return nil, cold("hand process over: %v", err)
	}
	return s, nil
}

// streams returns the command's streams as files. Imports may have asked whether output goes to a terminal.
func streams(cmd *exec.Cmd) ([]*os.File, error) {
	in, inIs := cmd.Stdin.(*os.File)
	out, outIs := cmd.Stdout.(*os.File)
	errs, errsIs := cmd.Stderr.(*os.File)
	if !inIs || !outIs || !errsIs {
		return nil, cold("a stream is not a file")
	}
	for _, f := range []*os.File{out, errs} {
		if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err == nil {
			return nil, cold("%s is a terminal", filepath.Base(f.Name()))
		}
	}
	return []*os.File{in, out, errs}, nil
}

// child starts a program and stops it before its first instruction, so that the kernel shows the properties that a child of this process inherits.
// Go's runtime changes limits and signals of this process itself.
func child(files []*os.File) (pid int, numbers []int, end func(), err error) {
	runtime.LockOSThread()
	pid, err = syscall.ForkExec("/proc/self/exe", []string{"inherits"}, &syscall.ProcAttr{
		Env: []string{}, Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
		Sys: &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}})
	if err != nil {
		runtime.UnlockOSThread()
		return 0, nil, nil, err
	}
	end = func() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
		runtime.UnlockOSThread()
	}
	var ws syscall.WaitStatus
	if _, err = syscall.Wait4(pid, &ws, 0, nil); err == nil && !ws.Stopped() {
		err = errors.New("it has not stopped")
	}
	var entries []os.DirEntry
	if err == nil {
		entries, err = os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	}
	if err != nil {
		end()
		return 0, nil, nil, err
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n != guardFiles[0] && n != guardFiles[1] {
			numbers = append(numbers, n)
		}
	}
	return pid, numbers, end, nil
}

// passed are the signals that reach the engine as they are. SIGINT and SIGTERM end the context instead, as in a cold start.
var passed = []os.Signal{syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT}

// catch keeps signals for the engine: without it Go's runtime drops them.
func (s *Started) catch() {
	for _, sig := range passed {
		if !signal.Ignored(sig) {
			signal.Notify(s.arrived, sig)
		}
	}
}

// Wait waits for the end of the process. Signals to this process are passed on to it. If the context ends, it gets SIGTERM. The code is as in
// interpose.Run: 128 plus the signal's number if a signal ended the process.
func (s *Started) Wait(ctx context.Context) (code int, err error) {
	defer s.ended.Close()
	defer s.control.Close()
	done := make(chan struct{})
	defer signal.Stop(s.arrived)
	defer close(done)
	go func() {
		ending := ctx.Done()
		for {
			select {
			case sig := <-s.arrived:
				_, _ = s.control.Write([]byte{byte(sig.(syscall.Signal))})
			case <-ending:
				_, _ = s.control.Write([]byte{byte(syscall.SIGTERM)})
				ending = nil
			case <-done:
				return
			}
		}
	}()
	text, err := io.ReadAll(s.ended)
	if err != nil {
		return 0, fmt.Errorf("wait for process: %w", err)
	}
	if len(text) == 0 { // its guard was killed, so the kernel has killed it
		return 128 + int(syscall.SIGKILL), nil
	}
	status, err := strconv.Atoi(string(text))
	if err != nil {
		return 0, errors.New(string(text))
	}
	return interpose.ExitCode(syscall.WaitStatus(status)), nil
}
