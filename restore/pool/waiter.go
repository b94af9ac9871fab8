package pool

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"medusa/interpose"
)

// waiter is one process of an engine.
type waiter struct {
	engine         *Engine
	control, ended *os.File // of its guard
	link           *net.UnixConn
	facts          *facts
	gone           chan struct{} // closed when the guard has ended
	guard          int
}

// Time limits for the imports of a process, and for its answers.
const (
	importLimit = 15 * time.Minute
	answerLimit = 30 * time.Second
)

// startWaiter starts a process. The caller need not wait for it: close ends it at any time.
func startWaiter(e *Engine) (*waiter, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start process: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "link"), os.NewFile(uintptr(fds[1]), "link")
	defer ours.Close()
	defer theirs.Close()
	c, err := net.FileConn(ours)
	if err != nil {
		return nil, fmt.Errorf("start process: %w", err)
	}
	w := &waiter{engine: e, link: c.(*net.UnixConn), gone: make(chan struct{})}
	cmd := e.cmd()
	cmd.ExtraFiles = []*os.File{theirs}
	// The engine must not get the signals of the pool's terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if w.control, w.ended, err = interpose.Hold(cmd); err != nil {
		_ = w.link.Close()
		return nil, fmt.Errorf("start process: %w", err)
	}
	go func() { // the guard's report has the status as well
		_ = cmd.Wait()
		close(w.gone)
	}()
	w.guard = cmd.Process.Pid
	return w, nil
}

// lower gives other processes precedence. Every process may leave SCHED_BATCH, but only a privileged one
// may lower its niceness again.
func (w *waiter) lower() {
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}
	if self, err := readProcess(os.Getpid()); err == nil {
		attr.Nice = int32(self.nice)
		if self.canNice(self.nice) {
			attr.Nice = 19
		}
	}
	_ = unix.SchedSetAttr(w.guard, attr, 0)
}

// awaitReady makes the process import, and returns when it is ready.
func (w *waiter) awaitReady() error {
	_ = w.link.SetDeadline(time.Now().Add(importLimit))
	if err := send(w.link, job{Modules: append([]string{}, w.engine.Modules...), Arguments: packed(w.engine.program.sysArgv())}); err != nil {
		return w.failed(err)
	}
	var t told
	files, err := receive(w.link, &t)
	closeAll(files)
	switch {
	case err != nil:
		return w.failed(err)
	case t.Failed != "":
		return fmt.Errorf("import modules: %s", t.Failed)
	case t.Ready == nil:
		return errors.New("import modules: the process sent something else")
	}
	w.facts = t.Ready
	return w.link.SetDeadline(time.Time{})
}

// failed returns the reason why a process does not answer.
func (w *waiter) failed(err error) error {
	select {
	case <-w.gone:
	case <-time.After(time.Second):
		return fmt.Errorf("import modules: %w", err)
	}
	text := make([]byte, 256)
	n, _ := w.ended.Read(text)
	return fmt.Errorf("import modules: the process has ended (%s)", text[:n])
}

// become makes the process equal to the caller's child. It does not run the program yet.
func (w *waiter) become(s *start, r *request, files []*os.File, spawned string) error {
	if err := w.raise(s.like.nice); err != nil {
		return err
	}
	interpreter := append([]string{s.program.Name}, s.program.Options...)
	_ = w.link.SetDeadline(time.Now().Add(answerLimit))
	if err := send(w.link, handover{
		Interpreter: packed(interpreter), Argv: packed(s.program.Argv), Environment: r.Environment, Descriptors: s.descriptors,
		Umask: s.like.umask, Limits: s.like.limitRows(), Mask: signals(s.like.mask), Ignored: signals(s.like.ignored), OOMScoreAdj: s.like.oom,
		Spawned: spawned,
	}, files...); err != nil {
		return err
	}
	var t told
	got, err := receive(w.link, &t)
	closeAll(got)
	if err == nil && !t.Applied {
		err = fmt.Errorf("hand process over: %s", t.Failed)
	}
	return err
}

// raise gives all threads of the process the caller's priority.
func (w *waiter) raise(nice int) error {
	dir := fmt.Sprintf("/proc/%d/task", w.facts.Pid)
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("set priority: %w", err)
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			return err
		}
		// mutant: priority of the caller
		if err := unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: int32(nice)}, 0); err != nil {
			return fmt.Errorf("set priority of %d: %w", tid, err)
		}
	}
	return nil
}

// close gives up the process. If no other process holds its guard's control, it is killed.
func (w *waiter) close() {
	_, _, _ = w.control.Close(), w.ended.Close(), w.link.Close()
}
