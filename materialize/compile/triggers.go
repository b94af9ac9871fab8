package compile

import (
	"maps"
	"slices"

	"medusa/graphir"
)

// eachKernel visits the kernels that a graph launches, embedded graphs included.
func eachKernel(spec *graphir.Spec, g *graphir.Graph, visit func(kernel uint32)) {
	for i := range g.Nodes {
		switch n := &g.Nodes[i]; {
		case n.Kernel() != nil:
			visit(n.Kernel().Kernel)
		case n.Type == graphir.NodeChild:
			eachKernel(spec, &spec.Children[n.Target], visit)
		}
	}
}

// layerRun is a batch size whose first layer could be run, with the late modules that its graph launches kernels of.
type layerRun struct {
	batch   int64
	modules map[uint32]bool
	kernels map[uint32]bool
}

// chooseTriggers picks the batch sizes whose first layer, run eagerly, makes the driver load every module that a restored
// process would not load by itself (paper §5.2). It takes the size that adds most modules, the smaller one among equals,
// until all are covered, and then drops sizes that the later ones made superfluous.
func chooseTriggers(candidates []layerRun) []graphir.Trigger {
	slices.SortStableFunc(candidates, func(x, y layerRun) int { return int(x.batch - y.batch) })

	covered := map[uint32]int{}
	var chosen []layerRun
	for {
		best, gain := -1, 0
		for i, c := range candidates {
			n := 0
			for m := range c.modules {
				if covered[m] == 0 {
					n++
				}
			}
			// mutant: trigger of most hidden modules
			if n > gain {
				best, gain = i, n
			}
		}
		if best < 0 {
			break
		}
		for m := range candidates[best].modules {
			covered[m]++
		}
		chosen = append(chosen, candidates[best])
	}

	var out []graphir.Trigger
	for _, c := range chosen {
		needed := false
		for m := range c.modules {
			needed = needed || covered[m] == 1
		}
		if !needed {
			for m := range c.modules {
				covered[m]--
			}
			continue
		}
		out = append(out, graphir.Trigger{Batch: c.batch, Kernels: slices.Sorted(maps.Keys(c.kernels))})
	}
	slices.SortFunc(out, func(x, y graphir.Trigger) int { return int(x.Batch - y.Batch) })
	return out
}
