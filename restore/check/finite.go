package check

import (
	"encoding/binary"
	"fmt"

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

// findNotFinite notes which chunks of the floating-point results that a replay has just left hold a NaN or an infinity: such
// results could be equal whatever the graph had computed.
func (c *Checker) findNotFinite(out *digest.Graph) error {
	for i := range out.Ranges {
		r := &out.Ranges[i]
		low, high, ok := exponents(c.resultType(r))
		if !ok || len(r.Written) == 0 {
			continue
		}
		bits, err := c.hasher.notFinite(c.spanOf(r), r, low, high)
		if err != nil {
			return err
		}
		r.NotFinite = bits
	}
	return nil
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

// notFinite looks at the written chunks of a range.
func (h *hasher) notFinite(s *span, r *digest.Range, low, high uint32) (bits digest.Bits, err error) {
	if h.device != nil && h.readable(s) {
		all, err := h.device.NotFinite(h.onDevice(s), low, high)
		if err != nil {
			return nil, err
		}
		for c := range r.Chunks() {
			if all.Has(c) && r.Written.Has(c) {
				bits.Add(c)
			}
		}
		return bits, nil
	}
	for c := range r.Chunks() {
		if !r.Written.Has(c) {
			continue
		}
		offset, size := r.Span(c)
		data := make([]byte, size)
		if err := h.read(data, cuda.DevicePtr(h.base[s.alloc]+offset)); err != nil {
			return nil, fmt.Errorf("read allocation %d + %d: %w", s.alloc, offset, err)
		}
		if anyNotFinite(data, low, high) {
			bits.Add(c)
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
