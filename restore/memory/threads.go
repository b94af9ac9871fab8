package memory

import (
	"fmt"

	"medusa/graphir"
	"medusa/restore/live"
)

// align compares this process's sequence with the recorded one and returns its allocations by recorded index. whole includes the capture
// phase. recorded maps the indices of this process to the recorded ones; it is nil if these are the same. If the recording had threads with
// an order of their own, the total order is not compared. If page-locked memory came in another order, align leaves out page-locked memory
// of sizes that no referenced one has, and it has no recorded index.
func align(spec *graphir.Spec, steps []int64, allocs []live.Alloc, whole bool) (byIndex []live.Alloc, recorded map[uint32]uint32, err error) {
	byIndex, recorded, err = alignSteps(spec, steps, allocs, whole)
	if err == nil {
		return byIndex, recorded, nil
	}
	repeating := *spec
	repeating.Sequence = spec.Repeating()
	here, damage := repeatingHere(spec, steps, allocs)
	if damage != nil {
		return nil, nil, damage
	}
	if len(repeating.Sequence) == len(spec.Sequence) && len(here) == len(steps) {
		return nil, nil, err
	}
	if spec.Threaded() {
		return alignSteps(&repeating, here, allocs, whole)
	}
	recorded = pairs(repeating.Sequence, here)
	byIndex = arranged(spec, allocs, recorded)
	return byIndex, recorded, compareOrder(&repeating, numbered(here, recorded, len(byIndex)), byIndex, whole)
}

// alignSteps compares all of the sequences.
func alignSteps(spec *graphir.Spec, steps []int64, allocs []live.Alloc, whole bool) ([]live.Alloc, map[uint32]uint32, error) {
	if !spec.Threaded() {
		return allocs, nil, compareOrder(spec, steps, allocs, whole)
	}
	recorded, err := matchThreads(spec, steps, allocs, whole)
	if err != nil {
		return nil, nil, err
	}
	return arranged(spec, allocs, recorded), recorded, nil
}

func compareOrder(spec *graphir.Spec, steps []int64, allocs []live.Alloc, whole bool) error {
	if whole {
		return compareWhole(spec, steps, allocs)
	}
	return comparePrefix(spec, steps, allocs)
}

// repeatingHere returns this process's steps without page-locked memory that may come in any order.
func repeatingHere(spec *graphir.Spec, steps []int64, allocs []live.Alloc) ([]int64, error) {
	repeats := spec.Repeats()
	var out []int64
	for _, step := range steps {
		alloc := step
		if step < 0 {
			alloc = -step - 1
		}
		if alloc >= int64(len(allocs)) {
			return nil, fmt.Errorf("replay allocation sequence: a step of #%d, unknown to the allocation map", alloc)
		}
		// mutant: page-locked memory in any order
		if repeats(graphir.AllocKind(allocs[alloc].Kind), allocs[alloc].Size) {
			out = append(out, step)
		}
	}
	return out, nil
}

// pairs gives each allocation of this process the recorded index of the one that comes at its place.
func pairs(sequence []graphir.Step, here []int64) map[uint32]uint32 {
	var made []uint32
	for _, s := range sequence {
		if !s.Free {
			made = append(made, s.Alloc)
		}
	}
	out := map[uint32]uint32{}
	for _, step := range here {
		if n := len(out); step >= 0 && n < len(made) {
			out[uint32(step)] = made[n]
		}
	}
	return out
}

// numbered gives steps the recorded indices; more is that of an allocation beyond the recorded ones.
func numbered(here []int64, recorded map[uint32]uint32, more int) []int64 {
	out := make([]int64, len(here))
	for i, step := range here {
		alloc, free := step, step < 0
		if free {
			alloc = -step - 1
		}
		to, known := recorded[uint32(alloc)]
		if out[i] = int64(to); !known {
			out[i] = int64(more)
		}
		if free {
			out[i] = -out[i] - 1
		}
	}
	return out
}

// arranged returns this process's allocations by recorded index.
func arranged(spec *graphir.Spec, allocs []live.Alloc, recorded map[uint32]uint32) []live.Alloc {
	byIndex := make([]live.Alloc, len(spec.Allocations))
	for here, to := range recorded {
		// mutant: allocations by thread and order, online with offline
		byIndex[to] = allocs[here]
	}
	return byIndex
}

// matchThreads returns the recorded index of each allocation of this process.
func matchThreads(spec *graphir.Spec, steps []int64, allocs []live.Alloc, whole bool) (map[uint32]uint32, error) {
	here := graphir.ThreadSteps(stepsOf(steps), func(alloc uint32) (uint32, graphir.AllocKind, uint64) {
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
	n, m := graphir.BeginsAs(recorded, here)
	for _, s := range recorded[n:] {
		if !s.Free {
			return false
		}
	}
	return m == len(here)
}

// fitsWhole: a native process may have done more since it was ready.
func fitsWhole(recorded, here []graphir.ThreadStep) bool {
	_, n := graphir.BeginsAs(here, recorded)
	return n == len(recorded)
}
