package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"medusa/internal/printable"
	"medusa/interpose/trace"
)

// traceSummary is the JSON form of a trace's overview. Fields are only ever added.
type traceSummary struct {
	File    string         `json:"file"`
	Process string         `json:"process"`
	GapSeed uint64         `json:"gap_seed"`
	Device  string         `json:"device,omitempty"` // the last one that was used
	Seconds float64        `json:"seconds"`
	Records map[string]int `json:"records"`
	Phases  []tracePhase   `json:"phases"`
	Graphs  []traceGraph   `json:"graphs"`
	Faults  []string       `json:"faults"`
}

type tracePhase struct {
	Name  string  `json:"name"`
	Began float64 `json:"began"` // seconds since the first record
}

type traceGraph struct {
	Label string `json:"label"`
	Batch int64  `json:"batch"`
	Nodes uint32 `json:"nodes"`
	Edges uint32 `json:"edges"`

	Instantiated int  `json:"instantiated"` // number of times
	Embedded     bool `json:"embedded,omitempty"`
}

func (g traceGraph) row() string {
	label, use := g.Label, ""
	switch {
	case g.Embedded:
		label, use = "(embedded in another)", ""
	case g.Instantiated == 0:
		use = ", never instantiated"
	}
	if label == "" {
		label = "(without a label)"
	}
	return fmt.Sprintf("%s: %s, %s%s", label, counted(uint64(g.Nodes), "node"), counted(uint64(g.Edges), "edge"), use)
}

// counted formats a number of things.
func counted(n uint64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// summarizeTrace reads the whole trace, because only its end record shows that it is complete.
func summarizeTrace(path string) (*traceSummary, error) {
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s := &traceSummary{File: path, Records: map[string]int{}}
	graphs := map[uint32]int{} // index in s.Graphs by id
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if errors.Is(err, trace.ErrIncomplete) {
			return nil, fmt.Errorf("%w (%s)", err, s.end())
		}
		if err != nil {
			return nil, err
		}
		s.Records[rec.RecordType().String()]++
		seconds := float64(rec.Header().Time) / 1e9
		s.Seconds = seconds
		switch v := rec.(type) {
		case *trace.Process:
			s.Process, s.GapSeed = v.Exe, v.GapSeed
		case *trace.Device:
			s.Device = v.Name
		case *trace.Phase:
			s.Phases = append(s.Phases, tracePhase{v.Name, seconds})
		case *trace.Graph:
			graphs[v.ID] = len(s.Graphs)
			s.Graphs = append(s.Graphs, traceGraph{Label: v.Label, Batch: v.Batch, Nodes: v.Nodes, Edges: v.Edges})
		case *trace.Exec:
			if i, ok := graphs[v.Graph]; ok {
				s.Graphs[i].Instantiated++
			}
		case *trace.Child:
			if i, ok := graphs[v.Child]; ok {
				s.Graphs[i].Embedded = true
			}
		case *trace.Fault:
			s.Faults = append(s.Faults, v.Call+": "+v.Reason)
		}
	}
}

// end says how far a process came that died before its trace was complete.
func (s *traceSummary) end() string {
	if s.Process == "" {
		return "the process died before it recorded anything"
	}
	text := fmt.Sprintf("%s died after %.3f s", s.Process, s.Seconds)
	if n := len(s.Phases); n > 0 {
		text += fmt.Sprintf(", in phase %q", s.Phases[n-1].Name)
	}
	return text + fmt.Sprintf(", with %s recorded", counted(uint64(s.Records["graph"]), "graph"))
}

func inspectTrace(w io.Writer, path, format string) error {
	s, err := summarizeTrace(path)
	if err != nil {
		return err
	}
	if format == "json" {
		return printable.JSON(w, s)
	}
	t := printable.NewTable(w)
	t.Row("trace\t%s", s.File)
	t.Row("process\t%s, %.3f s", s.Process, s.Seconds)
	if s.Device != "" {
		t.Row("device\t%s", s.Device)
	}
	for _, p := range s.Phases {
		t.Row("phase\t%s at %.3f s", p.Name, p.Began)
	}
	for _, g := range s.Graphs {
		t.Row("graph\t%s", g.row())
	}
	for _, f := range s.Faults {
		t.Row("fault\t%s", f)
	}
	var of []string
	for _, r := range []struct{ record, thing string }{{"alloc", "allocation"}, {"free", "free"}, {"module", "module"}, {"kernel", "kernel node"}} {
		of = append(of, counted(uint64(s.Records[r.record]), r.thing))
	}
	t.Row("records\t%s", strings.Join(of, ", "))
	return t.Flush()
}
