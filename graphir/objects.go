package graphir

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

// AllGraphs calls visit for every graph, those that child graph nodes embed included.
func (s *Spec) AllGraphs(visit func(*Graph)) {
	for i := range s.Graphs {
		visit(&s.Graphs[i])
	}
	for i := range s.Children {
		visit(&s.Children[i])
	}
}
