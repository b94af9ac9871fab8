package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience is how long a process group may take to end after it was asked to.
const patience = 5 * time.Second

// run starts a command in a process group of its own, waits for it and returns its standard output. Both
// outputs go to the step's log as well. At the step's limit the whole group is ended.
func (a *Attempt) run(env []string, argv ...string) (string, error) {
	out, code, err := a.exit(env, argv...)
	if err == nil && code != 0 {
		err = fmt.Errorf("%s: exit code %d", filepath.Base(argv[0]), code)
	}
	return out, err
}

// exit is run for commands whose exit code is looked at; it is -1 if a signal ended the command.
func (a *Attempt) exit(env []string, argv ...string) (string, int, error) {
	p, err := a.start(env, argv...)
	if err != nil {
		return "", -1, err
	}
	return p.wait()
}

// process is a command under way.
type process struct {
	*exec.Cmd
	attempt *Attempt
	out     output
	began   time.Time
	stop    func() bool
}

func (a *Attempt) start(env []string, argv ...string) (*process, error) {
	p := &process{Cmd: exec.Command(argv[0], argv[1:]...), attempt: a, began: time.Now()}
	p.Env = append(append(os.Environ(), a.environment()...), env...)
	p.Dir = a.Work
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	fmt.Fprintf(a.log, "$ %s%s\n", strings.Join(append(env, ""), " "), strings.Join(argv, " "))
	p.Stdout, p.Stderr = io.MultiWriter(&p.out, a.log), a.log
	p.WaitDelay = patience // a child that outlives the command may hold its outputs open
	if err := a.ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(argv[0]), err)
	}
	group := p.Process.Pid
	p.stop = context.AfterFunc(a.ctx, func() {
		syscall.Kill(-group, syscall.SIGTERM)
		time.Sleep(patience)
		syscall.Kill(-group, syscall.SIGKILL)
	})
	return p, nil
}

func (p *process) wait() (string, int, error) {
	err := p.Wait()
	if p.stop() {
		syscall.Kill(-p.Process.Pid, syscall.SIGKILL) // processes that the command left behind
	}
	code := p.ProcessState.ExitCode()
	fmt.Fprintf(p.attempt.log, "[exit code %d, %.1f s]\n\n", code, time.Since(p.began).Seconds())
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if limit := p.attempt.ctx.Err(); limit != nil {
		err = fmt.Errorf("%s: %w", filepath.Base(p.Path), limit)
	}
	return p.out.text(), code, err
}

// lastLine is the last line of a command's output.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// end ends a process that waits.
func (p *process) end() {
	syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
	p.wait()
}

// until waits for a line in the process's output.
func (p *process) until(line string) error {
	for {
		if err := p.attempt.ctx.Err(); err != nil {
			return fmt.Errorf("%s: wait for %q: %w", filepath.Base(p.Path), strings.TrimSpace(line), err)
		}
		if strings.Contains(p.out.text(), line) {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// output is a process's output, read while the process runs.
type output struct {
	sync.Mutex
	b bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.Lock()
	defer o.Unlock()
	return o.b.Write(p)
}

func (o *output) text() string {
	o.Lock()
	defer o.Unlock()
	return o.b.String()
}
