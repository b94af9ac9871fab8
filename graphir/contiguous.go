package graphir

import "fmt"

// A framework may map one range of addresses in pieces (PyTorch's expandable segments). Each piece is an allocation of its own,
// and a tensor may span several. Mappings that were contiguous in both recordings form a chain. In every process they must be
// contiguous again.

// Contiguous lists, for each mapping in a chain, all mappings of that chain in address order.
type Contiguous map[uint32][]uint32

// Contiguous finds the chains among the allocations.
func (s *Spec) Contiguous() Contiguous {
	next := map[uint32]uint32{}
	for i, a := range s.Allocations {
		if a.ContiguousTo != 0 {
			next[a.ContiguousTo-1] = uint32(i)
		}
	}
	chains := Contiguous{}
	for first := range next {
		if int64(first) >= int64(len(s.Allocations)) || s.Allocations[first].ContiguousTo != 0 {
			continue
		}
		chain := []uint32{first}
		for i, more := next[first]; more && len(chain) <= len(next); i, more = next[i] {
			chain = append(chain, i)
		}
		for _, i := range chain {
			chains[i] = chain
		}
	}
	return chains
}

// Following returns the mappings after this one in its chain, nearest first.
func (c Contiguous) Following(alloc uint32) []uint32 {
	chain := c[alloc]
	for k, i := range chain {
		if i == alloc {
			return chain[k+1:]
		}
	}
	return nil
}

// First reports whether the allocation is not in a chain, or is the first of one.
func (c Contiguous) First(alloc uint32) bool { return c[alloc] == nil || c[alloc][0] == alloc }

// Part is the part of a memory range inside one allocation.
type Part struct {
	Alloc        uint32
	Offset, Size uint64
	At           uint64 // offset in the range
}

// Parts divides the size bytes at a pointer among the mappings of its chain.
func (s *Spec) Parts(c Contiguous, at Pointer, size uint64) []Part {
	var out []Part
	offset, done := at.Offset, uint64(0)
	for _, i := range append([]uint32{at.Index}, c.Following(at.Index)...) {
		whole := s.Allocations[i].Size
		if offset >= whole {
			offset -= whole
			continue
		}
		n := min(size-done, whole-offset)
		if n > 0 {
			out = append(out, Part{i, offset, n, done})
		}
		done, offset = done+n, 0
	}
	return out
}

// contiguous checks the chains: all mappings exist and have one owner, and each follows at most one other.
func (v *validator) contiguous() {
	taken := map[uint32]int{}
	for i, a := range v.spec.Allocations {
		if a.ContiguousTo == 0 {
			continue
		}
		path := fmt.Sprintf("allocations[%d].contiguous_to", i)
		if int64(a.ContiguousTo) > int64(len(v.spec.Allocations)) {
			v.bad(path, "alloc %d of %d", a.ContiguousTo-1, len(v.spec.Allocations))
			continue
		}
		before := v.spec.Allocations[a.ContiguousTo-1]
		if other, ok := taken[a.ContiguousTo]; ok {
			v.bad(path, "alloc %d, which alloc %d is contiguous to already", a.ContiguousTo-1, other)
		}
		taken[a.ContiguousTo] = i
		if a.Kind != AllocVMM || before.Kind != AllocVMM || !a.Live || !before.Live || a.Owner != before.Owner {
			v.bad(path, "alloc %d: not two live mappings of one owner", a.ContiguousTo-1)
		}
		if v.chains[uint32(i)] == nil {
			v.bad(path, "alloc %d: a ring", a.ContiguousTo-1)
		}
	}
}
