package interpose

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"

	"medusa/interpose/trace"
)

// shapeOf lists the nodes of the only graph, by kind and in alphabetical order, and its edges.
func shapeOf(t *testing.T, recs []trace.Record, memory map[string]uint64) (nodes, edges []string) {
	t.Helper()
	if n := len(of[*trace.Graph](recs)); n != 1 {
		t.Fatalf("%d graphs", n)
	}
	function, names := map[uint32]string{}, map[uint64]string{}
	for _, f := range of[*trace.Function](recs) {
		function[f.ID] = f.Name
	}
	for _, k := range of[*trace.Kernel](recs) {
		names[k.Node] = function[k.Function] + " of other memory"
		for name, addr := range memory {
			if binary.LittleEndian.Uint64(k.Params) == addr {
				names[k.Node] = function[k.Function] + " " + name
			}
		}
	}
	for _, c := range of[*trace.Collective](recs) {
		names[c.Node] = fmt.Sprintf("call %d", c.Number)
	}
	for _, m := range of[*trace.Memset](recs) {
		names[m.Node] = "memset"
	}
	for _, e := range of[*trace.Edge](recs) {
		edges = append(edges, names[e.From]+" > "+names[e.To])
	}
	slices.Sort(edges)
	return slices.Sorted(maps.Values(names)), edges
}

// All nodes that a call adds are one node of the recording, with the call's edges to the nodes around it. The driver may list them in any order.
func TestCallsAreHoles(t *testing.T) {
	for _, order := range []string{"created", "reversed", "shuffled"} {
		t.Run(order, func(t *testing.T) {
			recs, r := record(t, Config{ExtraEnv: []string{"SIMGPU_GRAPH_ORDER=" + order}}, 0, simulated(t), build(t, "build/test/holes"))
			calls := of[*trace.Collective](recs)
			slices.SortFunc(calls, func(a, b *trace.Collective) int { return int(a.Number) - int(b.Number) })
			if len(calls) != 3 {
				t.Fatalf("%d calls", len(calls))
			}
			first := *calls[0]
			first.Head, first.Node = trace.Head{}, 0
			want := trace.Collective{Nodes: 2, Operation: 1, Dtype: 2, Reduce: 3, Root: 4, Count: 64, Send: 0x100, SendBytes: 256, Recv: 0x200, RecvBytes: 512}
			if first != want || calls[1].Operation != 5 || calls[1].Nodes != 2 || calls[2].Operation != 6 || calls[2].Nodes != 4 {
				t.Errorf("calls %+v, %+v, %+v", first, calls[1], calls[2])
			}
			nodes, edges := shapeOf(t, recs, printed(t, r))
			if want := []string{"add b", "add_one a", "add_one b", "call 0", "call 1", "call 2"}; !slices.Equal(nodes, want) {
				t.Errorf("nodes %q, want %q", nodes, want)
			}
			if want := []string{"add_one a > call 0", "add_one b > call 2", "call 0 > add_one b", "call 0 > call 1", "call 1 > call 2", "call 2 > add b"}; !slices.Equal(edges, want) {
				t.Errorf("edges %q, want %q", edges, want)
			}
			// Memory of the communicator is counted apart.
			var story []string
			for _, v := range of[*trace.Alloc](recs) {
				story = append(story, fmt.Sprintf("%d/%d", v.ID, v.Trigger))
			}
			if want := []string{"0/0", "0/1", "1/0", "2/0", "1/1"}; !slices.Equal(story, want) {
				t.Errorf("allocations %q, want %q", story, want)
			}
		})
	}
}

// A mistake of the marks is a fault of the recording, and a call that cannot be made anew is refused by name.
func TestMistakesOfCalls(t *testing.T) {
	for mistake, want := range map[string]string{
		"no end":         "medusa_mark_collective: the call before it has no end",
		"nothing":        "medusa_mark_collective: the call added no node to the capture",
		"another stream": "medusa_mark_collective_end: the capture of the call's begin is not the stream's any more",
	} {
		recs, _ := recordWithFaults(t, Config{}, 0, simulated(t), build(t, "build/test/holes"), mistake)
		faults := of[*trace.Fault](recs)
		if len(faults) != 1 || faults[0].Call+": "+faults[0].Reason != want {
			t.Errorf("%s: faults %+v, want %q", mistake, faults, want)
		}
	}
	recs, _ := record(t, Config{}, 0, simulated(t), build(t, "build/test/holes"), "data")
	for _, o := range of[*trace.Opaque](recs) {
		if o.Reason != "an edge with data leads into it or out of it" {
			t.Errorf("refused because %q", o.Reason)
		}
	}
	if n := len(of[*trace.Opaque](recs)); n != 3 || len(of[*trace.Collective](recs)) != 0 {
		t.Errorf("%d of 3 calls refused, %d recorded", n, len(of[*trace.Collective](recs)))
	}
}
