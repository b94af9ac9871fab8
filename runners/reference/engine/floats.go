package engine

import (
	"encoding/binary"
	"math"

	"medusa/runners/reference/kernels"
)

// floats reads elements of a storage type.
func floats(raw []byte, s kernels.Storage) []float32 {
	var out []float32
	if s == kernels.F32 {
		for i := 0; i < len(raw); i += 4 {
			out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(raw[i:])))
		}
		return out
	}
	for i := 0; i < len(raw); i += 2 {
		out = append(out, half(binary.LittleEndian.Uint16(raw[i:])))
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
