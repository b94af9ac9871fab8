package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"medusa/restore/starts"
	"medusa/serving/simulate"
)

// Names come from scenarios, engines and command lines. The tables print no control character and no extra line of a name.
func TestTablesAreText(t *testing.T) {
	tables := func(name string) map[string]func(io.Writer) error {
		plan := &simulate.Plan{Choices: []simulate.Choice{{Model: name}}, Nodes: []simulate.NodePlan{{Models: []string{name}}},
			Warm: []simulate.WarmCount{{Function: name}}}
		result := &simulate.Result{Variants: []simulate.Outcome{{Name: name, Runs: []*simulate.Summary{{Requests: 1, Functions: []simulate.FunctionSummary{{Name: name}}}}}}}
		report := &starts.Report{Device: name, Machine: name, Starts: []starts.Start{{Mode: name, Stages: []starts.Stage{{Name: name}}}}}
		return map[string]func(io.Writer) error{
			"plan":     func(w io.Writer) error { return writePlan(w, plan) },
			"simulate": func(w io.Writer) error { return result.WriteTable(w, true) },
			"bench":    report.WriteTable,
		}
	}
	plain := tables("name")
	for name, write := range tables("\x1b[2J\u009b1m\a\r\u202e\tx\nforged") {
		var got, want bytes.Buffer
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		if err := plain[name](&want); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexAny(got.String(), "\x1b\a\u009b\u202e\r\t"); i >= 0 {
			t.Errorf("%s writes %q to the terminal", name, got.String()[i:])
		}
		if g, w := strings.Count(got.String(), "\n"), strings.Count(want.String(), "\n"); g != w || !strings.Contains(want.String(), "name") {
			t.Errorf("%s has %d lines, %d without such names:\n%s", name, g, w, got.String())
		}
	}
}
