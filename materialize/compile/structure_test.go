package compile

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
)

func placeN(i int) uint64 { return 0x7d0000000000 + uint64(i)*0x50000 }

// deviation lists the differences of the third process.
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
	const unwritten = 0x1122334455667788 // equal in record-a and record-b by chance
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

// Each part of each node of a third process must equal the artifact's node as resolved there.
func TestStructure(t *testing.T) {
	for _, tt := range []struct {
		name string
		deviation
		want string
	}{
		{"the same", deviation{}, ""},
		{"a constant", deviation{constant: 1}, `graph "g": node 0 (kernel): parameter 1 of k`},
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
			pads, err := CompareNodes(spec, c.recording(t), nil, false)
			var differ *StructureError
			if len(pads) > 0 {
				t.Errorf("presumed padding: %v", pads)
			}
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
	if _, err := CompareNodes(spec, c.recording(t), nil, false); err == nil || !strings.Contains(err.Error(), "compare allocation sequences") {
		t.Errorf("other allocations: %v", err)
	}
	if spec.Graphs[0].Nodes[0].Type != graphir.NodeKernel {
		t.Error("no kernel")
	}
}

// Bytes of a struct that differ in a third process are presumed to be padding, a pointer as a whole.
func TestStructsOfAThirdProcess(t *testing.T) {
	for _, tt := range []struct {
		name string
		deviation
		offset, size uint32
		pointer      bool
		want         string
	}{
		{"two bytes", deviation{pad: 0x0101}, 32, 2, false, `byte 16 of parameter 2 of k is 8978 in a native start, 8877 by the artifact`},
		{"a pointer", deviation{pointer: 8}, 16, 8, true, "byte 0 of parameter 2 of k is 10000500007d0000 in a native start, 08000500007d0000 by the artifact"},
		{"a pointer that is none", deviation{pointer: 1 << 62}, 16, 8, true, "byte 0 of parameter 2 of k"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := mustCompile(t, func(tp *tape, at place) { thirdRun(tp, at, deviation{}) })
			c := newTape(3)
			thirdRun(c, placeN, tt.deviation)
			pads, err := CompareNodes(spec, c.recording(t), nil, false)
			if err != nil || len(pads) != 1 {
				t.Fatalf("presumed padding %v, error %v", pads, err)
			}
			p := &pads[0]
			if p.Offset != tt.offset || p.Size != tt.size || (p.pointer != nil) != tt.pointer || !strings.Contains(p.Native.Error(), tt.want) {
				t.Errorf("presumed %d bytes at %d, pointer %v: %v; want %d at %d, %q", p.Size, p.Offset, p.pointer, p.Native, tt.size, tt.offset, tt.want)
			}
			before := onlyKernel(spec)
			relocations, params := len(before.Relocations), bytes.Clone(before.Params)
			if err := pads.Point(nil); err != nil {
				t.Fatal(err)
			}
			if k := onlyKernel(spec); len(k.Relocations) != relocations || !bytes.Equal(k.Params, params) {
				t.Errorf("a candidate without poison has %d relocations and % x, not %d and % x", len(k.Relocations), k.Params, relocations, params)
			}
			if err := pads.Settle(nil); err != nil {
				t.Fatal(err)
			}
			for i := range p.Size {
				if onlyKernel(spec).Params[p.Offset+i] != 0 {
					t.Errorf("byte %d is not zero in the artifact", p.Offset+i)
				}
			}
			broken := errors.New("other outputs")
			for err, want := range map[error]string{p.Matters(broken): "it is no padding", pads.Without(broken): "by the artifact: other outputs"} {
				var differ *StructureError
				if !errors.As(err, &differ) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), want) {
					t.Errorf("padding that matters: %v, want %q", err, want)
				}
			}
			if err := (Paddings{{}}).Without(broken); err != broken {
				t.Errorf("padding that only two recordings have: %v", err)
			}
		})
	}
}

// Two nodes of one kernel that a third process lists in the other order are paired by their structs, not taken for ones with
// other padding.
func TestStructsInAnotherOrder(t *testing.T) {
	record := func(tp *tape, at place, first int) {
		tp.function(0, trace.ModuleModule, "k", 24)
		tp.alloc(at(0), 4096)
		tp.alloc(at(1), 4096)
		tp.alloc(at(2), 4096)
		tp.phase("capture")
		nodes := []trace.Record{tp.kernel(0, at(1+first), 1+uint64(first), 0), tp.kernel(0, at(2-first), 2-uint64(first), 0)}
		g := &trace.Graph{ID: tp.graph, Handle: 7, Label: "g", Batch: 1, Nodes: 2}
		tp.graph++
		tp.add(g)
		tp.add(nodes...)
		tp.add(&trace.Exec{Graph: g.ID, Handle: 9})
		tp.phase("ready")
	}
	spec := mustCompile(t, func(tp *tape, at place) { record(tp, at, 0) })
	c := newTape(3)
	record(c, placeN, 1)
	if pads, err := CompareNodes(spec, c.recording(t), nil, false); err != nil || len(pads) != 0 {
		t.Errorf("presumed padding %v, error %v", pads, err)
	}
}
