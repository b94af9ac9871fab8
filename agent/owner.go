package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// owned reports whether processes that this one started, and no others, take connections to a port of 127.0.0.1. A port is free from
// its choice until the engine listens, so any program may take it and answer in the engine's place.
func owned(port string) bool {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return false
	}
	listeners := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		data, _ := os.ReadFile("/proc/net/" + table) // a machine may lack IPv6
		for line := range strings.Lines(string(data)) {
			if socket, ok := listener(line, uint16(number)); ok {
				listeners[socket] = false
			}
		}
	}
	for _, pid := range family(os.Getpid()) {
		files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
		for _, file := range files {
			target, _ := os.Readlink(file)
			if _, listens := listeners[target]; listens {
				listeners[target] = true
			}
		}
	}
	for _, own := range listeners {
		// mutant: ports of other programs
		if !own {
			return false
		}
	}
	return len(listeners) > 0
}

// addresses are those of sockets that get connections to 127.0.0.1, as /proc has them.
var addresses = map[string]bool{
	"00000000": true, "0100007F": true,
	strings.Repeat("0", 32): true, "0000000000000000FFFF00000100007F": true,
}

// listener reads a line of /proc/net/tcp, and returns the link to a socket that listens on a port, as /proc has it.
func listener(line string, port uint16) (link string, ok bool) {
	const listens = "0A"
	f := strings.Fields(line)
	if len(f) < 10 || f[3] != listens {
		return "", false
	}
	address, hex, _ := strings.Cut(f[1], ":")
	n, err := strconv.ParseUint(hex, 16, 16)
	return "socket:[" + f[9] + "]", err == nil && uint16(n) == port && addresses[address]
}

// family lists all processes that a process started. An engine's guard adopts those whose parents have ended, so none is missed.
func family(root int) []int {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, path := range stats {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		data, _ := os.ReadFile(path) // it may have ended
		// The name before the last parenthesis may hold anything.
		f := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		if len(f) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(f[1])); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	all := children[root]
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}
