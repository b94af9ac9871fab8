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

// Memory that no other process can have alike is refused by name, if a graph refers to it.
func TestRefusedMemory(t *testing.T) {
	for _, tt := range []struct {
		kind    trace.AllocKind
		capture bool
		want    string
	}{
		{trace.AllocManaged, false, "managed memory"},
		{trace.AllocIPC, false, "another process's memory"},
		{trace.AllocRegistered, true, "registered in the capture phase"},
		{trace.AllocRegistered, false, ""},
		{trace.AllocVMM, true, ""},
	} {
		_, err := compilePair(t, func(tp *tape, at place) {
			if !tt.capture {
				tp.add(&trace.Alloc{ID: 0, Kind: tt.kind, Addr: at(0), Size: 64})
			}
			tp.phase("warmup")
			if tt.capture {
				tp.add(&trace.Alloc{ID: 0, Kind: tt.kind, Addr: at(0), Size: 64})
			}
			tp.capture("g", 1, &trace.Memset{Node: 1, Dst: at(0), ElemSize: 4, Width: 16, Height: 1})
			tp.phase("ready")
		})
		var refused *RefusedError
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("kind %d: %v", tt.kind, err)
		case tt.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("kind %d: got %v, want a refusal with %q", tt.kind, err, tt.want)
		}
	}
}

