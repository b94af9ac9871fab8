package interpose

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The guard stands between medusa and a command. It is a subreaper: whatever the command starts, in sessions of its own or by
// parents that end at once, stays below the guard. When medusa dies, a pipe ends, and the guard kills its own children until
// there are none: the children of those that it killed become its own. It only ever kills children that it has not reaped, so no
// process id can be another's by then. If the guard itself is killed, the kernel kills the command's process, and no more.

const (
	guardName = "medusa-guard" // as argv[0]
	order     = 'T'            // on the pipe: SIGTERM to the command

	fdControl = 3 // the command, then orders; its end is medusa's
	fdFailure = 4 // takes why the command cannot be started
)

// lasting bounds how long the guard tries to kill what it may not, such as programs that gained privileges.
const lasting = 10 * time.Second

// guarded is the command.
type guarded struct {
	Path      string
	Args, Env []string
}

// Every program that runs commands is its own guard: there is no second file to find.
func init() {
	if len(os.Args) == 1 && os.Args[0] == guardName {
		runtime.LockOSThread() // the command dies with the thread that started it
		os.Exit(guard())
	}
}

func guard() int {
	control, failure := os.NewFile(fdControl, "control"), os.NewFile(fdFailure, "failure")
	for _, fd := range []int{fdControl, fdFailure} {
		syscall.CloseOnExec(fd)
	}
	// A terminal's signals reach the command by the terminal. What is ignored stays so, for the command too.
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	var job guarded
	orders := bufio.NewReader(control)
	// mutant: engine of a killed command
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if err == nil {
		err = gob.NewDecoder(orders).Decode(&job)
	}
	var pid int
	if err == nil {
		pid, err = syscall.ForkExec(job.Path, job.Args, &syscall.ProcAttr{Env: job.Env, Files: []uintptr{0, 1, 2},
			// mutant: engine of a killed guard
			Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}})
	}
	if err != nil {
		fmt.Fprintf(failure, "start %s: %v", job.Path, err)
		return 1
	}
	_ = failure.Close()
	c := &children{}
	go c.obey(orders, pid)
	return exitCode(c.wait(pid))
}

// children are the guard's. Who holds the lock knows that none is reaped meanwhile.
type children struct {
	sync.Mutex
	reaped  bool // the command itself
	orphans bool // medusa is gone: all children are to end
}

// wait reaps children until the command has ended, or if medusa is gone until there are none.
func (c *children) wait(command int) (ended syscall.WaitStatus) {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return ended
		}
		c.Lock()
		var ws syscall.WaitStatus
		pid, _ := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if pid == command {
			c.reaped, ended = true, ws
		}
		done := c.reaped && !c.orphans
		c.Unlock()
		if done {
			return ended
		}
	}
}

// obey carries out orders until medusa is gone, and then kills.
func (c *children) obey(orders io.ByteReader, command int) {
	for {
		b, err := orders.ReadByte()
		c.Lock()
		if err != nil {
			c.orphans = true
		} else if b == order && !c.reaped {
			_ = syscall.Kill(command, syscall.SIGTERM)
		}
		c.Unlock()
		if err != nil {
			// mutant: guard notices the end of its command
			break
		}
	}
	for ends := time.Now().Add(lasting); time.Now().Before(ends); time.Sleep(time.Millisecond) {
		c.kill()
	}
	os.Exit(exitCode(syscall.WaitStatus(syscall.SIGKILL)))
}

// kill sends SIGKILL to all children.
func (c *children) kill() {
	c.Lock()
	defer c.Unlock()
	folder, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		// Only of a child does the kernel say whether it has ended.
		if unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
