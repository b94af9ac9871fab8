package compile

import (
	"medusa/graphir"
	"medusa/materialize/recording"
)

// pair finds for each node of the artifact's graph one that comes directly after the same nodes: an equal one, or the one that differs
// in the least padding; nil if there is none. Of equal nodes, one that lies at the same place comes first.
func (x *relocated) pair(g *graphir.Graph, label string, native *recording.Body, at padPlace, edges []graphir.Edge) []int {
	in, out := linksOf(len(g.Nodes), g.Edges)
	inNative, outNative := linksOf(len(native.NodeRecords), edges)
	walk, err := topological(in, out)
	if err != nil {
		return nil
	}
	before := x.found
	defer func() { x.found = before }()
	// equal returns the bytes of presumed padding in which two nodes differ, or -1 if they differ otherwise.
	equal := func(i, j int) int {
		x.found, at.node = before, i
		if x.node(&g.Nodes[i], label, native, j, at) != nil {
			return -1
		}
		return len(x.found) - len(before)
	}
	kinds, kindsNative := alike(len(g.Nodes), equal)
	places, err := placesOf(kinds, in, out)
	if err != nil {
		return nil
	}
	placesNative, err := placesOf(kindsNative, inNative, outNative)
	if err != nil {
		return nil
	}
	order, taken := make([]int, len(g.Nodes)), make([]bool, len(native.NodeRecords))
	for _, i := range walk {
		k, least, here := -1, -1, false
		for j := 0; j < len(native.NodeRecords) && !(here && least == 0); j++ {
			if taken[j] || len(in[i]) != len(inNative[j]) || len(out[i]) != len(outNative[j]) || !sameBefore(in[i], inNative[j], order) {
				continue
			}
			// mutant: equal nodes with other nodes behind them
			same := places[i] == placesNative[j]
			if here && !same {
				continue
			}
			// mutant: an equal node comes before one with other padding
			if pads := equal(i, j); pads >= 0 && (k < 0 || same && !here || pads < least) {
				k, least, here = j, pads, same
			}
		}
		if k < 0 {
			return nil
		}
		order[i], taken[k] = k, true
	}
	return order
}

// alike numbers the kinds of nodes of two graphs: nodes that are equal are of one kind.
func alike(n int, equal func(i, j int) int) (kinds, native []uint64) {
	type kind struct{ node, native int }
	var all []kind
	kinds, native = make([]uint64, n), make([]uint64, n) // 0: of no kind
	for i := range kinds {
		for k := range all {
			if kinds[i] == 0 && equal(i, all[k].native) >= 0 {
				kinds[i] = uint64(k + 1)
			}
		}
		for j := 0; j < n && kinds[i] == 0; j++ {
			if native[j] == 0 && equal(i, j) >= 0 {
				all = append(all, kind{i, j})
				kinds[i], native[j] = uint64(len(all)), uint64(len(all))
			}
		}
	}
	for j := range native {
		for k := 0; k < len(all) && native[j] == 0; k++ {
			if equal(all[k].node, j) >= 0 {
				native[j] = uint64(k + 1)
			}
		}
	}
	return kinds, native
}
