package graphir

import "fmt"

// A child graph node counts with all nodes of the graph that it embeds. If each child embeds the previous one twice, the number
// doubles with every child, so a few bytes could describe more nodes than any process can walk.

// MaxNesting is the deepest nesting of embedded graphs. Libraries use one or two levels.
const MaxNesting = 64

// maxEmbedded is the most nodes that the child graph nodes of all graphs may count together. A compiled Spec embeds each child
// once, and maxDecoded leaves room for fewer kernel nodes than this.
const maxEmbedded = 1 << 20

// embedded checks both bounds. The function graph reports children that do not come before their parents.
func (v *validator) embedded() {
	children := v.spec.Children
	if len(children) == 0 {
		return
	}
	depth, nodes := make([]int, len(children)), make([]int, len(children))
	for i := range children {
		depth[i], nodes[i] = 1, len(children[i].Nodes)
		for k := range children[i].Nodes {
			n := &children[i].Nodes[k]
			// mutant: collective call in an embedded graph
			if n.Type == NodeCollective {
				v.bad(fmt.Sprintf("children[%d].nodes[%d]", i, k), "a collective call in an embedded graph")
			}
			if n.Type == NodeChild && int64(n.Target) < int64(i) {
				depth[i] = max(depth[i], depth[n.Target]+1)
				nodes[i] = min(nodes[i]+nodes[n.Target], maxEmbedded+1)
			}
		}
		if depth[i] > MaxNesting {
			v.bad(fmt.Sprintf("children[%d]", i), "graphs are embedded in each other %d times (at most %d)", depth[i], MaxNesting)
		}
	}
	total := 0
	for i := range v.spec.Graphs {
		v.spec.eachChild(i, func(target uint32) {
			if int64(target) < int64(len(children)) {
				// mutant: embedded graphs are bounded
				total = min(total+nodes[target], maxEmbedded+1)
			}
		})
		if total > maxEmbedded {
			v.bad(fmt.Sprintf("graphs[%d]", i), "its nodes and those of the graphs before it embed more than %d nodes", maxEmbedded)
			return
		}
	}
}

// eachChild visits the targets of a graph's child graph nodes. It reads no row group.
func (s *Spec) eachChild(graph int, visit func(target uint32)) {
	if s.Rows == nil {
		for i := range s.Graphs[graph].Nodes {
			if n := &s.Graphs[graph].Nodes[i]; n.Type == NodeChild {
				visit(n.Target)
			}
		}
		return
	}
	nodes := s.Rows.plans[s.Rows.template[graph]].nodes
	for i := range nodes {
		if shape := nodes[i].shape; shape.node == NodeChild {
			visit(shape.target)
		}
	}
}
