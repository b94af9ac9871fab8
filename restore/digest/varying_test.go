package digest

import (
	"encoding/binary"
	"math"
	"testing"

	"medusa/graphir"
)

func TestDistance(t *testing.T) {
	floats := func(values ...float32) (data []byte) {
		for _, v := range values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		return data
	}
	nan := float32(math.NaN())
	for _, tt := range []struct {
		name string
		t    graphir.DType
		a, b []byte
		want float64
	}{
		{"equal", graphir.F32, floats(1, -2), floats(1, -2), 0},
		{"the largest", graphir.F32, floats(1, -2, 3), floats(1.5, -4, 3), 2},
		{"no number", graphir.F32, floats(1, nan), floats(1, nan), math.Inf(1)},
		{"other numbers", graphir.F32, floats(1), floats(1, 2), math.Inf(1)},
		{"bfloat16", graphir.BF16, []byte{0x80, 0x3f, 0x00, 0xc0}, []byte{0x80, 0x3f, 0x40, 0xc0}, 1}, // 1, -2 and 1, -3
		{"half", graphir.F16, []byte{0x00, 0x3c, 0x01, 0x00}, []byte{0x00, 0xbc, 0x01, 0x00}, 2},      // 1, 2^-24 and -1, 2^-24
		{"half, infinite", graphir.F16, []byte{0x00, 0x7c}, []byte{0x00, 0x7c}, math.Inf(1)},
	} {
		if got := Distance(tt.t, tt.a, tt.b); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	v := Varying{DType: graphir.F32, Values: [][]byte{floats(1, 2)}, Bound: 0.5}
	if !v.Within(floats(1.5, 2)) || v.Within(floats(1, 2.75)) || v.Within(floats(1, nan)) {
		t.Error("a bound of 0.5 is not kept")
	}
}
