package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// HostMemory implements [Engine]: the proportional set size of the processes of the command. Pages that processes share count once. It is
// unknown if no process of the command listens, as with a container. Memory that a driver maps into a process may be missing.
func (p *Process) HostMemory() int64 {
	at := listeners(p.url[strings.LastIndexByte(p.url, ':')+1:])
	sum := int64(0)
	for _, child := range children()[os.Getpid()] {
		all := append([]int{child}, family(child)...)
		if !slices.ContainsFunc(all, func(pid int) bool { return holds(pid, at) }) {
			continue
		}
		for _, pid := range all {
			sum += proportional(pid)
		}
	}
	return sum
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
