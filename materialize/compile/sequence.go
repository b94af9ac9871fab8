package compile

import (
	"fmt"

	"medusa/materialize/recording"
)

// SequenceError is the first place where two runs did not allocate and free alike, neither in all nor by thread. The
// stacks are those of the calls (of a free: of its allocation), as far as they were recorded.
type SequenceError struct {
	Step           int
	A, B           string
	StackA, StackB string
}

func (e *SequenceError) Error() string {
	return fmt.Sprintf("compare allocation sequences: step %d: %s in record-a (called from %s), %s in record-b (called from %s); the engine's control flow must repeat, in all or by thread",
		e.Step, e.A, e.StackA, e.B, e.StackB)
}

// compareSequences demands the same allocations and frees in the same order (paper §3: control flow is deterministic).
func compareSequences(a, b *recording.Recording) error {
	for i := range max(len(a.Steps), len(b.Steps)) {
		sa, sb := describeStep(a, i), describeStep(b, i)
		if sa != sb {
			return &SequenceError{i, sa, sb, stackOf(a, i), stackOf(b, i)}
		}
	}
	return nil
}

func stackOf(r *recording.Recording, step int) string {
	if step >= len(r.Steps) || r.Allocs[r.Steps[step].Alloc].Stack == "" {
		return "nobody knows where"
	}
	return r.Allocs[r.Steps[step].Alloc].Stack
}

func describeStep(r *recording.Recording, i int) string {
	if i >= len(r.Steps) {
		return "nothing"
	}
	s := r.Steps[i]
	if s.Free {
		return fmt.Sprintf("free of alloc#%d", s.Alloc)
	}
	al := r.Allocs[s.Alloc]
	return fmt.Sprintf("alloc#%d of kind %d, %d bytes", s.Alloc, al.Kind, al.Size)
}
