package graphir

import (
	"fmt"
	"maps"
	"slices"
)

// If several threads allocate, the total order of their allocations is a race, but each thread's own order repeats. Allocations
// are then identified by (thread role, order). A role is a thread's sequence, so threads with equal sequences cannot be
// distinguished.

// ThreadStep is an allocation by a thread, or the free of it by any thread.
type ThreadStep struct {
	Free  bool
	Kind  AllocKind
	Size  uint64
	Order int    // position among the thread's allocations
	Alloc uint32 // index in its process
}

func (s ThreadStep) same(t ThreadStep) bool {
	return s.Free == t.Free && s.Kind == t.Kind && s.Size == t.Size && s.Order == t.Order
}

// ThreadSteps divides a sequence by thread, with the frees of each ordered. The function of describes an allocation.
func ThreadSteps(sequence []Step, of func(alloc uint32) (thread uint32, kind AllocKind, size uint64)) map[uint32][]ThreadStep {
	out := map[uint32][]ThreadStep{}
	order, made := map[uint32]int{}, map[uint32]int{}
	for _, s := range sequence {
		thread, kind, size := of(s.Alloc)
		if !s.Free {
			order[s.Alloc] = made[thread]
			made[thread]++
		}
		out[thread] = append(out[thread], ThreadStep{s.Free, kind, size, order[s.Alloc], s.Alloc})
	}
	for thread, steps := range out {
		out[thread] = OrderFrees(steps)
	}
	return out
}

// MatchThreads matches each thread of another process with a recorded thread, and returns the recorded index of each of its
// allocations. fits compares two sequences, the recorded one first; if it is nil, they must be equal. If several threads fit
// equally well, the choice is arbitrary, so no pointer may depend on their allocations (Twins). The error names a thread without
// a match.
func MatchThreads(recorded, other map[uint32][]ThreadStep, fits func(recorded, other []ThreadStep) bool) (map[uint32]uint32, error) {
	equal := func(r, o []ThreadStep) bool { return slices.EqualFunc(r, o, ThreadStep.same) }
	if fits == nil {
		fits = equal
	}
	index, taken := map[uint32]uint32{}, map[uint32]bool{}
	take := func(id uint32, fits func(recorded, other []ThreadStep) bool) bool {
		for _, role := range slices.Sorted(maps.Keys(recorded)) {
			if taken[role] || !fits(recorded[role], other[id]) {
				continue
			}
			taken[role] = true
			for k, s := range recorded[role][:min(len(other[id]), len(recorded[role]))] {
				if !s.Free {
					index[other[id][k].Alloc] = s.Alloc
				}
			}
			return true
		}
		return false
	}
	var rest []uint32
	for _, id := range slices.Sorted(maps.Keys(other)) {
		if !take(id, equal) {
			rest = append(rest, id)
		}
	}
	for _, id := range rest {
		if !take(id, fits) {
			return nil, fmt.Errorf("match threads: the %d steps of thread %d match no recorded thread", len(other[id]), id)
		}
	}
	for role, r := range recorded {
		if !taken[role] && len(r) > 0 {
			return nil, fmt.Errorf("match threads: no thread performs the %d steps of recorded thread %d", len(r), role)
		}
	}
	return index, nil
}

// BeginsAs is Begins for the steps of threads.
func BeginsAs(long, short []ThreadStep) (inLong, inShort int) {
	return Begins(long, short, ThreadStep.same)
}

// Threaded reports whether allocations are identified by thread and order instead of their total order.
func (s *Spec) Threaded() bool {
	return slices.ContainsFunc(s.Allocations, func(a Allocation) bool { return a.Thread != 0 })
}

// AllSteps divides the recorded sequence by thread.
func (s *Spec) AllSteps() map[uint32][]ThreadStep {
	return ThreadSteps(s.Sequence, func(alloc uint32) (uint32, AllocKind, uint64) {
		a := &s.Allocations[alloc]
		return a.Thread, a.Kind, a.Size
	})
}

// PrefixSteps divides the recorded sequence by thread, each up to its first allocation of the capture phase. It leaves out
// threads that exist in the capture phase only.
func (s *Spec) PrefixSteps() map[uint32][]ThreadStep {
	all := s.AllSteps()
	for thread, steps := range all {
		end := slices.IndexFunc(steps, func(t ThreadStep) bool { return s.Allocations[t.Alloc].Owner == OwnerGraph })
		if end >= 0 {
			steps = steps[:end]
		}
		all[thread] = steps
		if len(steps) == 0 {
			delete(all, thread)
		}
	}
	return all
}

// Twins maps each thread to the thread that a restored process could not distinguish from it, because both allocate alike before
// the capture phase.
func (s *Spec) Twins() map[uint32]uint32 {
	prefixes := s.PrefixSteps()
	for thread, steps := range prefixes {
		for len(steps) > 0 && steps[len(steps)-1].Free {
			steps = steps[:len(steps)-1] // may belong to the capture phase
		}
		prefixes[thread] = steps
	}
	twin := map[uint32]uint32{}
	for x, a := range prefixes {
		for y, b := range prefixes {
			if x != y && slices.EqualFunc(a, b, ThreadStep.same) {
				twin[x] = y
			}
		}
	}
	return twin
}
