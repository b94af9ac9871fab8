package rebuild

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/memory"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// forkSpec holds two graphs of one shape: a fork and join over a kernel, a memset, a memcpy and an empty node.
func forkSpec() *graphir.Spec {
	graph := func(label string, grid uint32) graphir.Graph {
		return graphir.Graph{
			Label: label, InstantiateFlags: 8,
			Nodes: []graphir.Node{
				{Type: graphir.NodeKernel, Params: &graphir.KernelNode{
					Kernel: 0, Grid: [3]uint32{grid, 1, 1}, Block: [3]uint32{128, 1, 1}, SharedBytes: 64,
					Params:      []byte{0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
					Relocations: []graphir.Relocation{{Offset: 0, Pointer: graphir.Pointer{Index: 0, Offset: 16}}, {Offset: 16, Pointer: graphir.Pointer{Index: 1}}},
					Attrs:       []graphir.NodeAttr{{ID: 8, Value: [64]byte{3}}},
				}},
				{Type: graphir.NodeMemset, Params: &graphir.MemsetNode{Dst: graphir.Pointer{Index: 1, Offset: 32}, Value: 7, ElemSize: 4, Width: uint64(grid), Height: 1}},
				{Type: graphir.NodeMemcpy, Params: &graphir.MemcpyNode{
					Src: graphir.MemcpyEnd{Pointer: graphir.Pointer{Index: 0}, X: 1, Pitch: 64}, Dst: graphir.MemcpyEnd{Pointer: graphir.Pointer{Index: 1}, Y: 2, Height: 9},
					Width: 16, Height: 1, Depth: 1,
				}},
				{Type: graphir.NodeEmpty},
			},
			Edges: []graphir.Edge{{From: 0, To: 1, Type: 1, FromPort: 1}, {From: 0, To: 2}, {From: 1, To: 3}, {From: 2, To: 3}},
		}
	}
	return &graphir.Spec{
		Allocations: []graphir.Allocation{{Owner: graphir.OwnerEngine, Size: 64}, {Owner: graphir.OwnerGraph, Size: 128}},
		Kernels:     []graphir.Kernel{{Name: "k", Params: []graphir.Param{{Offset: 0, Size: 8}, {Offset: 8, Size: 4}, {Offset: 16, Size: 8}}}},
		Graphs:      []graphir.Graph{graph("decode-1", 1), graph("decode-2", 2)},
	}
}

func testBuilder(spec *graphir.Spec) *builder {
	return &builder{sheet: &sheet{}, spec: spec, functions: []cuda.Function{0xf0}, context: 0xc0, memory: &memory.Map{Spec: spec, Base: []uint64{0x1000, 0x2000}}}
}

func TestProgramLayout(t *testing.T) {
	spec := forkSpec()
	b := testBuilder(spec)
	defer b.arena.release()
	slots, err := place[uint64](&b.arena, 7)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &template{graph: &slots[0], nodes: slots[1:5]}
	names := map[uint64]string{}
	for i, name := range []string{"graph", "node[0]", "node[1]", "node[2]", "node[3]", "exec[0]", "exec[1]"} {
		names[uint64(uintptr(unsafe.Pointer(&slots[i])))] = name
	}
	var out strings.Builder
	for i := range spec.Graphs {
		b.program.reset()
		if err := b.lay(tmpl, &spec.Graphs[i], i == 0, &slots[5+i]); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "graph %s\n", spec.Graphs[i].Label)
		for j, c := range b.program.calls {
			fmt.Fprintf(&out, "  %s\n", dumpCall(b, b.program.steps[j].call, &c, names))
		}
	}
	golden := filepath.Join("testdata", "program.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("programs (go test -update rewrites %s):\n%s", golden, out.String())
	}
}

// at reads arena memory that a call points to.
func at[T any](b *builder, addr uint64) *T {
	for _, chunk := range b.arena.chunks {
		base := uint64(uintptr(unsafe.Pointer(&chunk[0])))
		if addr >= base && addr < base+uint64(len(chunk)) {
			return (*T)(unsafe.Pointer(&chunk[addr-base]))
		}
	}
	panic(fmt.Sprintf("address %#x is outside the arena", addr))
}

