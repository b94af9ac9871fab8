package digest

import (
	"encoding/binary"
	"math"

	"medusa/graphir"
)

// Varying is a chunk of floating-point results that differ from replay to replay on equal memory, as sums do whose order is open.
type Varying struct {
	Chunk int           `json:"chunk"`
	DType graphir.DType `json:"dtype"`
	// Values are its bytes after one native replay, or after each restored one.
	Values [][]byte `json:"values"`
	// Bound is the most by which a number may differ from one native replay to another (check-native).
	Bound float64 `json:"bound,omitempty"`
}

// VaryingAt returns the entry of chunk i, or nil.
func (r *Range) VaryingAt(i int) *Varying {
	for k := range r.Varying {
		if r.Varying[k].Chunk == i {
			return &r.Varying[k]
		}
	}
	return nil
}

// Within reports whether numbers differ from those of a native replay by at most Bound.
func (v *Varying) Within(data []byte) bool { return Distance(v.DType, v.Values[0], data) <= v.Bound }

// unseen is the factor by which other replays may differ more than the measured ones: the largest of a
// few distances is no bound of all.
const unseen = 2

// Bound returns the most by which results may differ between replays. first and second are replays on memory that was filled in two
// ways. Replays on equally filled memory measure the bound. If results differ by more between the two ways, they depend on memory
// that has not been written, and the bound is infinite.
func Bound(t graphir.DType, first, second [][]byte) float64 {
	most := 0.0
	for _, equal := range [][][]byte{first, second} {
		for i, a := range equal {
			for _, b := range equal[:i] {
				most = max(most, Distance(t, a, b))
			}
		}
	}
	most *= unseen
	for _, b := range second {
		// mutant: results that vary with garbage
		if Distance(t, first[0], b) > most {
			return math.Inf(1)
		}
	}
	return most
}

// Distance is the largest difference between two numbers at the same place: infinite if one is not a number.
func Distance(t graphir.DType, a, b []byte) float64 {
	size := 2
	if t == graphir.F32 {
		size = 4
	}
	if len(a) != len(b) {
		return math.Inf(1)
	}
	most := 0.0
	for at := 0; at+size <= len(a); at += size {
		d := math.Abs(number(t, a[at:]) - number(t, b[at:]))
		// mutant: distance from what is no number
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		most = max(most, d)
	}
	return most
}

// number decodes the first number of the data.
func number(t graphir.DType, data []byte) float64 {
	switch t {
	case graphir.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(data)))
	case graphir.BF16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(data)) << 16))
	case graphir.F16:
		return half(binary.LittleEndian.Uint16(data))
	}
	return math.NaN()
}

// half is a number in IEEE half precision.
func half(bits uint16) float64 {
	exponent, fraction := int(bits>>10&0x1f), float64(bits&0x3ff)
	v := math.NaN() // or infinite: no result
	switch {
	case exponent == 0:
		v = math.Ldexp(fraction, -24)
	case exponent < 0x1f:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if bits>>15 != 0 {
		v = -v
	}
	return v
}
