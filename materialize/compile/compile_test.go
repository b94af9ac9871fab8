package compile

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// place gives record-a and record-b their addresses: allocations move against each other, as with seeded gaps.
type place func(i int) uint64

func placeA(i int) uint64 { return 0x7f0000000000 + uint64(i)*0x10000 }
func placeB(i int) uint64 { return 0x7e0000000000 + uint64(i)*0x30000 }

// compilePair makes both runs with the same function and compiles them.
func compilePair(t *testing.T, run func(tp *tape, at place)) (*graphir.Spec, error) {
	t.Helper()
	a, b := newTape(1), newTape(2)
	run(a, placeA)
	run(b, placeB)
	return proven(a.recording(t), b.recording(t))
}

func mustCompile(t *testing.T, run func(tp *tape, at place)) *graphir.Spec {
	t.Helper()
	spec, err := compilePair(t, run)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func onlyKernel(spec *graphir.Spec) *graphir.KernelNode { return spec.Graphs[0].Nodes[0].Kernel() }

// Allocations are numbered, whatever their device: online all would be made on one.
func TestSeveralDevices(t *testing.T) {
	_, err := compilePair(t, func(tp *tape, at place) {
		tp.phase("warmup")
		tp.add(&trace.Device{Ordinal: 3})
		tp.phase("ready")
	})
	if err == nil || !strings.Contains(err.Error(), "on devices 0 and 3") {
		t.Error(err)
	}
}

func TestPointersBecomeIndirect(t *testing.T) {
	const constant = 0x3ff0000000000000
	spec := mustCompile(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "k", 8, 8, 24, 4)
		first, second := tp.alloc(at(0), 4096), tp.alloc(at(1), 4096)
		_, _ = first, second
		tp.phase("capture")
		tp.capture("g", 1, tp.kernel(0, at(0), constant, 5, at(1)+256, 0, 42))
		tp.phase("ready")
	})
	want := []graphir.Relocation{
		{Offset: 0, Pointer: graphir.Pointer{Index: 0, Offset: 0}},
		{Offset: 24, Pointer: graphir.Pointer{Index: 1, Offset: 256}}, // in the middle of an allocation, inside a by-value struct
	}
	k := onlyKernel(spec)
	if !slices.Equal(k.Relocations, want) {
		t.Errorf("relocations %v, want %v", k.Relocations, want)
	}
	words := []uint64{0, constant, 5, 0, 0, 42}
	for i, w := range words {
		if got := binary.LittleEndian.Uint64(k.Params[i*8:]); got != w {
			t.Errorf("stored word %d is %#x, want %#x", i, got, w)
		}
	}
}

// An engine captures some graphs before the phases that a restored start skips. It captures those in a restored start, too.
func TestEarlierGraphsAreTheEngines(t *testing.T) {
	spec := mustCompile(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "k", 8)
		tp.alloc(at(0), 4096)
		tp.capture("", 0, tp.kernel(0, at(0)))
		tp.phase("capture")
		tp.capture("decode", 1, tp.kernel(0, at(0)))
		tp.phase("ready")
	})
	if len(spec.Graphs) != 1 || spec.Graphs[0].Label != "decode" {
		t.Errorf("%d graphs, the first is %q", len(spec.Graphs), spec.Graphs[0].Label)
	}
}

// The paper's Figure 6: an address freed and handed out again belongs to the second allocation. In record-b the two differ.
func TestReusedAddressBelongsToTheLiveAllocation(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		spec := mustCompile(t, func(tp *tape, at place) {
			tp.function(0, trace.ModuleModule, "k", 8)
			old := tp.alloc(at(0), 4096)
			tp.free(old)
			again := at(0)
			if tp.seed == 2 && !reuse {
				again = at(5)
			}
			tp.alloc(again, 4096)
			tp.phase("capture")
			tp.capture("g", 1, tp.kernel(0, again+8))
			tp.phase("ready")
		})
		if got := onlyKernel(spec).Relocations[0].Pointer; got != (graphir.Pointer{Index: 1, Offset: 8}) {
			t.Errorf("reuse in both runs %v: pointer %v, want alloc 1+8", reuse, got)
		}
	}
}

