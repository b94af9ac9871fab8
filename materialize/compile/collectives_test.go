package compile

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// calls is a run with two collective calls around a kernel. change makes this run differ.
func calls(change func(first, second *trace.Collective)) func(tp *tape, at place) {
	return func(tp *tape, at place) {
		tp.function(0, trace.ModuleModule, "k", 8, 8)
		tp.alloc(at(0), 4096)
		tp.alloc(at(1), 4096)
		tp.phase("capture")
		k := tp.kernel(0, at(0), 7)
		call := func(number uint32, send, recv uint64) *trace.Collective {
			return &trace.Collective{Graph: k.Graph, Node: k.Node + 100 + uint64(number), Number: number, Nodes: 2, Operation: 4, Dtype: 7, Reduce: 1, Root: 3, Count: 16,
				Send: send, SendBytes: 64, Recv: recv, RecvBytes: 128}
		}
		first, second := call(0, at(0)+64, at(1)+8), call(1, at(1), at(1))
		if change != nil {
			change(first, second)
		}
		tp.capture("g", 1, first, k, second)
		tp.phase("ready")
	}
}

// The artifact has each call's operation, sizes, order and memory, but not the nodes that the call added.
func TestCollectiveCalls(t *testing.T) {
	// The communicator decides how many nodes a call adds, and the number may differ.
	a, b := newTape(1), newTape(2)
	calls(nil)(a, placeA)
	calls(func(first, _ *trace.Collective) { first.Nodes = 5 })(b, placeB)
	spec, err := proven(a.recording(t), b.recording(t))
	if err != nil {
		t.Fatal(err)
	}
	call := graphir.Collective{Operation: 4, DType: 7, Reduce: 1, Root: 3, Count: 16, SendBytes: 64, RecvBytes: 128,
		Send: graphir.Pointer{Offset: 64}, Recv: graphir.Pointer{Index: 1, Offset: 8}}
	second := call
	second.Number, second.Send, second.Recv = 1, graphir.Pointer{Index: 1}, graphir.Pointer{Index: 1}
	g := &spec.Graphs[0]
	if len(g.Nodes) != 3 || g.Nodes[0].Type != graphir.NodeCollective || g.Nodes[2].Type != graphir.NodeCollective {
		t.Fatalf("nodes %v", g.Nodes)
	}
	if got := []graphir.Collective{g.Nodes[0].Collective().Call(), g.Nodes[2].Collective().Call()}; !slices.Equal(got, []graphir.Collective{call, second}) {
		t.Errorf("calls %v", got)
	}
	if want := []graphir.Edge{{From: 0, To: 1}, {From: 1, To: 2}}; !slices.Equal(g.Edges, want) {
		t.Errorf("edges %v, want %v", g.Edges, want)
	}
	if err := spec.Validate(); err != nil {
		t.Error(err)
	}
}

// A call is refused if the runs make it differently, or if an artifact cannot name its memory.
func TestCollectiveCallsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		want   string
		both   bool // otherwise record-b alone
		change func(first, second *trace.Collective)
	}{
		"operation":  {"node 0 (collective): it differs between the runs", false, func(first, _ *trace.Collective) { first.Operation++ }},
		"type":       {"node 0 (collective): it differs between the runs", false, func(first, _ *trace.Collective) { first.Dtype++ }},
		"reduction":  {"node 0 (collective): it differs between the runs", false, func(first, _ *trace.Collective) { first.Reduce++ }},
		"root":       {"node 0 (collective): it differs between the runs", false, func(first, _ *trace.Collective) { first.Root++ }},
		"count":      {"node 0 (collective): it differs between the runs", false, func(first, _ *trace.Collective) { first.Count++ }},
		"size":       {"node 0 (collective): it differs between the runs", false, func(first, _ *trace.Collective) { first.RecvBytes-- }},
		"order":      {"node 0 (collective): it differs between the runs", false, func(first, second *trace.Collective) { first.Number, second.Number = 1, 0 }},
		"place":      {"alloc#0+64 in record-a and to alloc#0+72 in record-b", false, func(first, _ *trace.Collective) { first.Send += 8 }},
		"no memory":  {"names no memory", true, func(first, _ *trace.Collective) { first.SendBytes = 0 }},
		"no address": {"leads to no live allocation", true, func(first, _ *trace.Collective) { first.Recv = 4096 }},
		"too large":  {"bytes 64+4096 of alloc 0", true, func(first, _ *trace.Collective) { first.SendBytes = 4096 }},
		"a gap":      {"collective call 1 of 2 is missing", true, func(_, second *trace.Collective) { second.Number = 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newTape(1), newTape(2)
			if tt.both {
				calls(tt.change)(a, placeA)
			} else {
				calls(nil)(a, placeA)
			}
			calls(tt.change)(b, placeB)
			spec, err := proven(a.recording(t), b.recording(t))
			if err == nil {
				t.Fatalf("compiled: %v", spec.Graphs[0].Nodes)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// Each part of a call in a third process must equal the artifact's call as resolved there.
func TestCollectiveCallsOfAThirdProcess(t *testing.T) {
	spec := mustCompile(t, calls(nil))
	for name, tt := range map[string]struct {
		want   string
		change func(first, second *trace.Collective)
	}{
		"the same":  {"", nil},
		"the nodes": {"", func(first, _ *trace.Collective) { first.Nodes = 9 }},
		"operation": {"node 0 (collective): its collective call", func(first, _ *trace.Collective) { first.Operation++ }},
		"count":     {"node 2 (collective): its collective call", func(_, second *trace.Collective) { second.Count++ }},
		"order":     {"node 0 (collective): its collective call", func(first, second *trace.Collective) { first.Number, second.Number = 1, 0 }},
		"source":    {"node 0 (collective): the source of its collective call", func(first, _ *trace.Collective) { first.Send += 8 }},
		"target":    {"node 2 (collective): the destination of its collective call", func(_, second *trace.Collective) { second.Recv += 8 }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTape(3)
			calls(tt.change)(c, placeN)
			_, err := CompareNodes(spec, c.recording(t), nil, false)
			var differ *StructureError
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.As(err, &differ) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
