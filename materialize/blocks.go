package materialize

import (
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// A framework's allocator places tensors inside of driver allocations, and a restored process that repeats those need not
// place tensors alike. So a graph's pointer into an engine-owned allocation that such an allocator divides is accepted only
// where it leads into a tensor that the engine named: the restored engine names it again, and its place is compared. A
// pointer into a block that was free when the capture phase began is refused: online, something else may own it.

// blockMap is the framework's allocator at the start of the capture phase: its blocks by ascending address.
type blockMap []*trace.Block

func (r *Recording) blocksAtCapture() blockMap {
	start := r.phaseOrder("warmup", "capture")
	last := map[uint64]*trace.Block{}
	for _, b := range r.blocks {
		if b.Header().Order < start {
			last[b.Addr] = b
		}
	}
	var m blockMap
	for _, b := range last {
		m = append(m, b)
	}
	slices.SortFunc(m, func(x, y *trace.Block) int { return compareU64(x.Addr, y.Addr) })
	return m
}

// at returns the block that holds addr, or nil.
func (m blockMap) at(addr uint64) *trace.Block {
	i, found := slices.BinarySearchFunc(m, addr, func(b *trace.Block, a uint64) int { return compareU64(b.Addr, a) })
	if !found {
		i--
	}
	if i < 0 || addr-m[i].Addr >= m[i].Size {
		return nil
	}
	return m[i]
}

func checkBlocks(a *Recording, spec *graphir.Spec) error {
	m := a.blocksAtCapture()
	if len(m) == 0 {
		return nil
	}
	named := func(p graphir.Pointer) bool {
		for i := range spec.Tensors {
			t := &spec.Tensors[i]
			if t.At.Space == p.Space && t.At.Alloc == p.Alloc && p.Offset >= t.At.Offset && p.Offset < t.At.Offset+t.Size {
				return true
			}
		}
		return false
	}
	for gi := range spec.Graphs {
		g := &spec.Graphs[gi]
		for ni := range g.Nodes {
			for _, p := range pointers(&g.Nodes[ni]) {
				if p.Space != graphir.SpaceAlloc || spec.Allocations[p.Alloc].Owner != graphir.OwnerEngine || named(p) {
					continue
				}
				b := m.at(a.allocs[p.Alloc].addr + p.Offset)
				switch {
				case b == nil:
					continue // the framework's allocator does not divide this allocation
				case b.Live == 0:
					return &RefusedError{g.Label, ni, nodeTypeName(uint32(g.Nodes[ni].Type)), fmt.Sprintf(
						"it refers to alloc#%d+%d, in a block that was free when the capture phase began", p.Alloc, p.Offset)}
				default:
					return &RefusedError{g.Label, ni, nodeTypeName(uint32(g.Nodes[ni].Type)), fmt.Sprintf(
						"it refers to alloc#%d+%d, which lies in no named tensor (a restored start may place it elsewhere)", p.Alloc, p.Offset)}
				}
			}
		}
	}
	return nil
}

// pointers returns every pointer of a node.
func pointers(n *graphir.Node) []graphir.Pointer {
	var out []graphir.Pointer
	switch {
	case n.Kernel != nil:
		for _, f := range n.Kernel.Fixups {
			out = append(out, f.Pointer)
		}
	case n.Memset != nil:
		out = append(out, n.Memset.Dst)
	case n.Memcpy != nil:
		out = append(out, n.Memcpy.Src.Pointer, n.Memcpy.Dst.Pointer)
	}
	return out
}
