package main

import (
	"errors"
	"io"

	"medusa/internal/printable"
	"medusa/interpose/trace"
)

// traceSummary is the JSON form of a trace's overview. Fields are only ever added.
type traceSummary struct {
	File    string         `json:"file"`
	Process string         `json:"process"`
	GapSeed uint64         `json:"gap_seed"`
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
}

// summarizeTrace reads the whole trace, because only its end record shows that it is complete.
func summarizeTrace(path string) (*traceSummary, error) {
	r, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s := &traceSummary{File: path, Records: map[string]int{}}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return s, nil
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
		case *trace.Phase:
			s.Phases = append(s.Phases, tracePhase{v.Name, seconds})
		case *trace.Graph:
			s.Graphs = append(s.Graphs, traceGraph{v.Label, v.Batch, v.Nodes, v.Edges})
		case *trace.Fault:
			s.Faults = append(s.Faults, v.Call+": "+v.Reason)
		}
	}
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
	for _, p := range s.Phases {
		t.Row("phase\t%s at %.3f s", p.Name, p.Began)
	}
	for _, g := range s.Graphs {
		t.Row("graph\t%s: %d nodes, %d edges", g.Label, g.Nodes, g.Edges)
	}
	for _, f := range s.Faults {
		t.Row("fault\t%s", f)
	}
	t.Row("records\t%d allocations, %d frees, %d modules, %d kernel nodes",
		s.Records["alloc"], s.Records["free"], s.Records["module"], s.Records["kernel"])
	return t.Flush()
}
