package bench

import (
	"fmt"

	"medusa/kvprofile"
)

// Workload says how much of everything an engine's captured graphs hold.
type Workload struct {
	Name     string
	Batches  []int64 // of the graphs, in capture order: the largest first
	Nodes    int     // of all graphs together
	Pointers int     // in the parameters of all nodes together
	Shapes   int     // sets of graphs whose node types follow each other alike
	Layers   int
}

// pointersPerNode is that of the paper's ten models together: 538,507 pointers in 139,364 nodes.
const (
	paperNodes    = 139364
	paperPointers = 538507
)

// Paper returns the ten models of the paper's Table 1, 35 batch sizes each. The paper gives the pointers of all of them
// together; here every model has its share by nodes.
func Paper() []Workload {
	models := []struct {
		name          string
		nodes, layers int
	}{
		{"falcon-7b", 14406, 32}, {"llama2-7b", 12518, 32}, {"llama2-13b", 16150, 40}, {"qwen1.5-0.5b", 9118, 24},
		{"qwen1.5-1.8b", 9550, 24}, {"qwen1.5-4b", 16150, 40}, {"qwen1.5-7b", 12902, 32}, {"qwen1.5-14b", 16350, 40},
		{"yi-6b", 12902, 32}, {"yi-9b", 19318, 48},
	}
	var out []Workload
	nodes := 0
	for _, m := range models {
		before := nodes * paperPointers / paperNodes
		nodes += m.nodes
		out = append(out, Workload{Name: m.name, Batches: sizes(8, 256, 8), Nodes: m.nodes,
			Pointers: nodes*paperPointers/paperNodes - before, Shapes: 1, Layers: m.layers})
	}
	return out
}

// VLLM returns a model of 7B class at vLLM's 51 batch sizes up to 512.
func VLLM() Workload {
	return Workload{Name: "vllm-51", Batches: append(sizes(256, 512, 16), sizes(8, 248, 8)...), Nodes: 51 * 358, Pointers: 51 * 1383, Shapes: 1, Layers: 32}
}

// Foundry returns a set of graphs with 1,000 nodes each, as Foundry measures itself on. It reports 12 to 37 templates for
// 256 graphs; here there are 16 to 256.
func Foundry(graphs int) Workload {
	w := Workload{Name: fmt.Sprintf("foundry-%d", graphs), Nodes: 1000 * graphs, Pointers: 3864 * graphs, Shapes: graphs / 16, Layers: 90}
	for b := graphs; b >= 1; b-- {
		w.Batches = append(w.Batches, int64(b))
	}
	return w
}

// Large returns graphs of 1,000 nodes each that have the given number of nodes together, for costs that have to be linear in it.
func Large(nodes int) Workload {
	w := Workload{Name: "large", Nodes: nodes, Pointers: 4 * nodes, Shapes: 1, Layers: 90}
	for b := nodes / 1000; b >= 1; b-- {
		w.Batches = append(w.Batches, int64(b))
	}
	return w
}

// Graph lists the launches of one graph of a workload: the name of each node's kernel, "" for a memset. Its nodes form a chain.
type Graph []string

// Graphs lists the workload's graphs, in capture order. The list does not depend on how they are recorded, compiled or restored.
func (w Workload) Graphs() []Graph {
	graphs := make([]Graph, len(w.Batches))
	for i, batch := range w.Batches {
		nodes, memsets := share(w.Nodes, len(w.Batches), i), w.memsets(i)
		pointers := share(w.Pointers, len(w.Batches), i) - memsets
		graphs[i] = make(Graph, nodes)
		for k := range nodes - memsets {
			place := k % kernelsPerLayer
			graphs[i][memsets+k] = kernelName(place, share(pointers, nodes-memsets, k), w.class(batch))
		}
	}
	return graphs
}

// memsets is how many nodes of that type graph i begins with: the graphs of one shape have equally many.
func (w Workload) memsets(i int) int { return i * w.Shapes / len(w.Batches) }

// class is the range of batch sizes that shares its matrix products.
func (w Workload) class(batch int64) int { return int(batch-1) * gemmClasses / int(w.Batches[0]) }

// sizes counts down to lo, and on to 4, 2, 1 if lo is 8: the largest graph is captured first.
func sizes(lo, hi, step int64) []int64 {
	var out []int64
	for b := hi; b >= lo; b -= step {
		out = append(out, b)
	}
	if lo == 8 {
		out = append(out, 4, 2, 1)
	}
	return out
}

// share splits total into parts that differ by at most one, and returns part i.
func share(total, parts, i int) int { return (i+1)*total/parts - i*total/parts }

// Profile is a KV profile that an artifact of a workload may carry; no measurement depends on its numbers.
func Profile() kvprofile.Profile {
	return kvprofile.Profile{KVBytes: 64 << 30, TotalMemory: 80 << 30, FreeBefore: 70 << 30, FreeAfter: 69 << 30, PeakForward: 1 << 20, Utilization: 0.9, ProfileTokens: 1}
}
