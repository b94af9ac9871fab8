package graphir

import ()

// laterTables writes the tables of version 2.
func (t *textWriter) laterTables() {
	for i, v := range t.spec.Vacant {
		t.printf("vacant %d: alloc#%d+%d size=%d taken=%v\n", i, v.Alloc, v.Offset, v.Size, v.Taken)
	}
	for i, g := range t.spec.Globals {
		t.printf("global %d: %q module=%d size=%d\n", i, g.Name, g.Module, g.Size)
	}
	for i, h := range t.spec.HostBuffers {
		t.printf("host %d: size=%d\n", i, h.Size)
	}
	for i, e := range t.spec.Events {
		t.printf("event %d: flags=%d step=%d\n", i, e.Flags, e.Step)
	}
	for i := range t.spec.TensorMaps {
		m := &t.spec.TensorMaps[i]
		t.printf("tensormap %d: type=%d dim=%d strides=%d box=%d steps=%d interleave=%d swizzle=%d l2=%d fill=%d\n", i, m.DataType,
			m.GlobalDim, m.GlobalStrides, m.BoxDim, m.ElementStrides, m.Interleave, m.Swizzle, m.L2Promotion, m.OOBFill)
	}
}

func (t *textWriter) graph(what string, index int, g *Graph) {
	t.printf(what+" %d: %q batch=%d flags=%#x nodes=%d edges=%d\n", index, g.Label, g.Batch, g.InstantiateFlags,
		len(g.Nodes), len(g.Edges))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		t.printf("  node %d: %s", i, n.Type)
		n.print(t)
		t.printf("\n")
	}
	if len(g.Edges) == 0 {
		return
	}
	t.printf("  edges:")
	for _, e := range g.Edges {
		t.printf(" %d>%d", e.From, e.To)
		if e.FromPort != 0 || e.ToPort != 0 || e.Type != 0 {
			t.printf("(%d,%d,%d)", e.FromPort, e.ToPort, e.Type)
		}
	}
	t.printf("\n")
}
