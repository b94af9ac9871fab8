package programs

import "slices"

// decorate gives a launch attributes, an odd grid or its parameters as one buffer.
func (d *drawer) decorate(op *Op) {
	set := func(name string, id int, words ...uint32) {
		a := Attr{ID: id}
		copy(a.Words[:], words)
		op.Attrs = append(op.Attrs, a)
		d.feature("attribute: %s", name)
	}
	cooperative := d.chance(12)
	if cooperative {
		set("cooperative", 2, 1)
	}
	if d.chance(12) {
		set("cluster dimension", 4, 2, 1, 1)
	} else if d.portableCluster(op) {
		op.Grid = 16
		set("cluster of non-portable size", 4, 16, 1, 1)
	}
	if d.chance(12) {
		set("priority", 8, ^uint32(d.IntN(2)))
	}
	if d.chance(12) {
		set("memory-sync domain map", 9, 1|3<<8)
	}
	if d.chance(12) {
		set("memory-sync domain", 10, 1)
	}
	if d.chance(12) {
		set("carve-out", 14, uint32(d.IntN(100)))
	}
	if d.chance(12) {
		base := Pointer{d.pick(), uint64(4 * d.IntN(8))}
		op.Attrs = append(op.Attrs, Attr{ID: 1, Words: [4]uint32{uint32(16 * (1 + d.IntN(8)))}, Base: &base})
		d.feature("attribute: access-policy window")
	}
	for _, a := range d.p.Modules[op.Module].Attrs {
		if a.Kernel == op.Kernel && a.ID == 9 {
			d.feature("function: carve-out")
		}
		if a.Kernel == op.Kernel && a.OnKernel {
			d.feature("function: attribute set on the kernel")
		}
		if a.Kernel == op.Kernel && a.Capture {
			d.feature("function: attribute set in the capture phase")
		}
	}
	op.Serial = !cooperative && d.chance(4)
	if !cooperative && d.chance(8) {
		op.Extra = true
		d.feature("parameter: all in one buffer")
	}
}

// portableCluster says whether the launch may ask for a cluster above the portable size, and does.
func (d *drawer) portableCluster(op *Op) bool {
	for _, a := range d.p.Modules[op.Module].Attrs {
		if a.Kernel == op.Kernel && a.ID == 14 {
			d.feature("function: non-portable cluster size")
			return true
		}
	}
	return false
}

func meet(a, b []int) bool {
	return slices.ContainsFunc(a, func(x int) bool { return slices.Contains(b, x) })
}

// conflict says whether one of two operations writes a resource that the other touches.
func conflict(a, b *Op) bool {
	return meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes)
}

// connect draws the edges: those that conflicts demand, unless a path is there, and a few more.
func (g *generator) connect(out *Graph) {
	n := len(out.Ops)
	before := make([][]bool, n) // before[j][i]: a path leads from i to j
	out.Edges = nil
	for j := range n {
		before[j] = make([]bool, n)
		join := out.Mode == Changed && j >= out.Split
		for i := j - 1; i >= 0; i-- {
			if before[j][i] || !conflict(&out.Ops[i], &out.Ops[j]) && !g.chance(8) && !(join && i < out.Split) {
				continue
			}
			out.Edges = append(out.Edges, g.edge(out, i, j))
			before[j][i] = true
			for k := range i {
				before[j][k] = before[j][k] || before[i][k]
			}
		}
	}
}

// mayBeLoose says whether an edge may have data: it has to be drawn by the program, between two kernels.
func (out *Graph) mayBeLoose(i, j int) bool {
	built := out.Mode == Built || out.Mode == Changed && j >= out.Split
	return built && out.Ops[i].Kind == Kernel && out.Ops[j].Kind == Kernel
}

// edge draws its data: kernels may be ordered more loosely than by the end of the first.
func (g *generator) edge(out *Graph, i, j int) Edge {
	e := Edge{From: i, To: j}
	if out.mayBeLoose(i, j) && g.chance(3) {
		e.Port, e.Type = 1+uint8(g.IntN(2)), 1
		g.feature("edge: %s", []string{"", "programmatic", "launch-order port"}[e.Port])
	}
	return e
}

// vary makes a graph that differs from another in parameters only: other numbers, other kernels of the same signature, the
// other of two buffers everywhere.
func (g *generator) vary(like *Graph) (Graph, bool) {
	for _, o := range like.Ops {
		if o.Kind == Child {
			return Graph{}, false
		}
	}
	out := *like
	out.Swapped = true
	out.Ops = slices.Clone(like.Ops)
	out.Edges = slices.Clone(like.Edges)
	changed := !g.chance(3) && g.apart(&out)
	for i := range out.Ops {
		op := &out.Ops[i]
		if op.Kind == Fill {
			op.Value ^= 1
			changed = true
		}
		if op.Kind == MemOps {
			op.Mem = slices.Clone(op.Mem)
			for k := range op.Mem {
				op.Mem[k].Value ^= 1
			}
			changed = true
		}
		if op.Kind != Kernel {
			continue
		}
		op.Args = slices.Clone(op.Args)
		switch op.Kernel {
		case "axpy", "axmy":
			op.Kernel = map[string]string{"axpy": "axmy", "axmy": "axpy"}[op.Kernel]
			args := slices.Clone(op.Args[0].Struct)
			args[2].Number++
			op.Args[0].Struct = args
			changed = true
			g.feature("template: other kernel")
		case "bump", "tag":
			for k := range op.Args {
				if op.Args[k].Pointer == nil && !(op.Kernel == "tag" && k == 2) {
					op.Args[k].Number += 2
					changed = true
				}
			}
		}
	}
	return out, changed
}

// apart changes a property that a template fixes, so that the graph must get one of its own: an attribute's value, an edge's data.
func (g *generator) apart(out *Graph) bool {
	if g.chance(4) { // most graphs have a kernel with an attribute, few an edge that may have data
		return g.otherAttribute(out) || g.otherEdge(out)
	}
	return g.otherEdge(out) || g.otherAttribute(out)
}

func (g *generator) otherAttribute(out *Graph) bool {
	for i := range out.Ops {
		op := &out.Ops[i]
		k := slices.IndexFunc(op.Attrs, func(a Attr) bool { return a.ID == 8 || a.ID == 14 })
		if k < 0 {
			continue
		}
		op.Attrs = slices.Clone(op.Attrs)
		if a := &op.Attrs[k]; a.ID == 8 {
			a.Words[0] = ^a.Words[0]
		} else {
			a.Words[0] = 100 - a.Words[0]
		}
		g.feature("template: kept apart by an attribute")
		return true
	}
	return false
}

func (g *generator) otherEdge(out *Graph) bool {
	for i := range out.Edges {
		e := &out.Edges[i]
		switch {
		case e.Type != 0:
			e.Port, e.Type = 0, 0
		case out.mayBeLoose(e.From, e.To):
			e.Port, e.Type = 1, 1
			g.feature("edge: programmatic")
		default:
			continue
		}
		g.feature("template: kept apart by edge data")
		return true
	}
	return false
}
