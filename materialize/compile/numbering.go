package compile

import (
	"medusa/graphir"
	"medusa/materialize/recording"
)

// numbering gives each allocation of a recording its number. Those from kept on are not in the other run.
type numbering struct {
	index allocationIndex // nil: the same numbers
	kept  int
}

// pinnedSizes are sizes of page-locked memory.
type pinnedSizes map[uint64]bool

// numbered numbers a recording's allocations, those of the sizes last.
func numbered(r *recording.Recording, left pinnedSizes) numbering {
	n := numbering{kept: len(r.Allocs)}
	if len(left) == 0 {
		return n
	}
	n.index, n.kept = allocationIndex{}, 0
	for i := range r.Allocs {
		if !left.has(&r.Allocs[i]) {
			n.index[uint32(i)] = uint32(n.kept)
			n.kept++
		}
	}
	for i := range r.Allocs {
		if left.has(&r.Allocs[i]) {
			n.index[uint32(i)] = uint32(len(n.index))
		}
	}
	return n
}

func (left pinnedSizes) has(a *recording.Allocation) bool {
	return a.Kind == graphir.AllocPinned && left[a.Size]
}

// sequence returns the steps of a recording by number, with frees that follow each other ordered, and without those of memory that is not in the other run.
func (n numbering) sequence(r *recording.Recording) []graphir.Step {
	if n.index == nil {
		return graphir.OrderFrees(r.Steps)
	}
	var out []graphir.Step
	for _, s := range r.Steps {
		if s.Alloc = n.index[s.Alloc]; int(s.Alloc) < n.kept {
			out = append(out, s)
		}
	}
	return graphir.OrderFrees(out)
}

// size is one more than the highest number.
func (n numbering) size(r *recording.Recording) int {
	size := len(r.Allocs)
	for _, number := range n.index {
		size = max(size, int(number)+1)
	}
	return size
}

// number returns the number of an allocation that the recording knows by another.
func (n numbering) number(recorded uint32) uint32 {
	if n.index == nil {
		return recorded
	}
	return n.index[recorded]
}

// own returns a function from the number of an allocation to it.
func (n numbering) own(r *recording.Recording) func(number uint32) *recording.Allocation {
	byNumber := make([]*recording.Allocation, n.size(r))
	for i := range r.Allocs {
		byNumber[n.number(uint32(i))] = &r.Allocs[i]
	}
	return func(number uint32) *recording.Allocation { return byNumber[number] }
}
