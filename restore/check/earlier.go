package check

import (
	"bytes"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/digest"
	"medusa/restore/memory"
)

// Earlier holds hashes of the engine's memory in a native process from before the phases that a restored start skips. The memory is weights
// and unnamed memory. A restored start keeps such memory as it was then. Later changes in a verifying run do not matter to it.
type Earlier struct {
	hasher *hasher
	spans  []span
	ranges []digest.Range
	later  []digest.Range // after the skipped work
}

// Remember hashes such memory if it has an address by now.
func Remember(m *memory.Map) (*Earlier, error) {
	e := &Earlier{hasher: newHasher(m)}
	e.hasher.objects = nil // both hashes are of one process: addresses need no translation
	m.PlaceMarked()
	blocks, err := m.Blocks()
	if err != nil {
		return nil, err
	}
	for _, span := range spansOf(m.Spec) {
		switch {
		case m.Base[span.alloc] == 0: // of the capture phase
		case span.class == digest.Weight:
			e.spans = append(e.spans, span)
		case span.class == digest.Other:
			e.spans = append(e.spans, span.owned(blocks)...)
		}
	}
	if err = cuda.Synchronize(); err == nil {
		e.ranges, err = e.hash()
	}
	return e, err
}

// Settle hashes the memory again after the work that a restored start skips. Later calls have no effect: a restored start
// runs the triggering layers, too.
func (e *Earlier) Settle() (err error) {
	if e.later != nil {
		return nil
	}
	if err = cuda.Synchronize(); err == nil {
		e.later, err = e.hash()
	}
	return err
}

func (e *Earlier) hash() ([]digest.Range, error) {
	return e.hasher.hash(e.spans, make([]*known, len(e.spans)))
}

// changed returns the memory that has changed, with the hashes before and after.
func (e *Earlier) changed() ([]digest.Range, error) {
	if err := e.Settle(); err != nil {
		return nil, err
	}
	var changed []digest.Range
	for i := range e.ranges {
		// mutant: memory that skipped work changes
		if !bytes.Equal(e.ranges[i].First, e.later[i].First) {
			e.ranges[i].Second = e.later[i].First
			changed = append(changed, e.ranges[i])
		}
	}
	return changed, nil
}

// owned returns the parts of the span that blocks own, if a framework's allocator divides the memory. No code relies on the rest.
func (s span) owned(blocks []graphir.Block) []span {
	var parts []span
	suballocated := false
	for _, b := range blocks {
		if b.Alloc != s.alloc {
			continue
		}
		suballocated = true
		from, to := max(s.offset, b.Offset), min(s.offset+s.size, b.Offset+b.Size)
		// mutant: memory that no block owns
		if b.Live && from < to {
			part := s
			part.offset, part.size = from, to-from
			parts = append(parts, part)
		}
	}
	if !suballocated {
		return []span{s}
	}
	return parts
}
