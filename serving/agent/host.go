package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// HostMemory implements [Engine]: the proportional set size of the processes of the command, so pages that processes share count once. It is
// unknown if no process of the command listens, as with a container. Memory that a driver maps into a process may be missing.
func (p *Process) HostMemory() int64 {
	sum := int64(0)
	for _, pid := range p.processes() {
		sum += proportional(pid)
	}
	return sum
}

// DeviceMemory implements [Engine], if nvidia-smi shows the memory.
func (p *Process) DeviceMemory(ctx context.Context) float64 {
	if p.meter == nil {
		return 0
	}
	share, err := p.meter.Share(ctx, p.processes())
	if err != nil {
		return 0
	}
	return share
}

// processes lists the processes of the command that listens at the port. It lists none if no process of a command listens, as with a container,
// or if the command has ended.
func (p *Process) processes() []int {
	select {
	case <-p.ended:
		return nil
	default:
	}
	of := children()
	if p.guard == 0 {
		at := listeners(p.url[strings.LastIndexByte(p.url, ':')+1:])
		for _, child := range of[os.Getpid()] {
			if slices.ContainsFunc(family(of, child), func(pid int) bool { return holds(pid, at) }) {
				p.guard = child
			}
		}
	}
	if p.guard == 0 {
		return nil
	}
	return append(family(of, p.guard), p.guard)
}

// holds reports whether a process has one of the sockets.
func holds(pid int, at []socket) bool {
	files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
	return slices.ContainsFunc(files, func(file string) bool {
		target, _ := os.Readlink(file)
		return slices.ContainsFunc(at, func(s socket) bool { return s.link == target })
	})
}

// proportional is the size of a process in bytes; 0 if it has ended.
func proportional(pid int) int64 {
	data, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	for line := range strings.Lines(string(data)) {
		if text, is := strings.CutPrefix(line, "Pss:"); is {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}