// dumpCall shows a call with the targets of its pointers.
func dumpCall(b *builder, c cuda.Entry, raw *call, names map[uint64]string) string {
	var args []string
	for i := range raw.Nargs {
		v := raw.Arg[i]
		text, known := names[v]
		switch {
		case known && raw.Deref>>i&1 == 0:
			text = "&" + text
		case known:
		case (c == cuda.EntryGraphAddKernelNode && i == 4) || (c == cuda.EntryGraphKernelNodeSetParams && i == 1):
			p := at[cuda.KernelNodeParams](b, v)
			pointers := unsafe.Slice(at[uint64](b, uint64(p.Params)), 3)
			text = fmt.Sprintf("{func %#x grid %v block %v shared %d params %#x %d %#x}", uint64(p.Func), p.Grid, p.Block, p.SharedMemBytes,
				*at[uint64](b, pointers[0]), *at[uint32](b, pointers[1]), *at[uint64](b, pointers[2]))
		case (c == cuda.EntryGraphAddMemsetNode && i == 4) || (c == cuda.EntryGraphMemsetNodeSetParams && i == 1):
			text = fmt.Sprintf("%+v", *at[cuda.MemsetNodeParams](b, v))
		case (c == cuda.EntryGraphAddMemcpyNode && i == 4) || (c == cuda.EntryGraphMemcpyNodeSetParams && i == 1):
			m := at[cuda.Memcpy3D](b, v)
			text = fmt.Sprintf("{src %d %#x x %d y %d z %d pitch %d height %d, dst %d %#x x %d y %d z %d pitch %d height %d, %d x %d x %d}",
				m.SrcMemoryType, uint64(m.SrcDevice), m.SrcXInBytes, m.SrcY, m.SrcZ, m.SrcPitch, m.SrcHeight,
				m.DstMemoryType, uint64(m.DstDevice), m.DstXInBytes, m.DstY, m.DstZ, m.DstPitch, m.DstHeight, m.WidthInBytes, m.Height, m.Depth)
		case c == cuda.EntryGraphKernelNodeSetAttribute && i == 2:
			text = fmt.Sprintf("%v...", at[[64]byte](b, v)[:4])
		case c == cuda.EntryGraphAddDependencies && i == 3:
			text = fmt.Sprint(unsafe.Slice(at[cuda.EdgeData](b, v), raw.Arg[4]))
		default:
			text = fmt.Sprintf("%#x", v)
		}
		args = append(args, text)
	}
	return fmt.Sprintf("%s(%s)", c, strings.Join(args, ", "))
}

// A failed call is named with the graph that it belongs to, of several on one sheet.
func TestFailedCallIsNamed(t *testing.T) {
	spec := forkSpec()
	b := testBuilder(spec)
	defer b.arena.release()
	defer b.slots.release()
	written, blank, stop := make(chan *sheet), make(chan *sheet, 2), make(chan struct{})
	first, second := b.sheet, &sheet{}
	b.sheet = nil
	blank <- first
	blank <- second
	defer second.arena.release()
	go b.write([][]int{{0}, {1}, {0}}, written, blank, stop)
	if s := <-written; len(s.graphs) != 1 || s.label(spec, len(s.program.calls)-1) != "decode-1" {
		t.Errorf("the first sheet holds graphs %+v", s.graphs)
	}
	s := <-written
	if len(s.graphs) != 2 {
		t.Fatalf("the second sheet holds graphs %+v", s.graphs)
	}
	for call, want := range map[int]string{0: "decode-2", s.graphs[0].calls - 1: "decode-2", s.graphs[0].calls: "decode-1", len(s.program.calls) - 1: "decode-1"} {
		if got := s.label(spec, call); got != want {
			t.Errorf("call %d belongs to graph %s, not %s", call, got, want)
		}
	}
	if _, more := <-written; more {
		t.Error("a third sheet")
	}
}

func TestLayRefuses(t *testing.T) {
	for name, change := range map[string]func(*graphir.Spec, *builder){
		"unknown node type":    func(s *graphir.Spec, _ *builder) { s.Graphs[0].Nodes[3].Type = 3 },
		"freed allocation":     func(_ *graphir.Spec, b *builder) { b.memory.Base[1] = 0 },
		"parameter out of row": func(s *graphir.Spec, _ *builder) { s.Kernels[0].Params[2].Offset = 24 },
	} {
		spec := forkSpec()
		b := testBuilder(spec)
		change(spec, b)
		slots := make([]uint64, 6)
		err := b.lay(&template{graph: &slots[0], nodes: slots[1:5]}, &spec.Graphs[0], true, &slots[5])
		if err == nil || !strings.Contains(err.Error(), "node ") {
			t.Errorf("%s: got %v, want an error that names the node", name, err)
		}
		b.arena.release()
	}
}

// Laying out a program must not cost a Go allocation per node.
func TestLayAllocations(t *testing.T) {
	spec := forkSpec()
	g := graphir.Graph{Label: "big"}
	for range 1000 {
		g.Nodes = append(g.Nodes, spec.Graphs[0].Nodes[0])
	}
	g.Edges = chain(1000)
	b := testBuilder(spec)
	defer b.arena.release()
	slots := make([]uint64, 1002)
	tmpl := &template{graph: &slots[0], nodes: slots[1:1001]}
	lay := func() {
		b.program.reset()
		if err := b.lay(tmpl, &g, true, &slots[1001]); err != nil {
			t.Fatal(err)
		}
	}
	lay()
	if n := testing.AllocsPerRun(3, lay); n > 50 {
		t.Errorf("laying out 1000 nodes makes %v allocations", n)
	}
}