// Memory freed and reallocated while a capture is open: the node before the free means the first allocation. That one is
// gone at ready, so restoring it would be wrong, and it is refused by name.
func TestFreeInsideACapture(t *testing.T) {
	_, err := compilePair(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "k", 8)
		id := tp.alloc(at(0), 4096)
		early := tp.kernel(0, at(0))
		tp.add(&trace.Moment{Graph: 7, Nodes: []uint64{early.Node}})
		tp.free(id)
		tp.alloc(at(0), 4096)
		tp.capture("g", 1, early, tp.kernel(0, at(0)))
		tp.phase("ready")
	})
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Node != 0 || !strings.Contains(refused.Reason, "alloc#0") {
		t.Fatalf("got %v, want a refusal of node 0 because of alloc#0", err)
	}
}

func TestUnprovenWords(t *testing.T) {
	tests := []struct {
		name  string
		word  func(tp *tape, at place) uint64
		retry bool
		want  string
	}{
		{"constant equal to a live address of one run", func(*tape, place) uint64 { return placeA(0) + 64 }, true, "yet inside a live allocation"},
		{"constant equal to the lowest address of all", func(*tape, place) uint64 { return min(placeA(0), placeB(0)) }, true, "yet inside a live allocation"},
		{"constant equal to the highest end of all", func(*tape, place) uint64 { return max(placeA(1), placeB(1)) + 4096 }, true, "yet inside a live allocation"},
		{"leads to different offsets", func(tp *tape, at place) uint64 { return at(0) + uint64(tp.seed) }, false, "alloc#0+1 in record-a and to alloc#0+2"},
		{"differs and leads nowhere", func(tp *tape, _ place) uint64 { return uint64(tp.seed) }, false, "leads to no live allocation"},
		{"leads to different allocations", func(tp *tape, at place) uint64 { return at(int(tp.seed) - 1) }, false, "alloc#0+0 in record-a and to alloc#1+0"},
		{"freed memory", func(_ *tape, at place) uint64 { return at(2) }, false, "leads to no live allocation"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := compilePair(t, func(tp *tape, at place) {
				tp.function(0, trace.ModuleModule, "k", 8)
				tp.alloc(at(0), 4096)
				tp.alloc(at(1), 4096)
				tp.free(tp.alloc(at(2), 4096))
				tp.phase("capture")
				tp.capture("g", 1, tp.kernel(0, tt.word(tp, at)))
				tp.phase("ready")
			})
			var word *WordError
			if !errors.As(err, &word) || word.Retry != tt.retry || !strings.Contains(word.Reason, tt.want) {
				t.Fatalf("got %v, want a WordError (retry %v) with %q", err, tt.retry, tt.want)
			}
			if !strings.Contains(word.Where, `graph "g" node 0 kernel k parameter 0`) {
				t.Errorf("where = %q", word.Where)
			}
		})
	}
}

// A struct may begin between two words: its pointers are aligned in the parameters, not from its begin.
func TestStructThatBeginsBetweenWords(t *testing.T) {
	spec, err := compilePair(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "k", 4)
		f := tp.recs[len(tp.recs)-1].(*trace.Function)
		f.Params = append(f.Params, trace.FunctionParam{Offset: 4, Size: 12})
		base := at(0) + uint64(tp.seed)<<21
		tp.alloc(base, 4096)
		tp.phase("capture")
		tp.capture("g", 1, tp.kernel(0, 7<<32|5, base+64))
		tp.phase("ready")
	})
	if err != nil {
		t.Fatal(err)
	}
	relocations := spec.Graphs[0].Nodes[0].Kernel().Relocations
	if want := (graphir.Relocation{Offset: 8, Pointer: graphir.Pointer{Offset: 64}}); len(relocations) != 1 || relocations[0] != want {
		t.Errorf("relocations %v, want %v", relocations, want)
	}
}

// If memory moved by a multiple of 4 GiB, a pointer in a struct cannot be told from four bytes beside half of an old address.
func TestHalfOfAnAddress(t *testing.T) {
	_, err := compilePair(t, func(tp *tape, _ place) {
		at := 0x7f0010000000 + uint64(tp.seed)<<36
		tp.function(0, trace.ModuleModule, "k", 16)
		tp.alloc(at, 4096)
		tp.phase("capture")
		tp.capture("g", 1, tp.kernel(0, at+64, 5))
		tp.phase("ready")
	})
	var word *WordError
	if !errors.As(err, &word) || !word.Retry || !strings.Contains(word.Reason, "its lower half is the same in both runs") {
		t.Errorf("got %v, want an unproven word", err)
	}
}

