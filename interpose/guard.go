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

// The guard is a process between medusa and a command. It is a subreaper: every process that the command starts stays below the
// guard, even in a session of its own or after its parent has ended. When medusa dies, a pipe ends, and the guard kills its
// children until none is left; the children of a killed process become the guard's own. It kills only children that it has not
// reaped, so a process ID cannot belong to another process yet. If the guard itself is killed, the kernel kills the command's
// process only.

const (
	guardName = "medusa-guard" // as argv[0]

	fdControl = 3 // the command, then orders: numbers of signals for it, a byte each. It ends when medusa ends
	fdReport  = 4 // receives the reason if the command cannot be started
	fdFirst   = 5 // of the command's own files
)

// lasting bounds the time for killing processes that the guard may not kill, such as programs that gained privileges.
const lasting = 10 * time.Second

// guarded is the command.
type guarded struct {
	Path      string
	Args, Env []string
	Whole     bool // processes that the command leaves behind are killed
	Tell      bool // the end of the command is written to fdReport, for a process that is not the guard's parent
	Files     int  // files that the command has besides its streams
}

// Every program that runs commands is its own guard, so there is no second file to find.
func init() {
	if len(os.Args) == 1 && os.Args[0] == guardName {
		runtime.LockOSThread() // the command dies with the thread that started it
		os.Exit(guard())
	}
}

func guard() int {
	control, report := os.NewFile(fdControl, "control"), os.NewFile(fdReport, "report")
	for _, fd := range []int{fdControl, fdReport} {
		syscall.CloseOnExec(fd)
	}
	// The terminal sends its signals to the command itself. A signal that is ignored stays ignored, also for the command.
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
	files := []uintptr{0, 1, 2}
	for i := range job.Files {
		files = append(files, uintptr(fdFirst+i))
	}
	var pid int
	if err == nil {
		pid, err = syscall.ForkExec(job.Path, job.Args, &syscall.ProcAttr{Env: job.Env, Files: files,
			// mutant: engine of a killed guard
			Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}})
	}
	if err != nil {
		fmt.Fprintf(report, "start %s: %v", job.Path, err)
		return 1
	}
	for i := range job.Files {
		_ = syscall.Close(fdFirst + i)
	}
	c := &children{whole: job.Whole}
	go c.obey(orders, pid)
	if !job.Tell {
		_ = report.Close()
		return ExitCode(c.wait(pid))
	}
	ended := c.wait(pid)
	fmt.Fprint(report, int(ended))
	return ExitCode(ended)
}

// children are the guard's children. While the lock is held, none of them is reaped.
type children struct {
	sync.Mutex
	whole   bool // they end with the command
	reaped  bool // the command itself
	orphans bool // medusa is gone: all children must end
}

// wait reaps children until the command has ended. If medusa is gone, it waits until no child is left.
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
			// mutant: processes that an engine leaves behind
			if c.whole && !c.orphans {
				c.orphans = true
				go c.end(ExitCode(ws))
			}
		}
		done := c.reaped && !c.orphans
		c.Unlock()
		if done {
			return ended
		}
	}
}

// obey carries out orders until medusa is gone, and then kills all children.
func (c *children) obey(orders io.ByteReader, command int) {
	for {
		b, err := orders.ReadByte()
		c.Lock()
		if err != nil {
			c.orphans = true
		} else if !c.reaped {
			_ = syscall.Kill(command, syscall.Signal(b))
		}
		c.Unlock()
		if err != nil {
			// mutant: guard notices the end of its command
			break
		}
	}
	c.end(ExitCode(syscall.WaitStatus(syscall.SIGKILL)))
}

// end kills children until none is left, and the guard ends, or until it is time to give up.
func (c *children) end(code int) {
	for ends := time.Now().Add(lasting); time.Now().Before(ends); time.Sleep(time.Millisecond) {
		c.kill()
	}
	os.Exit(code)
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
		// The kernel reports whether a process has ended to its parent only, so this kills only children.
		if unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
