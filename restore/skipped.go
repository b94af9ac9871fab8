package restore

import (
	"bytes"
	"errors"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/digest"
)

// earlier is memory of the engine's as it was in run N when the phases began that a restored start skips: weights, and memory that
// has no name. A restored start keeps such memory as it was then, whatever a verifying run does after that.
type earlier struct {
	hasher *hasher
	spans  []span
	ranges []digest.Range
	err    error
}

// remember hashes that memory. An error waits for Ready: phases cannot fail.
func (s *Session) remember() *earlier {
	e := &earlier{}
	e.err = guarded(func() error { return s.hashEarlier(e) })
	return e
}

func (s *Session) hashEarlier(e *earlier) error {
	if s.opened(); s.spec == nil {
		return s.fallback
	}
	steps, err := sequence()
	if err != nil {
		return err
	}
	allocs, err := allocations()
	if err != nil {
		return err
	}
	if allocs, err = s.align(steps, allocs, false); err != nil {
		return err
	}
	m := engineMemory(s.spec, allocs)
	for i := range s.spec.Tensors {
		if object := s.spec.Object(graphir.SpaceTensor, uint32(i)); m.base[object] == 0 {
			m.base[object] = s.placeOf(&s.spec.Tensors[i]).addr
		}
	}
	blocks, err := s.blocks()
	if err != nil {
		return err
	}
	for _, span := range spansOf(s.spec) {
		switch {
		case m.base[span.alloc] == 0: // of the capture phase
		case span.class == digest.Weight:
			e.spans = append(e.spans, span)
		case span.class == digest.Other:
			e.spans = append(e.spans, span.owned(blocks)...)
		}
	}
	e.hasher = newHasher(m)
	e.hasher.objects = nil // both times in one process: bytes count as they are
	return errors.Join(cuda.Synchronize(), e.hash(&e.ranges))
}

func (e *earlier) hash(to *[]digest.Range) (err error) {
	*to, err = e.hasher.hash(e.spans, make([]*known, len(e.spans)))
	return err
}

// changed returns the memory that is not as it was.
func (e *earlier) changed() ([]digest.Range, error) {
	var now, changed []digest.Range
	if e.err != nil {
		return nil, e.err
	}
	if err := e.hash(&now); err != nil {
		return nil, err
	}
	for i := range e.ranges {
		// mutant: memory that skipped work changes
		if !bytes.Equal(e.ranges[i].First, now[i].First) {
			e.ranges[i].Second = now[i].First
			changed = append(changed, e.ranges[i])
		}
	}
	return changed, nil
}

// owned returns the parts of the span that blocks own, if a framework's allocator divides the memory: nobody counts on the rest.
func (s span) owned(blocks []graphir.Block) []span {
	var parts []span
	divided := false
	for _, b := range blocks {
		if b.Alloc != s.alloc {
			continue
		}
		divided = true
		from, to := max(s.offset, b.Offset), min(s.offset+s.size, b.Offset+b.Size)
		// mutant: memory that no block owns
		if b.Live && from < to {
			part := s
			part.offset, part.size = from, to-from
			parts = append(parts, part)
		}
	}
	if !divided {
		return []span{s}
	}
	return parts
}
