package checkpoints

import (
	"math"
	"testing"
)

// Numbers between two of 16 bits, and those whose exponent is too small or too large.
func TestHalf(t *testing.T) {
	for _, c := range []struct {
		in   float32
		want uint16
	}{
		{0, 0}, {-2, 0xc000}, {1, 0x3c00}, {1.0009765625, 0x3c01}, {1.00048828125, 0x3c00}, {1.00146484375, 0x3c02}, {1.0004884, 0x3c01},
		{65504, 0x7bff}, {65519, 0x7bff}, {65520, 0x7c00}, {-1e6, 0xfc00}, {6.1035156e-5, 0x0400}, {6.097555e-5, 0x03ff}, {5.9604645e-8, 1}, {2.9802322e-8, 0}, {8.940697e-8, 2},
	} {
		if got := half(math.Float32bits(c.in)); got != c.want {
			t.Errorf("%g is %#x, want %#x", c.in, got, c.want)
		}
	}
}
