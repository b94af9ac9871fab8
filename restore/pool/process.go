package pool

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process has the properties that a program inherits from the process that starts it, read from outside.
type process struct {
	fixed   []property // a process cannot take these over from another
	umask   int
	mask    uint64
	ignored uint64
	limits  [limits]unix.Rlimit
	nice    int
	oom     int
	caps    uint64 // effective
	folder  string
	folderI os.FileInfo
}

type property struct{ name, value string }

const limits = 16 // RLIMIT_NLIMITS

const (
	capSysNice     = 23
	capSysResource = 24
)

func (p *process) can(capability int) bool { return p.caps>>capability&1 != 0 }

// namespaces, and the lines of /proc/PID/status that have to be equal.
var (
	namespaces  = []string{"cgroup", "ipc", "mnt", "net", "pid_for_children", "time_for_children", "user", "uts"}
	statusLines = []string{"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters",
		"Cpus_allowed", "Mems_allowed", "THP_enabled", "Speculation_Store_Bypass", "SpeculationIndirectBranch"}
	fixedFiles = []string{"cgroup", "personality", "timerslack_ns", "attr/current", "coredump_filter"}
)

// readProcess reads the properties of a process. The caller makes sure that the process keeps its number.
func readProcess(pid int) (*process, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	lines, err := readStatus(filepath.Join(dir, "status"))
	if err != nil {
		return nil, fmt.Errorf("read process %d: %w", pid, err)
	}
	p := &process{}
	for _, name := range statusLines {
		p.fixed = append(p.fixed, property{name, lines[name]})
	}
	for _, ns := range namespaces {
		to, err := os.Readlink(filepath.Join(dir, "ns", ns))
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("read process %d: %w", pid, err)
		}
		p.fixed = append(p.fixed, property{ns + " namespace", to})
	}
	for _, name := range fixedFiles {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			text = nil // this kernel has no such file
		}
		p.fixed = append(p.fixed, property{name, strings.TrimSpace(string(text))})
	}
	root, err := os.Stat(filepath.Join(dir, "root"))
	if err != nil {
		return nil, fmt.Errorf("read process %d: %w", pid, err)
	}
	p.fixed = append(p.fixed, property{"root folder", inode(root)})
	prio, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(pid), 0)
	if errno != 0 {
		return nil, fmt.Errorf("read process %d: I/O priority: %w", pid, errno)
	}
	p.fixed = append(p.fixed, property{"I/O priority", strconv.Itoa(int(prio))})
	if p.folder, err = os.Readlink(filepath.Join(dir, "cwd")); err == nil {
		p.folderI, err = os.Stat(filepath.Join(dir, "cwd"))
	}
	if err != nil {
		return nil, fmt.Errorf("read process %d: %w", pid, err)
	}
	return p, p.readNumbers(pid, dir, lines)
}

func (p *process) readNumbers(pid int, dir string, lines map[string]string) error {
	attr, err := unix.SchedGetAttr(pid, 0)
	if err != nil {
		return fmt.Errorf("read process %d: scheduling: %w", pid, err)
	}
	p.nice = int(attr.Nice)
	policy := attr.Policy
	if policy == unix.SCHED_BATCH { // waiting processes have this policy
		policy = unix.SCHED_NORMAL
	}
	p.fixed = append(p.fixed, property{"scheduling policy", fmt.Sprint(policy, attr.Priority)})
	for i := range p.limits {
		if err := unix.Prlimit(pid, i, nil, &p.limits[i]); err != nil {
			return fmt.Errorf("read process %d: limit %d: %w", pid, i, err)
		}
	}
	umask, err := strconv.ParseInt(lines["Umask"], 8, 32)
	if err != nil {
		return fmt.Errorf("read process %d: umask: %w", pid, err)
	}
	p.umask = int(umask)
	for name, to := range map[string]*uint64{"SigBlk": &p.mask, "SigIgn": &p.ignored, "CapEff": &p.caps} {
		if *to, err = strconv.ParseUint(lines[name], 16, 64); err != nil {
			return fmt.Errorf("read process %d: %s: %w", pid, name, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "oom_score_adj"))
	if err == nil {
		p.oom, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil {
		return fmt.Errorf("read process %d: %w", pid, err)
	}
	return nil
}

func readStatus(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), ":")
		lines[name] = strings.Join(strings.Fields(value), " ")
	}
	return lines, nil
}

func inode(info os.FileInfo) string {
	st, ok := sysStat(info)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// signals lists the numbers of a set.
func signals(set uint64) []int {
	list := []int{}
	for i := range 64 {
		// mutant: signals of the C library
		if n := i + 1; set>>i&1 != 0 && n != sigCancel && n != sigSetXID {
			list = append(list, n)
		}
	}
	return list
}

// The C library keeps these for threads and lets no program change them (nptl(7)). Some versions of make start programs with these ignored.
const sigCancel, sigSetXID = 32, 33

// limitRows are the limits in the form in which a process sets them; -1 is none.
func (p *process) limitRows() [][3]int64 {
	var rows [][3]int64
	for i, l := range p.limits {
		rows = append(rows, [3]int64{int64(i), int64(l.Cur), int64(l.Max)})
	}
	return rows
}
