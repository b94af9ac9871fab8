package compile

import (
	"fmt"

	"medusa/graphir"
	"medusa/materialize/recording"
)

// allocationIndex gives each allocation of record-b, by its own number, that of its twin in record-a; nil: they have the same.
type allocationIndex map[uint32]uint32

// alignThreads pairs the allocations of two runs, if both have several threads whose own orders repeat. It returns the thread of each
// allocation of record-a as well, or nil if the total order decides: one thread, or an engine that moves its work between threads.
func alignThreads(a, b *recording.Recording) (threads []uint32, index allocationIndex) {
	sa, sb := threadSteps(a), threadSteps(b)
	// mutant: allocations by thread and order, record-a with record-b
	if len(sa) < 2 {
		return nil, nil
	}
	index, err := graphir.MatchThreads(sa, sb, nil)
	if err != nil || len(index) != len(a.Allocs) || len(a.Allocs) != len(b.Allocs) {
		return nil, nil
	}
	threads = make([]uint32, len(a.Allocs))
	roles := map[uint32]uint32{}
	for i := range a.Allocs {
		t := a.Allocs[i].Thread
		if _, known := roles[t]; !known {
			roles[t] = uint32(len(roles))
		}
		threads[i] = roles[t]
	}
	return threads, index
}

func threadSteps(r *recording.Recording) map[uint32][]graphir.ThreadStep {
	return graphir.ThreadSteps(r.Steps, func(alloc uint32) (uint32, graphir.AllocKind, uint64) {
		a := &r.Allocs[alloc]
		return a.Thread, a.Kind, a.Size
	})
}

// SequenceError is the first place where two runs did not allocate and free alike, neither in all nor by thread. The
// stacks are those of the calls (of a free: of its allocation), as far as they were recorded.
type SequenceError struct {
	Step           int
	A, B           string
	StackA, StackB string

	a, b *recording.Allocation
}

func (e *SequenceError) Error() string {
	return fmt.Sprintf("compare allocation sequences: step %d: %s in record-a (called from %s), %s in record-b (called from %s); the engine's control flow must repeat, in all or by thread",
		e.Step, e.A, e.StackA, e.B, e.StackB)
}

// compareSequences demands the same allocations and frees in the same order (paper §3: control flow is deterministic), but for page-locked memory
// of some sizes, and for frees that follow each other.
func compareSequences(a, b *recording.Recording, left pinnedSizes) error {
	na, nb := numbered(a, left), numbered(b, left)
	sa, sb := na.sequence(a), nb.sequence(b)
	ofA, ofB := na.own(a), nb.own(b)
	for i := range max(len(sa), len(sb)) {
		x, y := describeStep(sa, i, ofA), describeStep(sb, i, ofB)
		if x != y {
			e := &SequenceError{Step: i, A: x, B: y, a: allocOf(sa, i, ofA), b: allocOf(sb, i, ofB)}
			e.StackA, e.StackB = stackOf(e.a), stackOf(e.b)
			return e
		}
	}
	return nil
}

func describeStep(steps []graphir.Step, i int, of func(number uint32) *recording.Allocation) string {
	al := allocOf(steps, i, of)
	switch {
	case al == nil:
		return "nothing"
	case steps[i].Free:
		return fmt.Sprintf("free of alloc#%d", steps[i].Alloc)
	}
	return fmt.Sprintf("alloc#%d of kind %d, %d bytes", steps[i].Alloc, al.Kind, al.Size)
}

// allocOf returns the allocation that a step makes or frees, nil behind the end. of leads from its number to it.
func allocOf(steps []graphir.Step, i int, of func(number uint32) *recording.Allocation) *recording.Allocation {
	if i >= len(steps) {
		return nil
	}
	return of(steps[i].Alloc)
}

func stackOf(a *recording.Allocation) string {
	if a == nil || a.Stack == "" {
		return "nobody knows where"
	}
	return a.Stack
}

// twins are threads which a restored process could not tell apart: their allocations before the capture phase are alike. Graphs
// must not refer to their memory.
type twins struct {
	spec *graphir.Spec
	of   map[uint32]uint32
}

func findTwins(spec *graphir.Spec) twins {
	t := twins{spec: spec}
	if spec.Threaded() {
		t.of = spec.Twins()
	}
	return t
}

// problem returns the reason why the pointer cannot be restored, or "".
func (t twins) problem(p graphir.Pointer) string {
	if len(t.of) == 0 {
		return ""
	}
	if p.Space == graphir.SpaceTensor {
		p = t.spec.Tensors[p.Index].At
	}
	if p.Space != graphir.SpaceAlloc || t.spec.Allocations[p.Index].Owner != graphir.OwnerEngine {
		return ""
	}
	own := t.spec.Allocations[p.Index].Thread
	other, ok := t.of[own]
	// mutant: threads that cannot be told apart
	if !ok {
		return ""
	}
	return fmt.Sprintf("it refers to alloc#%d of thread %d, whose allocations are those of thread %d: which is which a restored process could not tell", p.Index, own, other)
}
