package pool

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Status is the state of a pool.
type Status struct {
	Engines []EngineStatus `json:"engines"`
}

// EngineStatus is the state of an engine's processes.
type EngineStatus struct {
	Name    string `json:"name"`
	Spawned bool   `json:"spawned,omitempty"`
	Size    int    `json:"size"`
	Ready   int    `json:"ready"`
	// PSS is the proportional set size, in bytes, of the waiting processes and their guards: pages that several processes share count for
	// each by its share.
	PSS    uint64 `json:"pss"`
	Counts Counts `json:"counts"`
}

// Counts are counters. Only ImportSeconds can fall.
type Counts struct {
	Imported      int     `json:"imported"` // processes that became ready
	Started       int     `json:"started"`  // handed over
	Refused       int     `json:"refused"`  // requests to which no process could be made equal
	Stale         int     `json:"stale"`    // processes whose files have changed
	Failed        int     `json:"failed"`   // processes that ended before they were handed over
	ImportSeconds float64 `json:"import_seconds"`
}

// Status returns the present state.
func (p *Pool) Status() *Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &Status{}
	for i := range p.spec.Engines {
		e := &p.spec.Engines[i]
		row := EngineStatus{Name: e.Name, Spawned: e.Spawned, Size: e.Size, Ready: len(p.waiting[e]), Counts: *p.counts[e]}
		for _, w := range p.waiting[e] {
			row.PSS += proportional(w.facts.Pid) + proportional(parent(w.facts.Pid))
		}
		s.Engines = append(s.Engines, row)
	}
	return s
}

// proportional is the PSS of a process in bytes; 0 if it has ended.
func proportional(pid int) uint64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if value, found := strings.CutPrefix(s.Text(), "Pss:"); found {
			kilobytes, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

func parent(pid int) int {
	lines, err := readStatus(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(lines["PPid"])
	return n
}

// ReadStatus asks a pool for its state.
func ReadStatus(socket string) (*Status, error) {
	c, err := dial(socket)
	if err != nil {
		return nil, fmt.Errorf("ask pool: %w", err)
	}
	defer c.Close()
	a, files, err := exchange(c, request{Protocol: protocol, Ask: "status"})
	closeAll(files)
	if err == nil && a.Status == nil {
		err = errors.New("the answer has no status")
	}
	if err != nil {
		return nil, fmt.Errorf("ask pool %s: %w", socket, err)
	}
	return a.Status, nil
}

// dial connects to this user's pool.
func dial(socket string) (*net.UnixConn, error) {
	if _, err := os.Lstat(socket); errors.Is(err, os.ErrNotExist) {
		return nil, err // its folder does not matter
	}
	if err := checkFolder(folderOf(socket)); err != nil {
		return nil, err
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	peer, err := credentials(c)
	if err == nil && int(peer.Uid) != os.Geteuid() {
		err = fmt.Errorf("user %d serves %s", peer.Uid, socket)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(requestLimit))
	return c, nil
}

func exchange(c *net.UnixConn, r request, files ...*os.File) (*answer, []*os.File, error) {
	// A pool that refuses a request sends its reason and closes the socket early.
	sent := send(c, r, files...)
	var a answer
	got, err := receive(c, &a)
	switch {
	case err != nil && sent != nil:
		err = sent
	case err == nil && a.Error != "":
		err = errors.New(a.Error)
	}
	return &a, got, err
}