// An address that is one allocation's end and the next one's start in both runs is not decided by guessing.
func TestTouchingAllocationsAreAmbiguous(t *testing.T) {
	_, err := compilePair(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "k", 8)
		tp.alloc(at(0), 4096)
		tp.alloc(at(0)+4096, 4096)
		tp.phase("capture")
		tp.capture("g", 1, tp.kernel(0, at(0)+4096))
		tp.phase("ready")
	})
	const want = "graph \"g\" node 0 kernel k parameter 0"
	var word *WordError
	if !errors.As(err, &word) || !word.Retry || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "the end of one allocation and the start of the next in both runs") {
		t.Fatalf("got %v, want an unproven word of %s", err, want)
	}
}

// No recording moves the variables of a module against each other. Those of different modules are another matter.
func TestTouchingVariablesOfOneModule(t *testing.T) {
	compile := func(second uint32) (*graphir.Spec, error) {
		return compilePair(t, func(tp *tape, at place) {
			tp.function(0, trace.ModuleModule, "k", 8)
			tp.function(1, trace.ModuleModule, "other", 8)
			tp.add(&trace.Global{Module: 0, Name: "first", Addr: at(0), Size: 8}, &trace.Global{Module: second, Name: "second", Addr: at(0) + 8, Size: 4})
			tp.phase("capture")
			tp.capture("g", 1, tp.kernel(0, at(0)+8))
			tp.phase("ready")
		})
	}
	spec, err := compile(0)
	if err != nil {
		t.Fatal(err)
	}
	relocations := spec.Graphs[0].Nodes[0].Kernel().Relocations
	if want := (graphir.Pointer{Index: 1, Space: graphir.SpaceGlobal}); len(relocations) != 1 || relocations[0].Pointer != want || spec.Globals[1].Name != "second" {
		t.Errorf("relocations %v, want the first byte of the second variable", relocations)
	}
	var word *WordError
	if _, err := compile(1); !errors.As(err, &word) || !word.Retry {
		t.Errorf("variables of two modules: %v, want an unproven word", err)
	}
}

func TestSequencesMustRepeat(t *testing.T) {
	_, err := compilePair(t, func(tp *tape, at place) {
		tp.alloc(at(0), 4096)
		tp.alloc(at(1), 4096+uint64(tp.seed))
		tp.phase("ready")
	})
	var seq *SequenceError
	if !errors.As(err, &seq) || seq.Step != 1 {
		t.Fatalf("got %v, want a SequenceError at step 1", err)
	}
}

func TestOtherKernelIsNamed(t *testing.T) {
	_, err := compilePair(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, []string{"", "gemm_128", "gemm_64"}[tp.seed], 8)
		tp.capture("g", 1, tp.kernel(0, 1))
		tp.phase("ready")
	})
	if err == nil || !strings.Contains(err.Error(), "gemm_128") || !strings.Contains(err.Error(), "gemm_64") {
		t.Fatalf("got %v, want both kernels named", err)
	}
}

func TestContents(t *testing.T) {
	spec := mustCompile(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "k", 8)
		tp.alloc(at(0), 64)
		tp.phase("warmup")
		table, unused := tp.alloc(at(1), 32), tp.alloc(at(2), 8)
		tp.phase("capture")
		tp.capture("g", 1, tp.kernel(0, at(1)))
		tp.phase("ready")
		var data []byte
		data = binary.LittleEndian.AppendUint64(data, 0xdecafbad)
		data = binary.LittleEndian.AppendUint64(data, at(0)+16)
		data = binary.LittleEndian.AppendUint64(data, uint64(tp.seed)) // remains of earlier work
		data = binary.LittleEndian.AppendUint64(data, 1)
		tp.add(&trace.Content{Alloc: table, Data: data[:12]}, &trace.Content{Alloc: table, Offset: 12, Data: data[12:]},
			&trace.Content{Alloc: unused, Data: data[:8]})
	})
	if len(spec.Contents) != 1 {
		t.Fatalf("%d contents, want only the buffer that a graph reaches", len(spec.Contents))
	}
	c := spec.Contents[0]
	if !slices.Equal(c.Relocations, []graphir.Relocation{{Offset: 8, Pointer: graphir.Pointer{Index: 0, Offset: 16}}}) {
		t.Errorf("relocations %v", c.Relocations)
	}
	if !slices.Equal(c.Unstable, []graphir.Range{{Offset: 16, Size: 8}}) {
		t.Errorf("unstable %v", c.Unstable)
	}
	for i, w := range []uint64{0xdecafbad, 0, 0, 1} {
		if got := binary.LittleEndian.Uint64(c.Data[i*8:]); got != w {
			t.Errorf("word %d is %#x, want %#x", i, got, w)
		}
	}
	if spec.Allocations[0].Owner != graphir.OwnerEngine || spec.Allocations[1].Owner != graphir.OwnerGraph {
		t.Errorf("owners %v", spec.Allocations)
	}
}

