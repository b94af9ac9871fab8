package check

import (
	"bytes"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/digest"
	"medusa/restore/memory"
)

// Earlier is memory of the engine's in a native process, when the phases began that a restored start skips: weights, and memory that
// has no name. A restored start keeps such memory as it was then, whatever a verifying run does after that.
type Earlier struct {
	hasher *hasher
	spans  []span
	ranges []digest.Range
	later  []digest.Range // once that work is done
}

// Remember hashes that memory, as far as it has a place by now.
func Remember(m *memory.Map) (*Earlier, error) {
	e := &Earlier{hasher: newHasher(m)}
	e.hasher.objects = nil // both times in one process: bytes count as they are
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

// Settle hashes that memory once the work is done that a restored start skips. Later calls do nothing: what triggering layers do, a restored
// start does as well.
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

// changed returns the memory that is not as it was, before and after.
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

// owned returns the parts of the span that blocks own, if a framework's allocator divides the memory: nobody counts on the rest.
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
