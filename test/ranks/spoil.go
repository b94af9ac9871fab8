package main

import (
	"errors"
	"slices"

	"medusa/artifacts"
	"medusa/graphir"
)

// These functions make artifacts that no engine leaves. All ranks have the same mistake, so no rank waits for another in vain, and the
// communicator reports no error.

// firstGraph changes a copy of the first graph's nodes on each rank.
func firstGraph(change func(holes []*graphir.Node)) func(a *artifacts.Artifact) error {
	return func(a *artifacts.Artifact) error {
		for r := range a.Ranks() {
			spec := a.Rank(r).Spec
			spec.Graphs = slices.Clone(spec.Graphs)
			g := &spec.Graphs[0]
			g.Nodes = slices.Clone(g.Nodes)
			var holes []*graphir.Node
			for i := range g.Nodes {
				if g.Nodes[i].Type == graphir.NodeCollective {
					holes = append(holes, &g.Nodes[i])
				}
			}
			if len(holes) != 2 || holes[0].Collective().Call().Number != 0 {
				return errors.New("the first graph has no two collective calls")
			}
			change(holes)
		}
		return nil
	}
}

// withNumber is the call at another place in the order.
func withNumber(n *graphir.CollectiveNode, number uint32) *graphir.CollectiveNode {
	call := n.Call()
	call.Number = number
	return graphir.NewCollective(call)
}

// leaveOut makes the first call of a graph an empty node.
var leaveOut = firstGraph(func(holes []*graphir.Node) {
	*holes[0] = graphir.Node{Type: graphir.NodeEmpty}
	holes[1].Params = withNumber(holes[1].Collective(), 0)
})

// exchangeHoles puts the calls of a graph in each other's place.
var exchangeHoles = firstGraph(func(holes []*graphir.Node) {
	first, second := withNumber(holes[0].Collective(), 1), withNumber(holes[1].Collective(), 0)
	holes[0].Params, holes[1].Params = second, first
})

// exchangeParts gives ranks 0 and 1 each other's part, with the identity that it has.
func exchangeParts(a *artifacts.Artifact) error {
	other := *a.Peers[0]
	own := *a
	own.Peers, own.Directories = nil, nil
	other.Peers, other.Directories = slices.Clone(a.Peers), a.Directories
	other.Peers[0] = &own
	*a = other
	return nil
}

// exchangeContents does the same, and gives each part the identity of its new place, as if materialize had taken one rank's trace for another's.
func exchangeContents(a *artifacts.Artifact) error {
	first, second := a.Identity, a.Peers[0].Identity
	// With weights that are not those of the verification, no check would compare.
	weights, others := a.Verification.Weights, a.Peers[0].Verification.Weights
	if err := exchangeParts(a); err != nil {
		return err
	}
	a.Identity, a.Peers[0].Identity = first, second
	a.Verification.Weights, a.Peers[0].Verification.Weights = weights, others
	return nil
}