// memoryDevice is CU_MEMORYTYPE_DEVICE.
const memoryDevice = 2

func TestForkAndJoinEdges(t *testing.T) {
	spec := mustCompile(t, func(tp *tape, at place) {
		tp.alloc(at(0), 4096)
		nodes := make([]uint64, 4)
		for i := range nodes {
			nodes[i] = uint64(tp.seed)<<32 + uint64(i)
		}
		tp.add(&trace.Graph{ID: 0, Label: "fork", Nodes: 4, Edges: 4})
		tp.add(&trace.Empty{Node: nodes[0]},
			&trace.Memset{Node: nodes[1], Dst: at(0), ElemSize: 4, Width: 16, Height: 1},
			&trace.Memcpy{Node: nodes[2], SrcType: memoryDevice, Src: at(0), DstType: memoryDevice, Dst: at(0) + 64, Width: 64, Height: 1, Depth: 1},
			&trace.Empty{Node: nodes[3]})
		for _, e := range [][2]int{{2, 3}, {0, 2}, {1, 3}, {0, 1}} {
			tp.add(&trace.Edge{From: nodes[e[0]], To: nodes[e[1]], FromPort: 1, Type: 1})
		}
		tp.add(&trace.Exec{})
		tp.phase("ready")
	})
	var got [][2]uint32
	for _, e := range spec.Graphs[0].Edges {
		got = append(got, [2]uint32{e.From, e.To})
		if e.FromPort != 1 || e.Type != 1 {
			t.Errorf("edge data lost: %v", e)
		}
	}
	if want := [][2]uint32{{0, 1}, {0, 2}, {1, 3}, {2, 3}}; !slices.Equal(got, want) {
		t.Errorf("edges %v, want %v", got, want)
	}
	if c := spec.Graphs[0].Nodes[2].Memcpy(); c.Dst.Pointer.Offset != 64 || c.Width != 64 {
		t.Errorf("memcpy %+v", c)
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name string
		node func(tp *tape, at place) trace.Record
		want string
	}{
		{"memory operations", func(tp *tape, _ place) trace.Record { return &trace.Opaque{Node: 1, Type: 12, Reason: "not described"} }, "(batch memory operation)"},
		{"a type that came later", func(tp *tape, _ place) trace.Record { return &trace.Opaque{Node: 1, Type: 77, Reason: "not described"} }, "(node type 77)"},
		{"conditional", func(tp *tape, _ place) trace.Record { return &trace.Opaque{Node: 1, Type: 13, Reason: "not described"} }, "(conditional)"},
		{"copy from host memory", func(tp *tape, at place) trace.Record {
			return &trace.Memcpy{Node: 1, SrcType: 1, Src: 4096, DstType: memoryDevice, Dst: at(0), Width: 8, Height: 1, Depth: 1}
		}, "src is pageable host memory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := compilePair(t, func(tp *tape, at place) {
				tp.alloc(at(0), 4096)
				tp.capture("g", 1, tt.node(tp, at))
				tp.phase("ready")
			})
			var refused *RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) || refused.Graph != "g" {
				t.Fatalf("got %v, want a refusal with %q", err, tt.want)
			}
		})
	}
}

