// Package waterfall shows when the Python processes of an engine's start import modules, which ones, and when they wait.
//
// In: a folder, which [Prepare] makes part of PYTHONPATH, and a start. Out: the processes ([Recorder.Processes]), and a drawing of them (Write). Fails: if
// files in the folder cannot be written or read. A process whose interpreter ignores PYTHONPATH is not seen.
package waterfall

import (
	"bufio"
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed sitecustomize.py
var program []byte

// Interval is a part of a start.
type Interval struct{ From, To time.Time }

// Import is an outermost import. Packages includes the packages that the imported module imports.
type Import struct {
	Interval
	Packages []Package // longest first
}

// Package is the time that modules of one package took themselves.
type Package struct {
	Name string
	Took time.Duration
}

// Process is one Python interpreter.
type Process struct {
	Command []string
	Began   time.Time // its interpreter's first moment
	Imports []Import
	Waits   []Interval // it used no processor
}

// Recorder records one start.
type Recorder struct {
	dir        string
	waits      map[string][]Interval
	stop, done chan struct{}
}

// Prepare begins to record processes that have dir in PYTHONPATH. Call Processes exactly once, at the start's end.
func Prepare(dir string) (*Recorder, error) {
	if err := os.WriteFile(filepath.Join(dir, "sitecustomize.py"), program, 0o600); err != nil {
		return nil, fmt.Errorf("record start: %w", err)
	}
	r := &Recorder{dir: dir, waits: map[string][]Interval{}, stop: make(chan struct{}), done: make(chan struct{})}
	go r.watch()
	return r, nil
}

// step is twice the kernel's unit of processor time.
const step = 20 * time.Millisecond

// watch finds out when processes use no processor.
func (r *Recorder) watch() {
	defer close(r.done)
	before, last := map[string]string{}, time.Now()
	for {
		select {
		case <-r.stop:
			return
		case <-time.After(step):
		}
		entries, _ := os.ReadDir(r.dir)
		now := time.Now()
		for _, e := range entries {
			used, ok := processorTime(e.Name())
			if !ok {
				continue
			}
			if then, known := before[e.Name()]; known && then == used {
				r.waited(e.Name(), Interval{last, now})
			}
			before[e.Name()] = used
		}
		last = now
	}
}

func (r *Recorder) waited(pid string, i Interval) {
	list := r.waits[pid]
	if n := len(list); n > 0 && list[n-1].To.Equal(i.From) {
		list[n-1].To = i.To
		return
	}
	r.waits[pid] = append(list, i)
}

// processorTime is the process's user and system time, as the kernel writes them.
func processorTime(pid string) (string, bool) {
	if _, err := strconv.Atoi(pid); err != nil {
		return "", false
	}
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return "", false // it has ended
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return "", false
	}
	return string(fields[11]) + " " + string(fields[12]), true
}

// Processes ends the recording. The first process comes first.
func (r *Recorder) Processes() ([]Process, error) {
	close(r.stop)
	<-r.done
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, fmt.Errorf("read recorded start: %w", err)
	}
	var list []Process
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(r.dir, e.Name()))
		if err == nil {
			var p Process
			if p, err = parse(text); err == nil {
				p.Waits = r.waits[e.Name()]
				list = append(list, p)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read recorded process %s: %w", e.Name(), err)
		}
	}
	slices.SortFunc(list, func(a, b Process) int { return a.Began.Compare(b.Began) })
	return list, nil
}

// parse reads the file of sitecustomize.py. The process may have ended in the middle of the last line.
func parse(text []byte) (p Process, err error) {
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	lines := bufio.NewScanner(bytes.NewReader(whole))
	lines.Buffer(nil, len(whole)+1)
	for lines.Scan() {
		var from, to int64
		var what json.RawMessage
		if err := json.Unmarshal(lines.Bytes(), &[]any{&from, &to, &what}); err != nil {
			return p, err
		}
		if to == 0 {
			// A program that replaces itself writes a new first line. A fork continues in a file of its own.
			p.Began = time.Unix(0, from)
			if err := json.Unmarshal(what, &p.Command); err != nil {
				return p, err
			}
			continue
		}
		took := map[string]int64{}
		if err := json.Unmarshal(what, &took); err != nil {
			return p, err
		}
		i := Import{Interval: Interval{time.Unix(0, from), time.Unix(0, to)}}
		for name, ns := range took {
			i.Packages = append(i.Packages, Package{name, time.Duration(ns)})
		}
		slices.SortFunc(i.Packages, func(a, b Package) int { return cmp.Or(cmp.Compare(b.Took, a.Took), strings.Compare(a.Name, b.Name)) })
		p.Imports = append(p.Imports, i)
		if p.Began.IsZero() {
			p.Began = i.From
		}
	}
	return p, lines.Err()
}
