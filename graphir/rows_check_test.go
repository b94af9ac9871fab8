package graphir_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/graphir/graphpb"
)

// pairs is third with a second graph of the template of graph 2, whose first node points to a tensor as well.
func pairs() *graphir.Spec {
	s := third()
	s.Allocations[0].Suballocated = true
	k := s.Graphs[2].Nodes[0].Kernel()
	k.Relocations = slices.Insert(k.Relocations, 1, graphir.Relocation{Offset: 16, Pointer: graphir.Pointer{Index: 1, Space: graphir.SpaceTensor}})
	s.Graphs = slices.Insert(s.Graphs, 3, s.Graphs[2])
	return s
}

// The validator sees the first graph of a template. Of the second one the values alone are checked, and no damage passes that the
// validator would find.
func TestDamagedValues(t *testing.T) {
	change := func(gap uint32, delta int64) *graphpb.Changes {
		return &graphpb.Changes{Gap: []uint32{gap}, Delta: []int64{delta}}
	}
	for _, test := range []struct {
		graph int
		want  string
		spoil func(w *wire, g *graphpb.Graph)
	}{
		{1, "nodes[0]: empty launch of grid [0 2 1]", func(_ *wire, g *graphpb.Graph) { g.Grid = change(0, -2) }},
		{1, "nodes[1]: empty launch of grid [1 1 1], block [32 0 1]", func(_ *wire, g *graphpb.Graph) { g.Block = change(4, -4) }},
		{1, "nodes[0].relocations[0]: the bytes that", func(_ *wire, g *graphpb.Graph) { g.Words = change(0, 1) }},
		{1, "nodes[1].relocations[0]: the bytes that", func(_ *wire, g *graphpb.Graph) { g.Words = change(6, 1) }},
		{1, "nodes[0].relocations[0]: alloc 1002 of", func(_ *wire, g *graphpb.Graph) { g.RelocationAlloc = change(0, 1000) }},
		{1, "nodes[1].relocations[0]: bytes 513+0 of", func(_ *wire, g *graphpb.Graph) { g.RelocationOffset = change(1, 1) }},
		{1, "node 0: alloc#1+4096 is not among the objects", func(_ *wire, g *graphpb.Graph) { g.RelocationAlloc = change(0, -1) }},
		{1, "nodes[2].dst: bytes", func(_ *wire, g *graphpb.Graph) { g.Memset = change(1, 1000) }},
		{1, "node 3: alloc#1+8 is not among the objects", func(_ *wire, g *graphpb.Graph) { g.Memcpy = change(0, 1) }},
		{3, "nodes[0].relocations[0]: global 1001 of 2", func(_ *wire, g *graphpb.Graph) { g.RelocationAlloc = change(0, 1000) }},
		{3, "nodes[0].relocations[0]: bytes 257+0 of global 1", func(_ *wire, g *graphpb.Graph) { g.RelocationOffset = change(0, 249) }},
		{3, "nodes[0].relocations[1]: tensor 0 lies in an allocation that is not suballocated", func(w *wire, g *graphpb.Graph) {
			w.Referred = []uint32{0, 1, 1, 1, 1, 1, 1, 1, 1} // all objects
			g.RelocationAlloc = change(1, -1)
		}},
		{3, "nodes[0].relocations[2]: the bytes that", func(_ *wire, g *graphpb.Graph) { g.Words = change(47, 1) }},
	} {
		w := open(t, pairs())
		test.spoil(w, w.Rows[0][test.graph])
		s, err := graphir.Decode(w.encode(t))
		if err != nil {
			t.Fatal(err)
		}
		c := s.NewCursor()
		for i := range test.graph {
			if _, err := c.Graph(i); err != nil {
				t.Fatal(err)
			}
		}
		if _, err = c.Graph(test.graph); !errors.Is(err, graphir.ErrCorrupt) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("want %q, got %v", test.want, err)
		}
	}
}
