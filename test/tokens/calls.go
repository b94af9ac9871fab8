package main

import (
	"cmp"
	"fmt"
	"slices"

	"medusa/artifacts"
	"medusa/graphir"
)

// collective has the mistakes in the collective calls of a graph, in their order. Each changes the nodes, and describes the change.
var collective = map[string]func(calls []*graphir.Node) string{
	"hole": func(calls []*graphir.Node) string {
		at := len(calls) / 2
		*calls[at] = graphir.Node{Type: graphir.NodeEmpty}
		for i, n := range calls[at+1:] {
			n.Params = withNumber(n.Collective(), uint32(at+i)) // the others have no gap
		}
		return fmt.Sprintf("call %d is left out", at)
	},
	"holes": func(calls []*graphir.Node) string {
		last := len(calls) - 1
		first := withNumber(calls[0].Collective(), uint32(last))
		calls[0].Params = withNumber(calls[last].Collective(), 0)
		calls[last].Params = first
		return fmt.Sprintf("calls 0 and %d are in each other's place", last)
	},
}

// withNumber is the call at another place in the order.
func withNumber(n *graphir.CollectiveNode, number uint32) *graphir.CollectiveNode {
	call := n.Call()
	call.Number = number
	return graphir.NewCollective(call)
}

// ofCalls makes a mistake in a graph of all ranks.
func ofCalls(a *artifacts.Artifact, label func(graphir.Graph) bool, mistake func(calls []*graphir.Node) string) (what string, err error) {
	for r := range a.Ranks() {
		spec := a.Rank(r).Spec
		graph := slices.IndexFunc(spec.Graphs, label)
		if graph < 0 {
			return "", fmt.Errorf("rank %d: no such graph", r)
		}
		spec.Graphs = slices.Clone(spec.Graphs) // ranks may share graphs
		g := &spec.Graphs[graph]
		g.Nodes = slices.Clone(g.Nodes)
		var calls []*graphir.Node
		for i := range g.Nodes {
			if g.Nodes[i].Collective() != nil {
				calls = append(calls, &g.Nodes[i])
			}
		}
		slices.SortFunc(calls, func(x, y *graphir.Node) int {
			return cmp.Compare(x.Collective().Call().Number, y.Collective().Call().Number)
		})
		if len(calls) < 2 {
			return "", fmt.Errorf("graph %s has %d collective calls: %w", g.Label, len(calls), errNothing)
		}
		what = fmt.Sprintf("graph %s of each rank: %s", g.Label, mistake(calls))
	}
	return what, nil
}
