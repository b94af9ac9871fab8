package inspect

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/graphir"
)

// evil clears a screen, sets a title, and begins a line and a column.
const evil = "\x1b[2J\x1b]0;x\a\u009b1m\u202e\nforged\tcolumn\r"

// hostile is an artifact that has such names everywhere.
func hostile(t *testing.T) *artifacts.Artifact {
	a := artifact(t)
	a.Identity[0].Value, a.Identity[1].Key = evil, evil
	a.Directories[0].Name, a.Directories[0].Path = evil, evil
	a.Stages[0].Device, a.Stages[0].Mode, a.Stages[0].Stages[0].Name = evil, evil, evil
	a.Verification.Device, a.Verification.Driver = evil, evil
	s := a.Spec
	s.Notes[0].Name = evil
	for i := range s.Graphs {
		s.Graphs[i].Label = evil
	}
	for i := range s.Kernels {
		s.Kernels[i].Name = evil
	}
	for i := range s.Modules {
		s.Modules[i].DSO, s.Modules[i].BuildID = evil, evil
	}
	for i := range s.Tensors {
		s.Tensors[i].Name = evil
	}
	return a
}

// Tables print an artifact's names as plain text, in as many lines as without them. JSON has the names unchanged.
func TestNothingControlsTheTerminal(t *testing.T) {
	views := func(a *artifacts.Artifact) map[string]interface{ WriteTable(io.Writer) error } {
		label := a.Spec.Graphs[0].Label
		return map[string]interface{ WriteTable(io.Writer) error }{
			"summary": must(Summarize("x.medusa", a)), "graph": must(FindGraph(a.Spec, label)),
			"kernels": must(ListKernels(a.Spec)), "allocs": must(ListAllocations(a.Spec)),
			"sizes": must(Measure([]artifacts.Section{{Kind: a.Directories[0].Name}}, a.Spec)),
			"diff":  names{must(Compare(a, hostileButOne(t)))},
		}
	}
	plain, bad := views(artifact(t)), views(hostile(t))
	for name, v := range bad {
		var got, want bytes.Buffer
		if err := v.WriteTable(&got); err != nil {
			t.Fatal(err)
		}
		if err := plain[name].WriteTable(&want); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexAny(got.String(), "\x1b\a\u009b\u202e\r\t"); i >= 0 {
			t.Errorf("%s writes %q to the terminal", name, got.String()[max(0, i-20):min(got.Len(), i+20)])
		}
		if strings.Contains(got.String(), "\nforged") {
			t.Errorf("%s has a line that a name made:\n%s", name, got.String())
		}
		if g, w := strings.Count(got.String(), "\n"), strings.Count(want.String(), "\n"); name != "diff" && g != w {
			t.Errorf("%s has %d lines, %d without such names", name, g, w)
		}
		if name == "diff" {
			continue
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		exact, err := json.Marshal(evil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(data, exact) && name != "sizes" {
			t.Errorf("%s: the JSON form lost a name:\n%s", name, data)
		}
	}
}

// names is a comparison of files with such names.
type names struct{ *Diff }

func (n names) WriteTable(w io.Writer) error { return n.Diff.WriteTable(w, evil, evil) }

// hostileButOne differs from hostile in a value that a comparison quotes.
func hostileButOne(t *testing.T) *artifacts.Artifact {
	b := hostile(t)
	b.Identity[0].Value = strings.Repeat(evil, 10)
	b.Directories[0].Path = evil + "2"
	b.Spec.Kernels = append(b.Spec.Kernels, graphir.Kernel{Name: evil + "3"})
	b.Spec.Graphs[0].Label = evil + "4"
	b.Spec.Graphs[1].Batch++
	return b
}
