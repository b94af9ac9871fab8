package memory

import (
	"fmt"

	"medusa/graphir"
	"medusa/restore/live"
)

// sequenceError names the first place at which this process's allocation sequence leaves the recorded one.
type sequenceError struct {
	step     int    // index into the sequence of allocations and frees
	recorded string // the recorded step
	replayed string // this process's step instead
}

func (e *sequenceError) Error() string {
	return fmt.Sprintf("replay allocation sequence: step %d was %s when recorded, is %s now", e.step, e.recorded, e.replayed)
}

// comparePrefix checks that the replayed steps are the recorded ones up to the capture phase, one by one: order, kind
// and size of allocations, order of frees. If they are, the i-th allocation offline is the i-th online.
//
// The capture phase begins somewhere before the first graph-owned allocation. Frees recorded between the last
// engine-owned and the first graph-owned allocation may belong to either side, so they may be missing.
func comparePrefix(spec *graphir.Spec, steps []int64, allocs []live.Alloc) error {
	for i, got := range steps {
		if i >= len(spec.Sequence) {
			return &sequenceError{i, "the end", describeReplayed(got, allocs)}
		}
		want := spec.Sequence[i]
		// mutant: allocation of the capture phase made by the engine
		if !sameStep(spec, want, got, allocs) || (!want.Free && spec.Allocations[want.Alloc].Owner != graphir.OwnerEngine) {
			return &sequenceError{i, describeRecorded(want, spec), describeReplayed(got, allocs)}
		}
	}
	for i := len(steps); i < len(spec.Sequence); i++ {
		// mutant: allocation that is missing
		if want := spec.Sequence[i]; !want.Free && spec.Allocations[want.Alloc].Owner == graphir.OwnerEngine {
			return &sequenceError{i, describeRecorded(want, spec), "missing"}
		}
	}
	return nil
}

// compareWhole checks that a native process made all of the recorded steps, the capture phase included. It may have made
// more since: the recording ends at ready.
func compareWhole(spec *graphir.Spec, steps []int64, allocs []live.Alloc) error {
	for i, want := range spec.Sequence {
		if i >= len(steps) {
			return &sequenceError{i, describeRecorded(want, spec), "missing"}
		}
		if !sameStep(spec, want, steps[i], allocs) {
			return &sequenceError{i, describeRecorded(want, spec), describeReplayed(steps[i], allocs)}
		}
	}
	return nil
}

// sameStep compares one step. A replayed step >= 0 allocates that index, one < 0 frees -step-1.
func sameStep(spec *graphir.Spec, want graphir.Step, got int64, allocs []live.Alloc) bool {
	if want.Free || got < 0 {
		// mutant: order of frees
		return want.Free && int64(want.Alloc) == -got-1
	}
	if int64(want.Alloc) != got || got >= int64(len(allocs)) {
		return false
	}
	a := spec.Allocations[want.Alloc]
	// mutant: size check of the replayed sequence
	return uint32(a.Kind) == allocs[got].Kind && a.Size == allocs[got].Size
}

func describeRecorded(s graphir.Step, spec *graphir.Spec) string {
	if s.Free {
		return fmt.Sprintf("free of #%d", s.Alloc)
	}
	a := spec.Allocations[s.Alloc]
	owner := ""
	if a.Owner == graphir.OwnerGraph {
		owner = ", capture phase"
	}
	return fmt.Sprintf("#%d (%s, %d bytes%s)", s.Alloc, a.Kind, a.Size, owner)
}

func describeReplayed(step int64, allocs []live.Alloc) string {
	if step < 0 {
		return fmt.Sprintf("free of #%d", -step-1)
	}
	if step >= int64(len(allocs)) {
		return fmt.Sprintf("#%d, unknown to the allocation map", step)
	}
	return fmt.Sprintf("#%d (%s, %d bytes)", step, graphir.AllocKind(allocs[step].Kind), allocs[step].Size)
}
