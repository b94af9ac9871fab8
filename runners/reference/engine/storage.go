package engine

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"medusa/runners/reference/kernels"
	"medusa/runners/reference/marks"
	"medusa/runners/reference/safetensors"
)

// element is the engine's view of a storage type.
type element struct {
	name safetensors.DType
	size uint64 // bytes
	mark marks.DType
	blas uintptr // vblasDataType_t

	// exponent has the bits of an element's exponent, and one is the lowest of them. An element whose exponent is all ones is
	// infinite or no number.
	exponent, one uint64
}

var elements = [...]element{
	kernels.F32:  {safetensors.F32, 4, marks.F32, 0, 0x7f800000, 0x00800000},
	kernels.F16:  {safetensors.F16, 2, marks.F16, 1, 0x7c00, 0x0400},
	kernels.BF16: {safetensors.BF16, 2, marks.BF16, 2, 0x7f80, 0x0080},
}

// floats reads elements of a storage type.
func floats(raw []byte, s kernels.Storage) []float32 {
	size := int(elements[s].size)
	out := make([]float32, len(raw)/size)
	for i := range out {
		at := raw[i*size:]
		switch s {
		case kernels.F32:
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(at))
		case kernels.F16:
			out[i] = half(binary.LittleEndian.Uint16(at))
		case kernels.BF16:
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(at)) << 16)
		}
	}
	return out
}

// half is the value of an IEEE 754 binary16.
func half(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exponent {
	case 0:
		// Subnormal: fraction units of 2^-24, exact in a float32.
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)/(1<<24)))
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// notFinite returns the index of the first element that is infinite or no number, or -1. Weights pass through it while they are
// loaded, so it looks at eight bytes at once: adding the exponent's lowest bit to an exponent of all ones carries into the place of
// the sign, which was masked, and no further.
func notFinite(raw []byte, s kernels.Storage) int {
	e := elements[s]
	lanes := uint64(0x0001000100010001)
	if e.size == 4 {
		lanes = 0x0000000100000001
	}
	exponent, one, carry := lanes*e.exponent, lanes*e.one, lanes*(e.exponent+e.one)
	word := binary.LittleEndian.Uint64
	from := 0
	for ; from+step <= len(raw); from += step {
		b := raw[from : from+step : from+step]
		all := ((word(b) & exponent) + one) | ((word(b[8:]) & exponent) + one) |
			((word(b[16:]) & exponent) + one) | ((word(b[24:]) & exponent) + one) |
			((word(b[32:]) & exponent) + one) | ((word(b[40:]) & exponent) + one) |
			((word(b[48:]) & exponent) + one) | ((word(b[56:]) & exponent) + one)
		if all&carry != 0 {
			return firstNotFinite(raw, s, from)
		}
	}
	return firstNotFinite(raw, s, from)
}

// step is the number of bytes that notFinite looks at before it decides.
const step = 64

// firstNotFinite looks at the elements of the step that begins at a byte, one after the other.
func firstNotFinite(raw []byte, s kernels.Storage, from int) int {
	for i, v := range floats(raw[from:min(len(raw), from+step)], s) {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return from/int(elements[s].size) + i
		}
	}
	return -1
}

// change makes each element larger by a sixteenth to a quarter, or smaller if it would be infinite. So no element keeps its value, and none leaves its
// range: results stay numbers. The same bytes always change alike.
func change(raw []byte, s kernels.Storage) {
	e, r := elements[s], rand.New(rand.NewPCG(1, 2))
	for at := uint64(0); at+e.size <= uint64(len(raw)); at += e.size {
		var word [8]byte
		copy(word[:], raw[at:at+e.size])
		v := binary.LittleEndian.Uint64(word[:])
		by := (1 + r.Uint64N(4)) * e.one / 16
		if (v+by)&e.exponent == e.exponent {
			v -= by
		} else {
			v += by
		}
		binary.LittleEndian.PutUint64(word[:], v)
		copy(raw[at:at+e.size], word[:e.size])
	}
}
