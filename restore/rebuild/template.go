package rebuild

import (
	"cmp"
	"encoding/binary"
	"slices"

	"medusa/graphir"
)

// groupByShape returns the spec's graphs, as indices, grouped by the properties that a template fixes: node types, node attributes,
// events, kinds of memory and edges with their data. Members of a group differ only in properties that setting a node's parameters changes. Groups stand in the
// order of their first members. Row groups are read only if values decide: of copies, the kind of memory that they touch.
func groupByShape(spec *graphir.Spec) ([][]int, error) {
	var groups [][]int
	byShape, byTemplate := make(map[string]int), make(map[int]int)
	cursor := spec.NewCursor()
	var key []byte
	for i := range spec.Graphs {
		template := -1
		if spec.Rows != nil {
			template = spec.Rows.Template(i)
		}
		group, known := byTemplate[template]
		if !known {
			g, err := cursor.Outline(i)
			values := err == nil && template >= 0 && slices.ContainsFunc(g.Nodes, decidedByValues)
			// mutant: graphs that share a template by their values
			if values {
				g, err = cursor.Graph(i)
			}
			if err != nil {
				return nil, err
			}
			key = appendShape(key[:0], spec, g, i)
			if group, known = byShape[string(key)]; !known {
				group = len(groups)
				byShape[string(key)] = group
				groups = append(groups, nil)
			}
			if template >= 0 && !values {
				byTemplate[template] = group
			}
		}
		groups[group] = append(groups[group], i)
	}
	// mutant: graphs share templates
	return groups, nil
}

// decidedByValues reports whether graphs with such a node share a template only if values agree that their templates in the IR do not fix.
// The base of an attribute has to be checked before it is looked up.
func decidedByValues(n graphir.Node) bool {
	return n.Memcpy() != nil || n.Type == graphir.NodeChild || n.Type == graphir.NodeCollective || n.Kernel() != nil && slices.ContainsFunc(n.Kernel().Attrs, func(a graphir.NodeAttr) bool { return a.Base != nil })
}

// appendShape encodes the properties that must be equal for two graphs to share a template. Which kernel a node launches may differ: setting the
// parameters of a node sets its function, too. Embedded graphs and collective calls have no setter: a graph with one shares with no other.
func appendShape(b []byte, spec *graphir.Spec, g *graphir.Graph, index int) []byte {
	number := binary.LittleEndian.AppendUint32
	b = number(b, uint32(len(g.Nodes)))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		b = number(append(b, byte(n.Type)), n.Target)
		switch {
		case n.Type == graphir.NodeChild, n.Type == graphir.NodeCollective:
			b = number(b, uint32(index))
		case n.Memcpy() != nil:
			b = append(b, byte(memoryType(spec, n.Memcpy().Src.Pointer)), byte(memoryType(spec, n.Memcpy().Dst.Pointer)))
		case n.Kernel() != nil:
			b = appendAttributes(b, spec, n.Kernel().Attrs)
		}
	}
	for _, e := range sortedEdges(g.Edges) {
		// mutant: edge data keeps templates apart
		b = append(number(number(b, e.From), e.To), e.FromPort, e.ToPort, e.Type)
	}
	return b
}

func appendAttributes(b []byte, spec *graphir.Spec, attrs []graphir.NodeAttr) []byte {
	b = binary.AppendUvarint(b, uint64(len(attrs)))
	for i := range attrs {
		a := &attrs[i]
		// mutant: attributes keep templates apart
		b = append(binary.AppendUvarint(b, uint64(a.ID)), a.Value[:]...)
		if a.Base == nil {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(b, 1+uint64(spec.Target(*a.Base)))
		b = binary.AppendUvarint(b, a.Base.Offset)
	}
	return b
}

// sortedEdges returns the edges by node; compiled graphs have them in that order.
func sortedEdges(edges []graphir.Edge) []graphir.Edge {
	before := func(a, b graphir.Edge) bool { return a.From < b.From || a.From == b.From && a.To < b.To }
	for i := 1; i < len(edges); i++ {
		if !before(edges[i-1], edges[i]) {
			return slices.SortedFunc(slices.Values(edges), func(a, b graphir.Edge) int {
				return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.FromPort, b.FromPort),
					cmp.Compare(a.ToPort, b.ToPort), cmp.Compare(a.Type, b.Type))
			})
		}
	}
	return edges
}

// edgeRuns sorts the edges into runs with the same edge data in which both ends advance by one node from edge to edge. The
// node handles of such a run lie side by side in the driver's answers, so one driver call adds the whole run; a linear
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
		// mutant: one call an edge's data
		if i < len(sorted) && data(sorted[i]) == data(sorted[i-1]) && sorted[i].From == sorted[i-1].From+1 && sorted[i].To == sorted[i-1].To+1 {
			continue
		}
		runs = append(runs, sorted[start:i])
		start = i
	}
	return runs
}
