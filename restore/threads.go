package restore

import (
	"errors"
	"fmt"

	"medusa/graphir"
)

// align compares this process's sequence with the recorded one and returns its allocations by recorded index. whole asks
// for the capture phase, too. If the recording had threads of their own order, the total order is not compared.
func (s *Session) align(steps []int64, allocs []liveAlloc, whole bool) ([]liveAlloc, error) {
	if !s.spec.Threaded() {
		compare := comparePrefix
		if whole {
			compare = compareWhole
		}
		return allocs, compare(s.spec, steps, allocs)
	}
	index, err := matchThreads(s.spec, steps, allocs, whole)
	if err != nil {
		return nil, err
	}
	s.recorded = index
	out := make([]liveAlloc, len(s.spec.Allocations))
	for here, recorded := range index {
		// mutant: allocations by thread and order, online with offline
		out[recorded] = allocs[here]
	}
	return out, nil
}

// matchThreads returns the recorded index of each allocation of this process.
func matchThreads(spec *graphir.Spec, steps []int64, allocs []liveAlloc, whole bool) (map[uint32]uint32, error) {
	var sequence []graphir.Step
	for _, step := range steps {
		if step < 0 {
			sequence = append(sequence, graphir.Step{Free: true, Alloc: uint32(-step - 1)})
		} else {
			sequence = append(sequence, graphir.Step{Alloc: uint32(step)})
		}
		if int(sequence[len(sequence)-1].Alloc) >= len(allocs) {
			return nil, errors.New("match threads: a step of an unknown allocation")
		}
	}
	here := graphir.ThreadSteps(sequence, func(alloc uint32) (uint32, graphir.AllocKind, uint64) {
		a := &allocs[alloc]
		return a.Thread, graphir.AllocKind(a.Kind), a.Size
	})
	recorded, fits := spec.PrefixSteps(), fitsPrefix
	if whole {
		recorded, fits = spec.AllSteps(), fitsWhole
	}
	index, err := graphir.MatchThreads(recorded, here, fits)
	if err != nil {
		return nil, fmt.Errorf("replay allocation sequences by thread: %w", err)
	}
	return index, nil
}

// fitsPrefix: frees at the end may belong to the capture phase.
func fitsPrefix(recorded, here []graphir.ThreadStep) bool {
	n := graphir.CommonSteps(recorded, here)
	for _, s := range recorded[n:] {
		if !s.Free {
			return false
		}
	}
	return n == len(here)
}

// fitsWhole: a native process may have done more since it was ready.
func fitsWhole(recorded, here []graphir.ThreadStep) bool {
	return graphir.CommonSteps(recorded, here) == len(recorded)
}
