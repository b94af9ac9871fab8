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

// comparePrefix checks that the replayed steps are the recorded ones up to the capture phase, one by one: order, kind and
// size of allocations, and the frees between them. If they are, the i-th allocation offline is the i-th online.
//
// The capture phase begins somewhere before the first graph-owned allocation. Frees recorded between the last engine-owned
// and the first graph-owned allocation may belong to either side, so they may be missing.
func comparePrefix(spec *graphir.Spec, steps []int64, allocs []live.Alloc) error {
	recorded, here := graphir.OrderFrees(spec.Sequence), graphir.OrderFrees(stepsOf(steps))
	n, m := graphir.Begins(recorded, here, func(want, got graphir.Step) bool {
		// mutant: allocation of the capture phase made by the engine
		return sameStep(spec, want, got, allocs) && (want.Free || spec.Allocations[want.Alloc].Owner == graphir.OwnerEngine)
	})
	if m < len(here) {
		return differ(spec, recorded, n, here, m, allocs)
	}
	for i := n; i < len(recorded); i++ {
		// mutant: allocation that is missing
		if want := recorded[i]; !want.Free && spec.Allocations[want.Alloc].Owner == graphir.OwnerEngine {
			return differ(spec, recorded, i, here, m, allocs)
		}
	}
	return nil
}

// compareWhole checks that a native process made all of the recorded steps, the capture phase included. It may have made
// more since: the recording ends at ready.
func compareWhole(spec *graphir.Spec, steps []int64, allocs []live.Alloc) error {
	recorded, here := graphir.OrderFrees(spec.Sequence), graphir.OrderFrees(stepsOf(steps))
	m, n := graphir.Begins(here, recorded, func(got, want graphir.Step) bool { return sameStep(spec, want, got, allocs) })
	if n < len(recorded) {
		return differ(spec, recorded, n, here, m, allocs)
	}
	return nil
}

// differ is the error for the recorded step i and step j of this process, either of which may be beyond the end.
func differ(spec *graphir.Spec, recorded []graphir.Step, i int, here []graphir.Step, j int, allocs []live.Alloc) error {
	e := &sequenceError{step: i, recorded: "the end", replayed: "missing"}
	if i < len(recorded) {
		e.recorded = describeRecorded(recorded[i], spec)
	}
	if j < len(here) {
		e.replayed = describeReplayed(here[j], allocs)
	}
	return e
}

// stepsOf reads the steps of this process: one that is not negative allocates that index, another frees the index -step-1.
func stepsOf(steps []int64) []graphir.Step {
	out := make([]graphir.Step, len(steps))
	for i, step := range steps {
		if out[i].Alloc = uint32(step); step < 0 {
			out[i] = graphir.Step{Free: true, Alloc: uint32(-step - 1)}
		}
	}
	return out
}

// sameStep compares one step.
func sameStep(spec *graphir.Spec, want, got graphir.Step, allocs []live.Alloc) bool {
	if want.Free || got.Free {
		// mutant: what is freed
		return want == got
	}
	if want != got || int(got.Alloc) >= len(allocs) {
		return false
	}
	a := spec.Allocations[want.Alloc]
	// mutant: size check of the replayed sequence
	return uint32(a.Kind) == allocs[got.Alloc].Kind && a.Size == allocs[got.Alloc].Size
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

func describeReplayed(step graphir.Step, allocs []live.Alloc) string {
	if step.Free {
		return fmt.Sprintf("free of #%d", step.Alloc)
	}
	if int(step.Alloc) >= len(allocs) {
		return fmt.Sprintf("#%d, unknown to the allocation map", step.Alloc)
	}
	a := allocs[step.Alloc]
	return fmt.Sprintf("#%d (%s, %d bytes)", step.Alloc, graphir.AllocKind(a.Kind), a.Size)
}
