package graphir

import "slices"

// Objects are the pieces of memory that a pointer can lead to, numbered across the tables: allocations first, then globals, host
// buffers and tensors. A tensor in a suballocated allocation is an object of its own. A table from pointers to addresses has one
// entry per object.

// Objects is the number of objects.
func (s *Spec) Objects() int {
	return len(s.Allocations) + len(s.Globals) + len(s.HostBuffers) + len(s.Tensors)
}

// Object returns the number of the object at an index of a space's table.
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

// IsTensor reports whether the object is a tensor, which is part of an allocation.
func (s *Spec) IsTensor(object uint32) bool {
	return int64(object) >= int64(len(s.Allocations)+len(s.Globals)+len(s.HostBuffers))
}

// Target returns the number of the object that the pointer leads to.
func (s *Spec) Target(p Pointer) uint32 { return s.Object(p.Space, p.Index) }

// ObjectSize returns the object's size in bytes.
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

// Pointers calls visit for every pointer in a node's parameters and attributes.
func (n *Node) Pointers(visit func(Pointer)) {
	if n.Params != nil {
		n.Params.pointers(visit)
	}
}

// Writes calls visit for at least the memory that the node writes, unless it is a kernel's.
func (n *Node) Writes(visit func(to Pointer, size uint64)) {
	if n.Params != nil {
		n.Params.writes(visit)
	}
}

// relocations returns the pointers of a kernel node without attributes, which are all its pointers. Nearly all nodes are of this kind,
// and a loop over relocations is faster than a call for each pointer.
func (n *Node) relocations() (_ []Relocation, all bool) {
	if k := n.Kernel(); k != nil && k.Attrs == nil {
		return k.Relocations, true
	}
	return nil, false
}

// AllGraphs calls visit for every graph, including those that child graph nodes embed. Graphs are valid during the visit only. It
// fails if row groups cannot be read.
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

// Nodes returns the number of a graph's nodes.
func (s *Spec) Nodes(graph int) int {
	if s.Rows != nil {
		return len(s.Rows.plans[s.Rows.template[graph]].nodes)
	}
	return len(s.Graphs[graph].Nodes)
}

// Referred says for each object whether a graph node points to it. It reads no row group.
func (s *Spec) Referred() []bool {
	out := make([]bool, s.Objects())
	visit := func(p Pointer) { out[s.Target(p)] = true }
	s.inMemory(func(g *Graph) {
		for i := range g.Nodes {
			if relocations, all := g.Nodes[i].relocations(); all {
				for f := range relocations {
					out[s.Target(relocations[f].Pointer)] = true
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

// Referenced says for each object whether a graph, a saved content or a named tensor refers to it. Other objects were scratch of the
// skipped warm-up.
func (s *Spec) Referenced() []bool {
	used := s.Referred()
	visit := func(p Pointer) { used[s.Target(p)] = true }
	for _, c := range s.Contents {
		visit(Pointer{Index: c.Alloc, Space: c.Space})
		for _, f := range c.Relocations {
			visit(f.Pointer)
		}
	}
	for _, t := range s.Tensors {
		visit(t.At)
	}
	for i, chain := range s.Contiguous() {
		for _, k := range chain { // a pointer does not tell how far its memory spans
			used[k] = used[k] || used[i]
		}
	}
	return used
}

// UsedKernels says for each kernel whether a graph node launches it. It reads no row group.
func (s *Spec) UsedKernels() []bool {
	out := make([]bool, len(s.Kernels))
	s.inMemory(func(g *Graph) {
		for i := range g.Nodes {
			if k := g.Nodes[i].Kernel(); k != nil {
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

// spaceSize returns the number of entries of a space's table.
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

// clone returns a copy that shares no memory with g.
func (g *Graph) clone() *Graph {
	out := *g
	out.Edges, out.Nodes = slices.Clone(g.Edges), slices.Clone(g.Nodes)
	for i := range out.Nodes {
		if p := out.Nodes[i].Params; p != nil {
			out.Nodes[i].Params = p.clone()
		}
	}
	return &out
}
