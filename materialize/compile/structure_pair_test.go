package compile

import (
	"testing"

	"medusa/interpose/trace"
)

// Two equal nodes are paired by the nodes that come after them, in any order of a third process.
func TestEqualNodesInAnotherOrder(t *testing.T) {
	record := func(tp *tape, at place, first int) {
		tp.function(0, trace.ModuleModule, "k", 8, 8)
		tp.alloc(at(0), 4096)
		tp.phase("capture")
		equal := []*trace.Kernel{tp.kernel(0, at(0), 7), tp.kernel(0, at(0), 7)}
		behind := []*trace.Kernel{tp.kernel(0, at(0), 1), tp.kernel(0, at(0), 2)}
		g := &trace.Graph{ID: tp.graph, Handle: 7, Label: "g", Batch: 1, Nodes: 4, Edges: 2}
		tp.graph++
		tp.add(g, equal[first], equal[1-first], behind[0], behind[1])
		for i := range equal {
			tp.add(&trace.Edge{Graph: g.ID, From: equal[i].Node, To: behind[i].Node})
		}
		tp.add(&trace.Exec{Graph: g.ID, Handle: 9})
		tp.phase("ready")
	}
	spec := mustCompile(t, func(tp *tape, at place) { record(tp, at, 0) })
	for first := range 2 {
		c := newTape(3)
		record(c, placeN, first)
		if pads, err := CompareNodes(spec, c.recording(t), nil, false); err != nil || len(pads) != 0 {
			t.Errorf("equal node %d first: presumed padding %v, error %v", first, pads, err)
		}
	}
}
