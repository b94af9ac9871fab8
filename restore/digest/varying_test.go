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

func TestBound(t *testing.T) {
	many := func(values ...float32) (data [][]byte) {
		for _, v := range values {
			data = append(data, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		}
		return data
	}
	for _, tt := range []struct {
		name          string
		first, second [][]byte
		want          float64
	}{
		{"two orders", many(1, 1.5, 1), many(1, 1.5, 1), 1},
		{"an order that only the second fill shows", many(1, 1, 1), many(1, 1, 1.5), 1},
		{"a wider sum among the second", many(1, 1.5, 1), many(1, 2, 1), 2},
		{"other garbage", many(1, 1, 1), many(7, 7, 7), math.Inf(1)},
		{"other garbage, in an open order", many(1, 1.5, 1), many(7, 7.5, 7), math.Inf(1)},
		{"garbage that is no number", many(1, 1.5, 1), many(1, float32(math.NaN()), 1), math.Inf(1)},
	} {
		if got := Bound(graphir.F32, tt.first, tt.second); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
