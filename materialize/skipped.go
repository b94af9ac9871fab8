package materialize

import (
	"fmt"

	"medusa/restore/digest"
)

// SkippedError is memory that the engine changes between warm-up and ready and that counts as fixed. A restored start skips that work, so
// its graphs would read the bytes that were there before.
type SkippedError struct {
	Name   string // of the tensor; empty: memory without a name
	Alloc  uint32
	Offset uint64 // of the first chunk that changes, in the allocation
	Size   uint64
}

func (e *SkippedError) Error() string {
	what := fmt.Sprintf("weight %q", e.Name)
	if e.Name == "" {
		what = "memory without a name"
	}
	return fmt.Sprintf("verify memory at warm-up: %s (alloc#%d bytes %d to %d) changes before ready, by work that a restored start skips (name it as an input if the engine writes it before each replay, or write it before warm-up)",
		what, e.Alloc, e.Offset, e.Offset+e.Size)
}

// skipped returns the first such memory that check-native found.
func skipped(native *digest.Digest) error {
	for i := range native.Skipped {
		r := &native.Skipped[i]
		for c := range r.Chunks() {
			if !r.Stable(c) {
				offset, size := r.Span(c)
				return &SkippedError{r.Name, r.Alloc, offset, size}
			}
		}
	}
	return nil
}
