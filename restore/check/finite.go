package check

import (
	"encoding/binary"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/digest"
)

// exponents returns the bits of the exponents in a word of 32 bits: those of two numbers, or twice those of one.
func exponents(t graphir.DType) (low, high uint32, ok bool) {
	switch t {
	case graphir.F32:
		return 0x7f800000, 0x7f800000, true
	case graphir.F16:
		return 0x7c00, 0x7c000000, true
	case graphir.BF16:
		return 0x7f80, 0x7f800000, true
	}
	return 0, 0, false
}

// findNotFinite notes which chunks of the floating-point results that a replay has just left hold a NaN or an infinity. Such results
// could be equal even if the graph computed wrongly.
func (c *Checker) findNotFinite(graph int, out *digest.Graph) error {
	for i := range out.Ranges {
		r := &out.Ranges[i]
		low, high, ok := exponents(c.resultType(r))
		if !ok || len(r.Written) == 0 {
			continue
		}
		s, err := c.spanOf(r), error(nil)
		if s.handed != 0 {
			err = c.findInResults(graph, s, r)
		} else {
			r.NotFinite, err = c.hasher.notFinite(s, r.Written.Has, low, high)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// findInResults checks a graph's own results in memory that graphs hand on. The bytes that the graph leaves in results of other graphs
// are scratch, and need not be numbers.
func (c *Checker) findInResults(graph int, s *span, r *digest.Range) error {
	for _, part := range resultsIn(c.spec, uint32(graph), s) {
		low, high, _ := exponents(part.handed)
		of := func(k int) (first, last int) { // the chunks of the range that one of the part lies in
			offset, size := part.piece(k)
			return int((offset - s.offset) / s.chunk), int((offset - s.offset + size - 1) / s.chunk)
		}
		bits, err := c.hasher.notFinite(&part, func(k int) bool {
			first, last := of(k)
			// mutant: results that a graph has not written
			return r.Written.Has(first) || r.Written.Has(last)
		}, low, high)
		if err != nil {
			return err
		}
		for k := range int(part.chunks()) {
			if bits.Has(k) {
				first, _ := of(k)
				r.NotFinite.Add(first)
			}
		}
	}
	return nil
}

// resultsIn returns the parts of a span of handed memory that are results of a graph.
func resultsIn(spec *graphir.Spec, graph uint32, s *span) (parts []span) {
	for i := range spec.Tensors {
		t := &spec.Tensors[i]
		if t.At.Space != graphir.SpaceAlloc || t.At.Index != s.alloc || t.Role != graphir.RoleOutput || !t.DType.Float() {
			continue
		}
		// mutant: results of other graphs
		if len(t.Graphs) > 0 && !slices.Contains(t.Graphs, graph) {
			continue
		}
		from, to := max(t.At.Offset, s.offset), min(t.At.Offset+t.Size, s.offset+s.size)
		if from < to {
			parts = append(parts, span{alloc: s.alloc, offset: from, size: to - from, class: s.class, tensor: noTensor, stride: 1, handed: t.DType, chunk: digest.ChunkBytes})
		}
	}
	return parts
}

// spanOf returns the span that a range was hashed from.
func (c *Checker) spanOf(r *digest.Range) *span {
	for i := range c.spans {
		if s := &c.spans[i]; s.alloc == r.Alloc && s.offset == r.Offset && s.class == r.Class {
			return s
		}
	}
	panic(fmt.Sprintf("find the span of allocation %d + %d", r.Alloc, r.Offset))
}

// notFinite checks the wanted chunks of a span.
func (h *hasher) notFinite(s *span, wanted func(chunk int) bool, low, high uint32) (bits digest.Bits, err error) {
	if h.device != nil && h.readable(s) {
		all, err := h.device.NotFinite(h.onDevice(s), low, high)
		if err != nil {
			return nil, err
		}
		for k := range int(s.chunks()) {
			if all.Has(k) && wanted(k) {
				bits.Add(k)
			}
		}
		return bits, nil
	}
	for k := range int(s.chunks()) {
		if !wanted(k) {
			continue
		}
		offset, size := s.piece(k)
		data := make([]byte, size)
		if err := h.read(data, cuda.DevicePtr(h.base[s.alloc]+offset)); err != nil {
			return nil, fmt.Errorf("read allocation %d + %d: %w", s.alloc, offset, err)
		}
		if anyNotFinite(data, low, high) {
			bits.Add(k)
		}
	}
	return bits, nil
}

func anyNotFinite(data []byte, low, high uint32) bool {
	for ; len(data) >= 4; data = data[4:] {
		if word := binary.LittleEndian.Uint32(data); word&low == low || word&high == high {
			return true
		}
	}
	return len(data) >= 2 && uint32(binary.LittleEndian.Uint16(data))&low == low
}
