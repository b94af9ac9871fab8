package compile

import (
	"errors"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// The order in which page-locked memory is allocated depends on time (graphir.Spec.Repeats). If two recordings differ by it, all memory of
// the sizes in question is left out of the numbers that both have in common: it is numbered after them, and no pointer may lead there.

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
