package rebuild

import (
	"reflect"
	"strconv"
	"testing"

	"medusa/graphir"
)

func chain(n int) []graphir.Edge {
	var edges []graphir.Edge
	for i := range n - 1 {
		edges = append(edges, graphir.Edge{From: uint32(i), To: uint32(i + 1)})
	}
	return edges
}

func kernelGraph(nodes int, edges []graphir.Edge) graphir.Graph {
	g := graphir.Graph{Edges: edges}
	for range nodes {
		g.Nodes = append(g.Nodes, graphir.Node{Type: graphir.NodeKernel, Params: &graphir.KernelNode{Params: []byte{1}}})
	}
	return g
}

func TestGroupByShape(t *testing.T) {
	plain := func() graphir.Graph { return kernelGraph(3, chain(3)) }
	change := func(f func(*graphir.Graph)) graphir.Graph {
		g := plain()
		f(&g)
		return g
	}
	spec := &graphir.Spec{Graphs: []graphir.Graph{
		0: plain(),
		1: change(func(g *graphir.Graph) { g.Nodes[1].Type, g.Nodes[1].Params = graphir.NodeEmpty, nil }),
		2: change(func(g *graphir.Graph) {
			g.Label, g.Batch, g.InstantiateFlags = "other", 2, 8
			k := g.Nodes[1].Kernel()
			k.Kernel, k.Grid, k.SharedBytes, k.Params = 7, [3]uint32{4, 4, 4}, 64, []byte{2, 3}
		}),
		3: change(func(g *graphir.Graph) { g.Nodes[1].Kernel().Attrs = []graphir.NodeAttr{{ID: 8}} }),
		4: change(func(g *graphir.Graph) { g.Nodes[1].Kernel().Attrs = []graphir.NodeAttr{{ID: 8, Value: [64]byte{1}}} }),
		5: change(func(g *graphir.Graph) { g.Edges = g.Edges[:1] }),
		6: change(func(g *graphir.Graph) { g.Edges[0].Type = 1 }),
		7: change(func(g *graphir.Graph) { g.Edges[0], g.Edges[1] = g.Edges[1], g.Edges[0] }),
		8: kernelGraph(4, chain(3)),
	}}
	want := [][]int{{0, 2, 7}, {1}, {3}, {4}, {5}, {6}, {8}}
	if got, err := groupByShape(spec); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
}

// Graphs of one template in the file may need templates of their own: the driver looks at page-locked memory by its host address.
func TestGroupByShapeOfRowGroups(t *testing.T) {
	spec := &graphir.Spec{Allocations: []graphir.Allocation{{Kind: graphir.AllocDevice, Size: 64, Live: true}, {Kind: graphir.AllocPinned, Size: 64, Live: true}}}
	w := graphir.NewWriter(nil)
	const graphs, nodes = 40, 2000
	var device, host []int
	for i := range graphs {
		g := graphir.Graph{Label: strconv.Itoa(i), Edges: chain(nodes)}
		for range nodes {
			end := graphir.MemcpyEnd{Pointer: graphir.Pointer{Index: uint32(i % 2)}, Pitch: 4, Height: 1}
			g.Nodes = append(g.Nodes, graphir.Node{Type: graphir.NodeMemcpy, Params: &graphir.MemcpyNode{Src: end, Dst: end, Width: 4, Height: 1, Depth: 1}})
		}
		if err := w.Add(&g); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			device = append(device, i)
		} else {
			host = append(host, i)
		}
	}
	if err := w.Finish(spec); err != nil || spec.Rows == nil {
		t.Fatalf("%v, row groups %v", err, spec.Rows != nil)
	}
	if got, err := groupByShape(spec); err != nil || !reflect.DeepEqual(got, [][]int{device, host}) {
		t.Errorf("groups %v, want %v: %v", got, [][]int{device, host}, err)
	}
}

func TestEdgeRuns(t *testing.T) {
	if runs := edgeRuns(chain(100)); len(runs) != 1 || len(runs[0]) != 99 {
		t.Errorf("a chain of 100 nodes makes %d runs, want one of 99 edges", len(runs))
	}
	// 0 -> 1 -> 2 -> 5, with a fork 1 -> 3 -> 4 -> 5.
	edges := []graphir.Edge{{From: 4, To: 5}, {From: 1, To: 3, Type: 1}, {From: 0, To: 1}, {From: 3, To: 4}, {From: 2, To: 5}, {From: 1, To: 2}}
	want := [][]graphir.Edge{
		{{From: 0, To: 1}, {From: 1, To: 2}},
		{{From: 3, To: 4}, {From: 4, To: 5}},
		{{From: 2, To: 5}},
		{{From: 1, To: 3, Type: 1}},
	}
	if got := edgeRuns(edges); !reflect.DeepEqual(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
	// Edges with other data in between: drivers give all edges of a call the first one's.
	mixed := chain(4)
	mixed[1].Type, mixed[1].FromPort = 1, 1
	want = [][]graphir.Edge{{{From: 0, To: 1}}, {{From: 2, To: 3}}, {{From: 1, To: 2, FromPort: 1, Type: 1}}}
	if got := edgeRuns(mixed); !reflect.DeepEqual(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
	if got := edgeRuns(nil); len(got) != 0 {
		t.Errorf("no edges make runs %v", got)
	}
}