// A sheet that is used again holds the same as a new one, though only some of it is written again: kernels of other sizes and
// other templates come in between.
func TestSheetsUsedAgain(t *testing.T) {
	spec := manyShapes()
	base := make([]uint64, spec.Objects())
	for i := range base {
		base[i] = uint64(i+1) << 32
	}
	groups, err := groupByShape(spec)
	if err != nil {
		t.Fatal(err)
	}
	// programs returns every graph's calls. Sheets come back if again is set.
	programs := func(again bool) (out []string) {
		b := &builder{spec: spec, functions: []cuda.Function{0xa0, 0xb0, 0xc0}, context: 0xc0, memory: &memory.Map{Spec: spec, Base: base}}
		written, blank, stop := make(chan *sheet), make(chan *sheet, 1), make(chan struct{})
		var sheets []*sheet
		hand := func(s *sheet) {
			sheets = append(sheets, s)
			blank <- s
		}
		hand(&sheet{})
		go b.write(groups, written, blank, stop)
		for s := range written {
			if s.err != nil {
				t.Fatal(s.err)
			}
			out = append(out, dumpLaunches(spec, b, s)...)
			if again {
				blank <- s
			} else {
				hand(&sheet{})
			}
		}
		for _, s := range sheets {
			s.arena.release()
		}
		b.slots.release()
		return out
	}
	got, want := programs(true), programs(false)
	if len(got) != len(want) {
		t.Fatalf("%d calls, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("call %d: %s, want %s", i, got[i], want[i])
		}
	}
}

// manyShapes has graphs of two shapes, of 500 nodes or so, whose kernels differ in the size and number of their parameters.
func manyShapes() *graphir.Spec {
	spec := &graphir.Spec{
		Allocations: []graphir.Allocation{{Owner: graphir.OwnerEngine, Size: 1 << 20}},
		Kernels: []graphir.Kernel{
			{Name: "a", Params: []graphir.Param{{Offset: 0, Size: 8}, {Offset: 8, Size: 4}}},
			{Name: "b", Params: []graphir.Param{{Offset: 0, Size: 8}, {Offset: 12, Size: 4}}}, // as large, laid out otherwise
			{Name: "c", Params: []graphir.Param{{Offset: 0, Size: 8}, {Offset: 8, Size: 4}, {Offset: 16, Size: 8}, {Offset: 24, Size: 8}}},
		},
	}
	random := rand.New(rand.NewPCG(3, 3))
	for g := range 40 {
		graph := graphir.Graph{Label: fmt.Sprint(g)}
		for n := range 500 + g/10%2 {
			kernel := uint32(0)
			if n > 100 && random.IntN(300) == 0 {
				kernel = uint32(random.IntN(3))
			}
			params := make([]byte, 16+16*(kernel/2))
			params[8], params[12] = byte(random.Uint32()), byte(random.Uint32())
			graph.Nodes = append(graph.Nodes, graphir.Node{Type: graphir.NodeKernel, Params: &graphir.KernelNode{
				Kernel: kernel, Grid: [3]uint32{random.Uint32(), 1, 1}, Block: [3]uint32{1, random.Uint32(), 1}, SharedBytes: random.Uint32(), Params: params,
				Relocations: []graphir.Relocation{{Pointer: graphir.Pointer{Offset: uint64(random.IntN(1 << 20))}}},
			}})
		}
		spec.Graphs = append(spec.Graphs, graph)
	}
	return spec
}

// dumpLaunches shows the calls of a sheet as the driver would read them; nodes by their number.
func dumpLaunches(spec *graphir.Spec, b *builder, s *sheet) (out []string) {
	at := 0
	for _, g := range s.graphs {
		for ; at < g.calls; at++ {
			c, step := &s.program.calls[at], s.program.steps[at]
			text := fmt.Sprintf("graph %d: %s: %d arguments, %#x read", g.graph, step, c.Nargs, c.Deref)
			if last := c.Nargs - 1; step.node != noNode && step.call != cuda.EntryGraphKernelNodeSetAttribute {
				node := (c.Arg[0] - uint64(uintptr(unsafe.Pointer(&g.template.nodes[0])))) / 8
				p := pointee[cuda.KernelNodeParams](c.Arg[last])
				text += fmt.Sprintf(", node %d: func %#x grid %v block %v shared %d rest %d %d %d", node, uint64(p.Func), p.Grid, p.Block, p.SharedMemBytes, p.Extra, p.Kern, p.Ctx)
				kernel := slices.Index(b.functions, p.Func)
				for i, param := range spec.Kernels[kernel].Params {
					text += fmt.Sprintf(" %x", hostBytes(*pointee[uint64](uint64(p.Params) + 8*uint64(i)), int(param.Size)))
				}
			}
			out = append(out, text)
		}
	}
	return out
}

// pointee is the memory that an argument points to.
func pointee[T any](addr uint64) *T { return (*T)(hostPointer(addr)) }
