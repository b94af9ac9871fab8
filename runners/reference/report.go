package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"medusa/runners/reference/engine"
)

// report is engine.Report as JSON.
type report struct {
	Device   string  `json:"device"`
	Start    string  `json:"start"`
	Graphs   int     `json:"graphs"`
	Nodes    int     `json:"nodes"`
	KVBlocks int     `json:"kv_blocks"`
	Stages   []stage `json:"stages"`
}

type stage struct {
	Name         string  `json:"name"`
	Milliseconds float64 `json:"ms"`
}

func newReport(r engine.Report) report {
	out := report{Device: r.Device, Start: r.Start, Graphs: r.Graphs, Nodes: r.Nodes, KVBlocks: r.KVBlocks}
	for _, s := range r.Stages {
		out.Stages = append(out.Stages, stage{s.Name, milliseconds(s.Took)})
	}
	return out
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// printReport writes the stages of a start as a table.
func printReport(w io.Writer, r engine.Report) {
	for _, n := range r.Notices {
		fmt.Fprintf(w, "reference: %s\n", n)
	}
	fmt.Fprintf(w, "start %s on %s: %d graphs, %d KV-cache blocks\n", r.Start, r.Device, r.Graphs, r.KVBlocks)
	var total time.Duration
	for _, s := range r.Stages {
		fmt.Fprintf(w, "  %-10s %10.1f ms\n", s.Name, milliseconds(s.Took))
		total += s.Took
	}
	fmt.Fprintf(w, "  %-10s %10.1f ms\n", "total", milliseconds(total))
}

// printJSON writes one JSON value and a line end.
func printJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
