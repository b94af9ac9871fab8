package compile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
	"medusa/test/bench"
)

// A trace whose graphs miss parts, or have parts of others among theirs, is refused.
func TestBrokenGraphs(t *testing.T) {
	for want, spoil := range map[string]func(tp *tape){
		`graph "g": 1 of 2 nodes and 0 of 0 edges recorded`: func(tp *tape) {
			tp.add(&trace.Graph{ID: 0, Handle: 7, Label: "g", Batch: 1, Nodes: 2}, tp.kernel(0, 1), &trace.Exec{})
		},
		`graph "g": 1 of 1 nodes and 0 of 1 edges recorded`: func(tp *tape) {
			tp.add(&trace.Graph{ID: 0, Handle: 7, Label: "g", Batch: 1, Nodes: 1, Edges: 1}, tp.kernel(0, 1), &trace.Exec{})
		},
		"part of graph 3: " + recording.ErrDangling.Error(): func(tp *tape) {
			tp.capture("g", 1, tp.kernel(0, 1))
			tp.add(&trace.Edge{Graph: 3})
		},
		"kernel node of function 9: " + recording.ErrDangling.Error(): func(tp *tape) {
			tp.capture("g", 1, tp.kernel(9, 1))
		},
	} {
		_, err := compilePair(t, func(tp *tape, at place) {
			tp.function(0, trace.ModuleModule, "k", 8)
			tp.alloc(at(0), 4096)
			tp.phase("capture")
			spoil(tp)
			tp.phase("ready")
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// Graphs in row groups equal the recorded ones: every parameter buffer, pointers resolved, is record-a's.
func TestRowGroupsSayWhatWasRecorded(t *testing.T) {
	workload := bench.Foundry(48)
	var runs [2]*recording.Recording
	dir := t.TempDir()
	for i, name := range []string{"A", "B"} {
		path := filepath.Join(dir, name)
		err := workload.WriteTrace(path, i)
		if err == nil {
			runs[i], err = recording.Read(path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	many, err := proven(runs[0], runs[1])
	if err != nil {
		t.Fatal(err)
	}
	if many.Rows == nil {
		t.Fatal("no row groups")
	}
	w, err := runs[0].Walk()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	kernels := 0
	err = many.EachGraph(func(i int, g *graphir.Graph) error {
		recorded, err := w.To(runs[0].Graphs[i])
		if err != nil {
			return err
		}
		if len(g.Nodes) != len(recorded.NodeRecords) || len(g.Edges) != len(recorded.EdgeRecords) {
			t.Fatalf("graph %d: %d nodes and %d edges", i, len(g.Nodes), len(g.Edges))
		}
		for n, rec := range recorded.NodeRecords {
			k, ok := rec.(*trace.Kernel)
			if !ok {
				continue
			}
			kernels++
			params := bytes.Clone(g.Nodes[n].Kernel().Params)
			for _, f := range g.Nodes[n].Kernel().Relocations {
				binary.LittleEndian.PutUint64(params[f.Offset:], runs[0].Allocs[f.Pointer.Index].Addr+f.Pointer.Offset)
			}
			if !bytes.Equal(params, k.Params) || g.Nodes[n].Kernel().Grid != [3]uint32(k.Grid) {
				t.Fatalf("graph %d node %d: %x, recorded %x", i, n, params, k.Params)
			}
		}
		return nil
	})
	if err != nil || kernels < 45_000 {
		t.Fatalf("%d kernels: %v", kernels, err)
	}

	pads := Paddings{{Spec: many, graph: 40, node: 500, Offset: 0, Size: 2}}
	node := func() *graphir.KernelNode {
		g, err := many.NewCursor().Graph(40)
		if err != nil {
			t.Fatal(err)
		}
		return g.Nodes[500].Kernel()
	}
	at := node().Relocations[len(node().Relocations)-1]
	pads[0].Offset = at.Offset + 8 // behind the pointers
	pads = append(pads, Padding{Spec: many, graph: 40, node: 500, Offset: at.Offset, Size: 8, pointer: &at.Pointer})
	before := slices.Clone(node().Relocations)
	for _, tt := range []struct {
		name        string
		change      func() error
		relocations []graphir.Relocation
		zeros       int // of ten bytes
	}{
		{"poisoned", func() error { return pads.Poison(nil) }, before[:len(before)-1], 0},
		{"pointing", func() error { return pads.Point(nil) }, before, 10},
		{"settled", func() error { return pads.Settle(nil) }, before[:len(before)-1], 10},
	} {
		if err := errors.Join(tt.change(), many.Validate()); err != nil {
			t.Fatal(err)
		}
		if zeros := bytes.Count(node().Params[at.Offset:at.Offset+10], []byte{0}); zeros != tt.zeros || !slices.Equal(node().Relocations, tt.relocations) {
			t.Errorf("%s: %d zeros, pointers %v, were %v", tt.name, zeros, node().Relocations, before)
		}
	}
}
