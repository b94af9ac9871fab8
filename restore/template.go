package restore

import (
	"cmp"
	"encoding/binary"
	"slices"

	"medusa/graphir"
)

// groupByShape returns the spec's graphs, as indices, grouped by what a template fixes: node types, node attributes,
// events, kinds of memory and edges with their data. Members of a group differ only in what setting a node's parameters changes. Groups stand in the
// order of their first members. Of row groups those are read that hold the first graph of a template, and others where values
// decide: of copies, what kind of memory they touch.
func groupByShape(spec *graphir.Spec) ([][]int, error) {
	var groups [][]int
	byShape := make(map[string]int)
	cursor, known := spec.NewCursor(), make(map[int]string)
	for i := range spec.Graphs {
		template := -1
		if spec.Rows != nil {
			template = spec.Rows.Template(i)
		}
		key, ok := known[template]
		if !ok {
			g, err := cursor.Graph(i)
			if err != nil {
				return nil, err
			}
			if key = shape(spec, g, i); template >= 0 && !slices.ContainsFunc(g.Nodes, decidedByValues) {
				known[template] = key
			}
		}
		g, ok := byShape[key]
		if !ok {
			g = len(groups)
			byShape[key] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups, nil
}

// decidedByValues: whether graphs with such a node share a template depends on more than its type.
func decidedByValues(n graphir.Node) bool { return n.Memcpy != nil || n.Type == graphir.NodeChild }

// shape encodes what must be equal for two graphs to share a template. Which kernel a node launches may differ: setting the
// parameters of a node sets its function, too. Embedded graphs have no setter: a graph with one shares with no other.
func shape(spec *graphir.Spec, g *graphir.Graph, index int) string {
	b := make([]byte, 0, 3*len(g.Nodes)+7*len(g.Edges))
	b = binary.AppendUvarint(b, uint64(len(g.Nodes)))
	for _, n := range g.Nodes {
		b = append(b, byte(n.Type))
		b = binary.AppendUvarint(b, uint64(n.Target))
		switch {
		case n.Type == graphir.NodeChild:
			b = binary.AppendUvarint(b, uint64(index))
		case n.Memcpy != nil:
			b = append(b, byte(memoryType(spec, n.Memcpy.Src.Pointer)), byte(memoryType(spec, n.Memcpy.Dst.Pointer)))
		}
		if n.Kernel == nil {
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(n.Kernel.Attrs)))
		for _, a := range n.Kernel.Attrs {
			b = binary.AppendUvarint(b, uint64(a.ID))
			b = append(b, a.Value[:]...)
			if a.Base != nil {
				b = binary.AppendUvarint(b, 1+uint64(spec.Target(*a.Base)))
				b = binary.AppendUvarint(b, a.Base.Offset)
			}
		}
	}
	for _, e := range sortedEdges(g.Edges) {
		b = binary.AppendUvarint(b, uint64(e.From))
		b = binary.AppendUvarint(b, uint64(e.To))
		b = append(b, e.FromPort, e.ToPort, e.Type)
	}
	return string(b)
}

// sortedEdges returns the edges by node; compiled graphs have them in that order.
func sortedEdges(edges []graphir.Edge) []graphir.Edge {
	byNode := func(a, b graphir.Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.FromPort, b.FromPort),
			cmp.Compare(a.ToPort, b.ToPort), cmp.Compare(a.Type, b.Type))
	}
	if slices.IsSortedFunc(edges, byNode) {
		return edges
	}
	return slices.SortedFunc(slices.Values(edges), byNode)
}

// edgeRuns sorts the edges into runs with the same edge data in which both ends advance by one node from edge to edge. The
// node handles of such a run lie side by side where the driver stored them, so one driver call adds the whole run; a linear
// chain is one run. Edges with other data take another call: drivers up to 610 give all edges of a call the first one's.
func edgeRuns(edges []graphir.Edge) [][]graphir.Edge {
	sorted := slices.Clone(edges)
	delta := func(e graphir.Edge) int64 { return int64(e.To) - int64(e.From) }
	data := func(e graphir.Edge) [3]uint8 { return [3]uint8{e.FromPort, e.ToPort, e.Type} }
	slices.SortFunc(sorted, func(a, b graphir.Edge) int {
		return cmp.Or(cmp.Compare(a.FromPort, b.FromPort), cmp.Compare(a.ToPort, b.ToPort), cmp.Compare(a.Type, b.Type),
			cmp.Compare(delta(a), delta(b)), cmp.Compare(a.From, b.From))
	})
	var runs [][]graphir.Edge
	start := 0
	for i := 1; i <= len(sorted); i++ {
		if i < len(sorted) && data(sorted[i]) == data(sorted[i-1]) && sorted[i].From == sorted[i-1].From+1 && sorted[i].To == sorted[i-1].To+1 {
			continue
		}
		runs = append(runs, sorted[start:i])
		start = i
	}
	return runs
}
