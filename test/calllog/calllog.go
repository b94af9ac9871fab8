// Package calllog reads the call log that the simulated GPU (SIMGPU_CALL_LOG, simgpu/README.md) and the counting
// driver proxy write: one line a driver call, and the marks that an engine put between them. Tests prove the acts of a
// process by this log, and not by Medusa's words.
//
// In: a log file. Out: its entries in order. Fails: if a line is malformed; the error names file and line.
package calllog

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Entry is one driver call, or a mark if Mark is set.
type Entry struct {
	Mark   string
	Name   string // exported symbol, such as cuMemAlloc_v2
	Result string // "0" or the name of the error
	Thread int
	Args   map[string]string
}

// Log is the log of one process.
type Log struct {
	Device  string // "simulated" or "cuda"
	Entries []Entry
}

// Read reads a log. A last line that was cut off by the end of the process is left out.
func Read(path string) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read call log: %w", err)
	}
	defer f.Close()
	log := &Log{}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		fields := strings.Split(s.Text(), "\t")
		switch {
		case fields[0] == "start":
			log.Device = pairs(fields[1:])["device"]
		case fields[0] == "mark" && len(fields) == 2:
			log.Entries = append(log.Entries, Entry{Mark: fields[1]})
		case len(fields) >= 5:
			thread, err := strconv.Atoi(fields[2])
			if err != nil {
				return nil, fmt.Errorf("read call log %s: line %d: thread: %w", path, n, err)
			}
			log.Entries = append(log.Entries, Entry{Thread: thread, Name: fields[3], Result: fields[4], Args: pairs(fields[5:])})
		default:
			return nil, fmt.Errorf("read call log %s: line %d: %d fields", path, n, len(fields))
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read call log %s: %w", path, err)
	}
	return log, nil
}

func pairs(fields []string) map[string]string {
	out := make(map[string]string, len(fields))
	for _, f := range fields {
		if k, v, ok := strings.Cut(f, "="); ok {
			out[k] = v
		}
	}
	return out
}

// base strips an ABI version and the per-thread-stream suffix from a symbol.
func base(symbol string) string {
	symbol = strings.TrimSuffix(strings.TrimSuffix(symbol, "_ptsz"), "_ptds")
	if i := strings.LastIndex(symbol, "_v"); i > 0 && len(symbol)-i == 3 {
		return symbol[:i]
	}
	return symbol
}

// Between returns the entries after the first mark with the text from, up to the next mark with the text to. If no
// mark has the text from, there are no entries; an empty from starts at the beginning. An absent or empty to goes to
// the end.
func (l *Log) Between(from, to string) []Entry {
	start := 0
	if from != "" {
		start = len(l.Entries)
		for i, e := range l.Entries {
			if e.Mark == from {
				start = i + 1
				break
			}
		}
	}
	rest := l.Entries[start:]
	for i, e := range rest {
		if to != "" && e.Mark == to {
			return rest[:i]
		}
	}
	return rest
}

// Count returns how many of the entries call a driver function of the given base name (cuMemAlloc for cuMemAlloc_v2).
func Count(entries []Entry, name string) int {
	n := 0
	for _, e := range entries {
		if e.Mark == "" && base(e.Name) == name {
			n++
		}
	}
	return n
}

// Launches returns how many kernels the entries launch by themselves, graphs not counted.
func Launches(entries []Entry) int {
	return Count(entries, "cuLaunchKernel") + Count(entries, "cuLaunchKernelEx") + Count(entries, "cuLaunchCooperativeKernel")
}