// The addresses of memory operations are pointers, and their values stay as they are. Operations that could hang are refused,
// and so are unknown ones.
func TestMemoryOperations(t *testing.T) {
	compiled := func(ops func(at place) []trace.MemOpsOp, flags uint32) (*graphir.Spec, error) {
		return compilePair(t, func(tp *tape, at place) {
			tp.alloc(at(0), 4096)
			tp.alloc(at(1), 4096)
			tp.capture("g", 1, &trace.MemOps{Node: 1, Flags: flags, Ops: ops(at)})
			tp.phase("ready")
		})
	}
	write := func(addr, value uint64) trace.MemOpsOp { return trace.MemOpsOp{Operation: 2, Addr: addr, Value: value} }
	spec, err := compiled(func(at place) []trace.MemOpsOp {
		return []trace.MemOpsOp{write(at(1)+8, 7), {Operation: 1, Addr: at(1) + 8, Value: 7, Flags: 1}, {Operation: 5, Addr: at(0) + 4088, Value: 1 << 40}}
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := spec.Graphs[0].Nodes[0].MemOps().Ops()
	want := []graphir.MemOp{{Operation: 2, At: graphir.Pointer{Index: 1, Offset: 8}, Value: 7}, {Operation: 1, At: graphir.Pointer{Index: 1, Offset: 8}, Value: 7, Flags: 1},
		{Operation: 5, At: graphir.Pointer{Offset: 4088}, Value: 1 << 40}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for name, tt := range map[string]struct {
		want  string
		flags uint32
		ops   func(at place) []trace.MemOpsOp
	}{
		"barrier":            {"has the unknown type 6", 0, func(at place) []trace.MemOpsOp { return []trace.MemOpsOp{{Operation: 6}} }},
		"flags of the write": {"has the unknown flags 0x2", 0, func(at place) []trace.MemOpsOp { return []trace.MemOpsOp{{Operation: 2, Addr: at(0), Flags: 2}} }},
		"flags of the node":  {"it has the unknown flags 0x1", 1, func(at place) []trace.MemOpsOp { return []trace.MemOpsOp{write(at(0), 1)} }},
		"none":               {"0 memory operations", 0, func(at place) []trace.MemOpsOp { return nil }},
		"nobody writes":      {"waits for a value", 0, func(at place) []trace.MemOpsOp { return []trace.MemOpsOp{{Operation: 1, Addr: at(0), Flags: 1}} }},
		"another value": {"waits for a value", 0, func(at place) []trace.MemOpsOp {
			return []trace.MemOpsOp{write(at(0), 6), {Operation: 1, Addr: at(0), Value: 7}}
		}},
		"another place": {"waits for a value", 0, func(at place) []trace.MemOpsOp {
			return []trace.MemOpsOp{write(at(0), 7), write(at(1), 7), {Operation: 1, Addr: at(0), Value: 7}}
		}},
		"half of it": {"waits for a value", 0, func(at place) []trace.MemOpsOp {
			return []trace.MemOpsOp{write(at(0), 7), {Operation: 4, Addr: at(0), Value: 7}}
		}},
	} {
		_, err := compiled(tt.ops, tt.flags)
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) || refused.Type != "batch memory operation" {
			t.Errorf("%s: got %v, want a refusal with %q", name, err, tt.want)
		}
	}
	var word *WordError
	if _, err := compiled(func(at place) []trace.MemOpsOp { return []trace.MemOpsOp{write(4096, 1)} }, 0); !errors.As(err, &word) {
		t.Errorf("no address: got %v", err)
	}
	if _, err := compiled(func(at place) []trace.MemOpsOp { return []trace.MemOpsOp{write(at(0)+4094, 1)} }, 0); err == nil || !strings.Contains(err.Error(), "bytes 4094+4 of alloc 0") {
		t.Errorf("beyond its allocation: got %v", err)
	}
	if _, err := compiled(func(at place) []trace.MemOpsOp { return []trace.MemOpsOp{write(at(0), at(0)-at(1))} }, 0); err == nil || !strings.Contains(err.Error(), "operation 0 differs") {
		t.Errorf("another value in each run: got %v", err)
	}
}

func TestTriggersCoverLateModules(t *testing.T) {
	spec := mustCompile(t, func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "early", 8)
		tp.phase("warmup")
		tp.function(1, trace.ModuleModule, "lazy", 8)
		tp.function(2, trace.ModuleHidden, "hidden_small", 8)
		tp.function(3, trace.ModuleHidden, "hidden_large", 8)
		tp.capture("1", 1, tp.kernel(0, 1), tp.kernel(2, 1))
		tp.capture("8", 8, tp.kernel(0, 1), tp.kernel(1, 1), tp.kernel(2, 1))
		tp.capture("64", 64, tp.kernel(0, 1), tp.kernel(3, 1))
		tp.phase("ready")
	})
	var got []int64
	for _, tr := range spec.Triggers {
		got = append(got, tr.Batch)
		for _, k := range tr.Kernels {
			if spec.Kernels[k].Name == "early" {
				t.Error("a module that is loaded anyway needs no trigger")
			}
		}
	}
	if !slices.Equal(got, []int64{8, 64}) {
		t.Errorf("trigger batches %v, want 8 and 64", got)
	}
}

func TestDeadEngineLeavesAnIncompleteTrace(t *testing.T) {
	tp := newTape(1)
	tp.alloc(placeA(0), 4096)
	_, err := recording.Read(tp.file(t, false))
	if !errors.Is(err, trace.ErrIncomplete) {
		t.Fatalf("got %v, want ErrIncomplete", err)
	}
}