// Memory of a multicast object is memory of several GPUs: a graph that refers to it, a table that leads to it, and a tensor there are refused with the call
// that showed it. Such memory that only the engine uses is no obstacle.
func TestMulticastMemory(t *testing.T) {
	// fill returns records that follow the mark of ready.
	compile := func(fill func(tp *tape, at place) []trace.Record) error {
		_, err := compilePair(t, func(tp *tape, at place) {
			tp.function(0, trace.ModuleModule, "k", 8)
			for i := range 2 {
				tp.alloc(at(i), 4096)
				tp.recs[len(tp.recs)-1].(*trace.Alloc).Kind = trace.AllocVMM
			}
			tp.add(&trace.Multicast{Alloc: 1, Reason: "cuMulticastBindMem: a reason"})
			tp.phase("warmup")
			late := fill(tp, at)
			tp.phase("ready")
			tp.add(late...)
		})
		return err
	}
	capture := func(tp *tape, to uint64) { tp.capture("g", 1, tp.kernel(0, to)) }
	if err := compile(func(tp *tape, at place) []trace.Record { capture(tp, at(0)); return nil }); err != nil {
		t.Errorf("other memory: %v", err)
	}
	for name, fill := range map[string]func(*tape, place) []trace.Record{
		`graph "g": node 0 (k): it refers to memory of a multicast object (alloc#1, cuMulticastBindMem: a reason)`: func(tp *tape, at place) []trace.Record {
			capture(tp, at(1))
			return nil
		},
		`tensor "input": it lies in memory of a multicast object (alloc#1, cuMulticastBindMem: a reason)`: func(tp *tape, at place) []trace.Record {
			capture(tp, at(0))
			return []trace.Record{&trace.Tensor{Name: "input", Addr: at(1), Size: 64, Shape: []int64{64}}}
		},
		`alloc#2+0, which it reaches, refers to memory of a multicast object (alloc#1)`: func(tp *tape, at place) []trace.Record {
			table := tp.alloc(at(2), 8)
			capture(tp, at(2))
			return []trace.Record{&trace.Content{Alloc: table, Data: binary.LittleEndian.AppendUint64(nil, at(1)+16)}}
		},
	} {
		if err := compile(fill); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}

// A tensor map stands for its arguments: its other bytes, and the address's place among them, are the driver's affair.
func TestTensorMaps(t *testing.T) {
	encoded := func(address uint64, other byte) []byte {
		out := make([]byte, graphir.TensorMapBytes)
		out[0], out[127] = other, byte(address>>16) // the address is not in it as it is
		return out
	}
	words := func(b []byte) (out []uint64) {
		for ; len(b) > 0; b = b[8:] {
			out = append(out, binary.LittleEndian.Uint64(b))
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		change func(tp *tape, m *trace.TensorMap)
		moved  bool
		want   string
	}{
		{name: "tiled"},
		{name: "moved", moved: true},
		{"other form", func(_ *tape, m *trace.TensorMap) { m.Tiled = 0 }, false, "cuTensorMapEncodeTiled did not make"},
		{"other extents", func(tp *tape, m *trace.TensorMap) { m.Box = []uint32{uint32(tp.seed)} }, false, "other extents"},
		{"in one run", func(tp *tape, m *trace.TensorMap) { m.Map[1] = tp.seed - 1 }, false, "in one run only"},
		{"left in padding, in one run", func(tp *tape, m *trace.TensorMap) { m.Map[1] = 2 * tp.seed }, false, "it differs and leads to no live allocation"},
		{"nowhere", func(_ *tape, m *trace.TensorMap) { m.Addr = 4096 }, false, "in a tensor map leads to no live allocation"},
	} {
		spec, err := compilePair(t, func(tp *tape, at place) {
			tp.function(0, trace.ModuleModule, "k", 8, 128, 8)
			tp.alloc(at(0), 4096)
			m := &trace.TensorMap{Map: encoded(at(0), 7), Addr: at(0) + 64, Tiled: 1, Type: 2, Swizzle: 1, Dim: []uint64{64}, Box: []uint32{16}, Steps: []uint32{1}}
			if tt.change != nil {
				tt.change(tp, m)
			}
			tp.add(m)
			in := encoded(at(0), 7)
			if strings.HasPrefix(tt.name, "left") {
				in[1] = 1 + tp.seed // the map, in the first run
			}
			if tt.moved {
				in = encoded(at(0), 9)
				tp.add(&trace.TensorMoved{Before: m.Map, After: in, Addr: at(0) + 128})
			}
			tp.capture("g", 1, tp.kernel(0, append([]uint64{5}, append(words(in), at(0))...)...))
			tp.phase("ready")
		})
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		offset := uint64(64)
		if tt.moved {
			offset = 128
		}
		want := []graphir.Relocation{{Offset: 8, Pointer: graphir.Pointer{Offset: offset}, TensorMap: 1}, {Offset: 136}}
		if got := onlyKernel(spec).Relocations; !slices.Equal(got, want) {
			t.Errorf("%s: relocations %v, want %v", tt.name, got, want)
		}
		if m := spec.TensorMaps; len(m) != 1 || m[0].Swizzle != 1 || !slices.Equal(m[0].BoxDim, []uint32{16}) {
			t.Errorf("%s: tensor maps %+v", tt.name, m)
		}
	}
}

// An event keeps its meaning only if a restored process creates the same one.
func TestEventsOfTheEngine(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(tp *tape, e *trace.Event)
		after  []trace.Record // before ready
		late   bool
		want   string
	}{
		{name: "kept"},
		{name: "of the capture phase", late: true, want: "created in the capture phase"},
		{name: "destroyed", after: []trace.Record{&trace.EventGone{ID: 1}}, want: "destroyed before the engine was ready"},
		{name: "another kind", change: func(tp *tape, e *trace.Event) { e.Flags = uint32(tp.seed) }, want: "has to repeat"},
		{name: "elsewhere", change: func(tp *tape, e *trace.Event) { e.Steps = uint32(tp.seed) }, want: "has to repeat"},
		{name: "of another thread", change: func(_ *tape, e *trace.Event) { e.Thread = 3 }},
		{name: "one of two threads'", change: func(tp *tape, e *trace.Event) {
			tp.add(&trace.Event{ID: 1, Handle: 3, Flags: 2, Steps: 0})
			e.ID, e.Thread = 2, 3
		}, want: "its event is thread 0's, and thread 3 creates one with the same flags 0x2"},
	} {
		spec, err := compilePair(t, func(tp *tape, at place) {
			tp.alloc(at(0), 64)
			tp.add(&trace.Event{ID: 0, Handle: 1})
			e := &trace.Event{ID: 1, Handle: 2, Flags: 2, Steps: 1}
			if tt.change != nil {
				tt.change(tp, e)
			}
			if !tt.late {
				tp.add(e)
			}
			tp.phase("warmup")
			if tt.late {
				tp.add(e)
			}
			tp.capture("g", 1, &trace.EventNode{Node: 1, Event: 1}, &trace.EventNode{Node: 2, Event: 1, Record: 1})
			tp.add(tt.after...)
			tp.phase("ready")
		})
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		nodes := spec.Graphs[0].Nodes
		if nodes[0].Type != graphir.NodeEventWait || nodes[1].Type != graphir.NodeEventRecord || nodes[0].Target != 1 || nodes[1].Target != 1 {
			t.Errorf("nodes %+v", nodes)
		}
		if want := []graphir.Event{{}, {Flags: 2, Step: 1}}; !slices.Equal(spec.Events, want) {
			t.Errorf("events %+v, want %+v", spec.Events, want)
		}
	}
}

// Presumed padding of embedded graphs is poisoned and settled in place, at any depth.
func TestPaddingOfEmbeddedGraphs(t *testing.T) {
	var runs [2]*recording.Recording
	for i, at := range []place{placeA, placeB} {
		tp := newTape(byte(i + 1))
		tp.function(0, trace.ModuleModule, "k", 24)
		first := at(0) + uint64(i)*0x800 // both halves of its address differ
		tp.alloc(first, 64)
		tp.add(&trace.Graph{ID: 8, Nodes: 1})
		tp.add(&trace.Memset{Graph: 8, Node: 9, Dst: first, ElemSize: 4, Width: 4, Height: 1})
		tp.add(&trace.Graph{ID: 7, Nodes: 2})
		tp.add(&trace.Child{Graph: 7, Node: 5, Child: 8})
		k := tp.kernel(0, first, 7|uint64(tp.seed)<<40, 9)
		k.Graph, k.Node = 7, 6
		tp.add(k)
		tp.capture("g", 1, &trace.Child{Node: 5, Child: 7})
		tp.phase("ready")
		runs[i] = tp.recording(t)
	}
	spec, pads, err := Compile(runs[0], runs[1], nil)
	if err != nil || len(pads) != 1 {
		t.Fatalf("padding %v, %v", pads, err)
	}
	params := spec.Children[1].Nodes[1].Kernel().Params
	for _, tt := range []struct {
		change func() error
		zero   bool
	}{{func() error { return nil }, true}, {func() error { return pads.Poison(nil) }, false}, {func() error { return pads.Settle(nil) }, true}} {
		if err := tt.change(); err != nil || (params[13] == 0) != tt.zero || params[8] != 7 || params[16] != 9 {
			t.Errorf("parameters % x, padding is to be zero: %v, %v", params, tt.zero, err)
		}
	}
}

// The graph that a node embeds is compiled with the graph that embeds it, and its refusals name the way to the node.
func TestEmbeddedGraphs(t *testing.T) {
	compile := func(inner func(tp *tape, at place) trace.Record) (*graphir.Spec, error) {
		return compilePair(t, func(tp *tape, at place) {
			tp.alloc(at(0), 64)
			tp.add(&trace.Graph{ID: 7, Nodes: 1})
			tp.add(inner(tp, at))
			tp.capture("g", 1, &trace.Child{Node: 5, Child: 7})
			tp.phase("ready")
		})
	}
	spec, err := compile(func(_ *tape, at place) trace.Record {
		return &trace.Memset{Graph: 7, Node: 9, Dst: at(0) + 8, ElemSize: 4, Width: 4, Height: 1}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Graphs) != 1 || len(spec.Children) != 1 || spec.Graphs[0].Nodes[0].Type != graphir.NodeChild {
		t.Fatalf("graphs %+v, children %+v", spec.Graphs, spec.Children)
	}
	if dst := spec.Children[0].Nodes[0].Memset().Dst; dst != (graphir.Pointer{Offset: 8}) {
		t.Errorf("destination %v", dst)
	}
	_, err = compile(func(*tape, place) trace.Record { return &trace.Opaque{Graph: 7, Node: 9, Type: 13, Reason: "no"} })
	if want := `"g, graph embedded by node 0": node 0 (conditional)`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
