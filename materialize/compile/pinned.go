package compile

import (
	"errors"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// The order in which page-locked memory is allocated depends on time (graphir.Spec.Repeats). If two recordings differ by it, all of the sizes
// in question is left out of the numbers that both have in common: it comes after them, and no pointer may lead there.

// pinnedSizes are sizes of page-locked memory.
type pinnedSizes map[uint64]bool

// numbering gives each allocation of a recording its number. Those from kept on are not in the other run.
type numbering struct {
	index allocationIndex // nil: the same numbers
	kept  int
}

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

// alignPinned compares the sequences of two runs, and finds the sizes of page-locked memory without which they are the same.
func alignPinned(a, b *recording.Recording) (pinnedSizes, error) {
	left := pinnedSizes{}
	for {
		err := compareSequences(a, b, left)
		var differ *SequenceError
		if !errors.As(err, &differ) {
			return left, err
		}
		size, found := furthest(a, b, left, differ)
		// mutant: page-locked memory that does not repeat
		if !found {
			return nil, err
		}
		left[size] = true
	}
}

// furthest returns the size of page-locked memory at the place where the runs differ that leads furthest if it is left out.
func furthest(a, b *recording.Recording, left pinnedSizes, at *SequenceError) (size uint64, found bool) {
	most := at.Step
	for _, alloc := range []*recording.Allocation{at.a, at.b} {
		if alloc == nil || alloc.Kind != graphir.AllocPinned {
			continue
		}
		left[alloc.Size] = true
		var next *SequenceError
		if err := compareSequences(a, b, left); !errors.As(err, &next) {
			delete(left, alloc.Size)
			return alloc.Size, true
		}
		delete(left, alloc.Size)
		if !found || next.Step > most {
			size, most, found = alloc.Size, next.Step, true
		}
	}
	return size, found
}

// own returns a function from the number of an allocation to it.
func (n numbering) own(r *recording.Recording) func(number uint32) *recording.Allocation {
	byNumber := make([]*recording.Allocation, n.size(r))
	for i := range r.Allocs {
		byNumber[n.number(uint32(i))] = &r.Allocs[i]
	}
	return func(number uint32) *recording.Allocation { return byNumber[number] }
}

// number returns the number of an allocation that the recording knows by another.
func (n numbering) number(recorded uint32) uint32 {
	if n.index == nil {
		return recorded
	}
	return n.index[recorded]
}

// size is one more than the highest number.
func (n numbering) size(r *recording.Recording) int {
	size := len(r.Allocs)
	for _, number := range n.index {
		size = max(size, int(number)+1)
	}
	return size
}

// sequence returns the steps of a recording by number, without those of memory that is not in the other run.
func (n numbering) sequence(r *recording.Recording) []graphir.Step {
	if n.index == nil {
		return r.Steps
	}
	var out []graphir.Step
	for _, s := range r.Steps {
		if s.Alloc = n.index[s.Alloc]; int(s.Alloc) < n.kept {
			out = append(out, s)
		}
	}
	return out
}
