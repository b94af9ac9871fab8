package memory

import (
	"errors"
	"fmt"

	"medusa/graphir"
	"medusa/restore/live"
)

// align compares this process's sequence with the recorded one and returns its allocations by recorded index. whole asks
// for the capture phase, too. If the recording had threads of their own order, the total order is not compared, and recorded leads
// from the indices of this process to the recorded ones.
func align(spec *graphir.Spec, steps []int64, allocs []live.Alloc, whole bool) (byIndex []live.Alloc, recorded map[uint32]uint32, err error) {
	if !spec.Threaded() {
		compare := comparePrefix
		if whole {
			compare = compareWhole
		}
		return allocs, nil, compare(spec, steps, allocs)
	}
	recorded, err = matchThreads(spec, steps, allocs, whole)
	if err != nil {
		return nil, nil, err
	}
	byIndex = make([]live.Alloc, len(spec.Allocations))
	for here, to := range recorded {
		// mutant: allocations by thread and order, online with offline
		byIndex[to] = allocs[here]
	}
	return byIndex, recorded, nil
}

// matchThreads returns the recorded index of each allocation of this process.
func matchThreads(spec *graphir.Spec, steps []int64, allocs []live.Alloc, whole bool) (map[uint32]uint32, error) {
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
