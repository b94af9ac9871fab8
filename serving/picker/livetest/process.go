package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"medusa/internal/contract"
)

// patience is enough for one start or end on a loaded machine.
const patience = 3 * time.Minute

// process is a program that runs.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error

	mu   sync.Mutex
	said bytes.Buffer
	more chan struct{}
}

// start runs a program and waits until it prints a text. It does not wait for an empty text.
func (r *run) start(until string, argv ...string) (*process, error) {
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), ended: make(chan struct{}), more: make(chan struct{}, 1)}
	p.cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(r.build, "simulated")+":"+filepath.Join(r.build, "lib"),
		contract.EnvCache+"="+filepath.Join(r.work, "cache"), "TMPDIR="+r.work, r.mark)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			p.mu.Lock()
			p.said.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			select {
			case p.more <- struct{}{}:
			default:
			}
		}
		_, _ = io.Copy(io.Discard, out)
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, p.wait(until)
}

// wait waits until the program has printed a text.
func (p *process) wait(text string) error {
	late := time.After(patience)
	for !strings.Contains(p.output(), text) {
		select {
		case <-p.more:
		case <-p.ended:
			return fmt.Errorf("%s has ended: %w\n%s", filepath.Base(p.cmd.Path), p.err, p.output())
		case <-late:
			return fmt.Errorf("%s does not say %q\n%s", filepath.Base(p.cmd.Path), text, p.output())
		}
	}
	return nil
}

// output returns all that the program has printed on standard error.
func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// stop ends the program in order.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		return fmt.Errorf("%s does not end after SIGTERM\n%s", filepath.Base(p.cmd.Path), p.output())
	}
	if p.err != nil {
		return fmt.Errorf("%s, after SIGTERM: %w\n%s", filepath.Base(p.cmd.Path), p.err, p.output())
	}
	return nil
}

// kill ends the program with SIGKILL, as a crash would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// nothingLeft demands that no process of the run is left after a time.
func (r *run) nothingLeft() error {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left := 0
		all, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			return err
		}
		for _, path := range all {
			env, err := os.ReadFile(path)
			if err == nil && bytes.Contains(env, []byte(r.mark+"\x00")) {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d processes are left", left)
		}
	}
}

// freePort returns a port at which no program listens now, on each of the hosts. It is outside of the range from which the kernel takes
// ports.
func freePort(hosts ...string) (port int, err error) {
	for range 100 {
		port = 10000 + rand.IntN(20000)
		err = nil
		for _, host := range hosts {
			l, failed := net.Listen("tcp", fmt.Sprintf("%s:%d", host, port))
			if failed == nil {
				failed = l.Close()
			}
			err = errors.Join(err, failed)
		}
		if err == nil {
			return port, nil
		}
	}
	return 0, err
}
