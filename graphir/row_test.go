package graphir

import (
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of every length are read as the format says, with any bytes after them, and so are those that
// are longer than they need to be.
func TestVarint(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		b := protowire.AppendVarint(nil, random.Uint64()>>random.IntN(64))
		if random.IntN(4) == 0 && len(b) < 9 {
			b[len(b)-1] |= 0x80
			b = append(b, 0)
		}
		want, size := protowire.ConsumeVarint(b)
		for range random.IntN(10) {
			b = append(b, byte(random.Uint32()))
		}
		if got, n := varint(b); got != want || n != size {
			t.Fatalf("%x: %d in %d bytes, want %d in %d", b, got, n, want, size)
		}
	}
	for _, b := range [][]byte{nil, {0x80}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80}} {
		if _, n := varint(b); n >= 0 {
			t.Errorf("%x: %d bytes", b, n)
		}
	}
}
