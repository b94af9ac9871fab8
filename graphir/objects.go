package graphir

import "slices"

// Objects are all memory that a pointer can lead to, numbered across the tables: allocations first, then globals,
// host buffers and tensors. A tensor is an object of its own where its allocation is divided. Who maps pointers to addresses keeps one entry an object.

// Objects is the number of objects.
func (s *Spec) Objects() int {
	return len(s.Allocations) + len(s.Globals) + len(s.HostBuffers) + len(s.Tensors)
}

// Object is the number of the object that an entry of a table is, and so the one that a pointer leads to.
func (s *Spec) Object(space Space, index uint32) uint32 {
	switch space {
	case SpaceGlobal:
		return uint32(len(s.Allocations)) + index
	case SpaceHost:
		return uint32(len(s.Allocations)+len(s.Globals)) + index
	case SpaceTensor:
		return uint32(len(s.Allocations)+len(s.Globals)+len(s.HostBuffers)) + index
	}
	return index
}

// IsTensor reports whether the object is a tensor, which lies inside an allocation.
func (s *Spec) IsTensor(object uint32) bool {
	return int64(object) >= int64(len(s.Allocations)+len(s.Globals)+len(s.HostBuffers))
}

// Target is the number of the object that the pointer leads to.
func (s *Spec) Target(p Pointer) uint32 { return s.Object(p.Space, p.Alloc) }

// ObjectSize is the object's size in bytes.
func (s *Spec) ObjectSize(object uint32) uint64 {
	allocs, globals, hosts := uint32(len(s.Allocations)), uint32(len(s.Globals)), uint32(len(s.HostBuffers))
	switch {
	case object < allocs:
		return s.Allocations[object].Size
	case object < allocs+globals:
		return s.Globals[object-allocs].Size
	case object < allocs+globals+hosts:
		return s.HostBuffers[object-allocs-globals].Size
	}
	return s.Tensors[object-allocs-globals-hosts].Size
}

// Pointers calls visit for every pointer of a node's parameters and attributes.
func (n *Node) Pointers(visit func(Pointer)) {
	switch {
	case n.Kernel != nil:
		for i := range n.Kernel.Fixups {
			visit(n.Kernel.Fixups[i].Pointer)
		}
		for i := range n.Kernel.Attrs {
			if base := n.Kernel.Attrs[i].Base; base != nil {
				visit(*base)
			}
		}
	case n.Memset != nil:
		visit(n.Memset.Dst)
	case n.Memcpy != nil:
		visit(n.Memcpy.Src.Pointer)
		visit(n.Memcpy.Dst.Pointer)
	}
}

// fixups are all the pointers of a kernel node without attributes. Nearly all nodes are such, and without a call for each
// pointer are faster to look at.
func (n *Node) fixups() (_ []Fixup, all bool) {
	if n.Kernel == nil || n.Kernel.Attrs != nil {
		return nil, false
	}
	return n.Kernel.Fixups, true
}

// AllGraphs calls visit for every graph, those that child graph nodes embed included. Graphs are valid during the visit. What
// can fail is reading row groups.
func (s *Spec) AllGraphs(visit func(*Graph)) error {
	err := s.EachGraph(func(_ int, g *Graph) error {
		visit(g)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range s.Children {
		visit(&s.Children[i])
	}
	return nil
}

// Nodes is the number of nodes of a graph.
func (s *Spec) Nodes(graph int) int {
	if s.Rows != nil {
		return len(s.Rows.plans[s.Rows.template[graph]].nodes)
	}
	return len(s.Graphs[graph].Nodes)
}

// Referred says of each object whether a node of a graph points to it. No row group is read for it.
func (s *Spec) Referred() []bool {
	out := make([]bool, s.Objects())
	visit := func(p Pointer) { out[s.Target(p)] = true }
	s.inMemory(func(g *Graph) {
		for i := range g.Nodes {
			if fixups, all := g.Nodes[i].fixups(); all {
				for f := range fixups {
					out[s.Target(fixups[f].Pointer)] = true
				}
				continue
			}
			g.Nodes[i].Pointers(visit)
		}
	})
	if s.Rows != nil {
		for _, object := range s.Rows.referred {
			out[object] = true
		}
	}
	return out
}

// UsedKernels says of each kernel whether a node of a graph launches it. No row group is read for it.
func (s *Spec) UsedKernels() []bool {
	out := make([]bool, len(s.Kernels))
	s.inMemory(func(g *Graph) {
		for i := range g.Nodes {
			if k := g.Nodes[i].Kernel; k != nil {
				out[k.Kernel] = true
			}
		}
	})
	if s.Rows != nil {
		for _, p := range s.Rows.plans {
			for i := range p.nodes {
				if n := p.nodes[i].shape; n.node == NodeKernel && int64(n.kernel) < int64(len(out)) {
					out[n.kernel] = true
				}
			}
		}
	}
	return out
}

func (s *Spec) inMemory(visit func(*Graph)) {
	if s.Rows == nil {
		for i := range s.Graphs {
			visit(&s.Graphs[i])
		}
	}
	for i := range s.Children {
		visit(&s.Children[i])
	}
}

// spaceSize is the number of entries of a space's table.
func (s *Spec) spaceSize(space Space) int {
	switch space {
	case SpaceAlloc:
		return len(s.Allocations)
	case SpaceGlobal:
		return len(s.Globals)
	case SpaceHost:
		return len(s.HostBuffers)
	case SpaceTensor:
		return len(s.Tensors)
	}
	return 0
}

// clone shares no memory with g.
func (g *Graph) clone() *Graph {
	out := *g
	out.Edges, out.Nodes = slices.Clone(g.Edges), slices.Clone(g.Nodes)
	for i := range out.Nodes {
		switch n := &out.Nodes[i]; {
		case n.Kernel != nil:
			k := *n.Kernel
			k.Params, k.Fixups, k.Attrs = slices.Clone(k.Params), slices.Clone(k.Fixups), slices.Clone(k.Attrs)
			n.Kernel = &k
		case n.Memset != nil:
			m := *n.Memset
			n.Memset = &m
		case n.Memcpy != nil:
			m := *n.Memcpy
			n.Memcpy = &m
		}
	}
	return &out
}
