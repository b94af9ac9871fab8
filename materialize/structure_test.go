package materialize

import (
	"errors"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
)

func placeN(i int) uint64 { return 0x7d0000000000 + uint64(i)*0x50000 }

// deviation is what the third process does otherwise.
type deviation struct {
	constant, pad, pointer uint64
	grid                   uint32
	name                   string
	value                  uint32
	copied                 uint64
	attr                   byte
	shared                 uint32
	skip                   bool // an edge fewer
	label                  string
	window                 uint64
}

func thirdRun(tp *tape, at place, d deviation) {
	tp.function(0, trace.ModuleModule, "k"+d.name, 8, 8, 24)
	tp.alloc(at(0), 4096)
	tp.alloc(at(1), 4096)
	tp.phase("capture")
	const unwritten = 0x1122334455667788 // equal in runs A and B by chance
	k := tp.kernel(0, at(0)+64, 7+d.constant, at(1)+8+d.pointer, 5, unwritten+d.pad)
	k.Grid[0] += d.grid
	k.Shared = d.shared
	value := make([]byte, 16)
	for i := range 8 {
		value[i] = byte((at(1) + d.window) >> (8 * i))
	}
	value[8] = 1 + d.attr
	k.Attrs = []trace.KernelAttr{{ID: attrAccessPolicyWindow, Value: value}}
	memset := &trace.Memset{Node: k.Node + 100, Dst: at(0), ElemSize: 4, Width: 16, Height: 1, Value: 3 + d.value}
	memcpy := &trace.Memcpy{Node: k.Node + 101, Src: at(0), Dst: at(1) + d.copied, SrcType: 2, DstType: 2, Width: 64, Height: 1, Depth: 1}
	tp.capture("g"+d.label, 1, k, memset, memcpy)
	if d.skip {
		e := tp.recs[len(tp.recs)-2].(*trace.Edge)
		e.From = k.Node
	}
	tp.phase("ready")
}

// Each part of each node of a third process has to be what the artifact becomes there.
func TestStructure(t *testing.T) {
	for _, tt := range []struct {
		name string
		deviation
		want string
	}{
		{"the same", deviation{}, ""},
		{"a constant", deviation{constant: 1}, `graph "g": node 0 (kernel): parameter 1 of k`},
		{"a byte of a struct", deviation{pad: 1}, ""},
		{"a pointer in a struct", deviation{pointer: 8}, "node 0 (kernel): parameter 2 of k"},
		{"another grid", deviation{grid: 1}, "the launch of k"},
		{"shared memory", deviation{shared: 64}, "the launch of k"},
		{"another kernel", deviation{name: "2"}, "its kernel is k2"},
		{"an attribute", deviation{attr: 1}, "attribute 1"},
		{"an attribute's address", deviation{window: 64}, "attribute 1"},
		{"a fill's value", deviation{value: 1}, "node 1 (memset): its shape or value"},
		{"a copy's end", deviation{copied: 256}, "node 2 (memcpy): its destination"},
		{"an edge", deviation{skip: true}, "edge 1"},
		{"a label", deviation{label: "2"}, "label, batch"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := mustCompile(t, func(tp *tape, at place) { thirdRun(tp, at, deviation{}) })
			c := newTape(3)
			thirdRun(c, placeN, tt.deviation)
			err := compareStructure(spec, c.recording(t), nil, false)
			var differ *StructureError
			if (err == nil) != (tt.want == "") || err != nil && (!errors.As(err, &differ) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	spec := mustCompile(t, func(tp *tape, at place) { thirdRun(tp, at, deviation{}) })
	c := newTape(3)
	c.function(0, trace.ModuleModule, "k", 8)
	c.alloc(placeN(0), 8192)
	c.phase("ready")
	if err := compareStructure(spec, c.recording(t), nil, false); err == nil || !strings.Contains(err.Error(), "compare allocation sequences") {
		t.Errorf("other allocations: %v", err)
	}
	if spec.Graphs[0].Nodes[0].Type != graphir.NodeKernel {
		t.Error("no kernel")
	}
}
