package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// socket is a socket that takes connections to a port of 127.0.0.1.
type socket struct {
	link string // target of the links to it in /proc/PID/fd
	user int
}

// listeners finds the sockets that listen at a port.
func listeners(port string) (list []socket) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	for _, table := range []string{"tcp", "tcp6"} {
		data, _ := os.ReadFile("/proc/net/" + table) // a machine may lack IPv6
		for line := range strings.Lines(string(data)) {
			if s, ok := listener(line, uint16(number)); ok {
				list = append(list, s)
			}
		}
	}
	return list
}

// owned reports whether only processes that this one started take connections. The port is free from its choice until the engine listens, so any
// program may take it and answer in place of the engine.
func owned(list []socket) bool {
	found := map[string]bool{}
	for _, pid := range family(children(), os.Getpid()) {
		files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
		for _, file := range files {
			target, _ := os.Readlink(file)
			found[target] = true
		}
	}
	for _, s := range list {
		// mutant: ports of other programs
		if !found[s.link] {
			return false
		}
	}
	return len(list) > 0
}

// trusted reports whether no user other than user and root takes connections. With a container, there may be no socket at the port: then the
// kernel forwards connections as root has configured it.
func trusted(list []socket, user int) bool {
	for _, s := range list {
		// mutant: ports of other users
		if s.user != user && s.user != 0 {
			return false
		}
	}
	return true
}

// addresses are the local addresses, as /proc has them, of sockets that get connections to 127.0.0.1.
var addresses = map[string]bool{
	"00000000": true, "0100007F": true,
	strings.Repeat("0", 32): true, "0000000000000000FFFF00000100007F": true,
}

// listener reads a line of /proc/net/tcp about a socket that listens on a port.
func listener(line string, port uint16) (s socket, ok bool) {
	const listens = "0A"
	f := strings.Fields(line)
	if len(f) < 10 || f[3] != listens {
		return socket{}, false
	}
	address, hex, _ := strings.Cut(f[1], ":")
	n, err := strconv.ParseUint(hex, 16, 16)
	user, bad := strconv.Atoi(f[7])
	return socket{"socket:[" + f[9] + "]", user}, err == nil && bad == nil && uint16(n) == port && addresses[address]
}

// family lists all descendants of a process. An engine's guard adopts those whose parents have ended, so none is missed.
func family(of map[int][]int, root int) []int {
	all := slices.Clone(of[root])
	for i := 0; i < len(all); i++ {
		all = append(all, of[all[i]]...)
	}
	return all
}

// children lists the processes of the machine by their parents.
func children() map[int][]int {
	entries, err := os.ReadDir("/proc") // filepath.Glob would list each process's folder, which costs the kernel ten times as much
	if err != nil {
		return nil
	}
	of := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		data, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "stat")) // it may have ended
		// The name may hold any bytes, so the fields are read after its last parenthesis.
		f := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		if len(f) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(f[1])); err == nil {
			of[parent] = append(of[parent], pid)
		}
	}
	return of
}
