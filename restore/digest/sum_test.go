package digest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

// Every change that restored memory may plausibly have changes the hash, in about half of the bits of both sums.
func TestSumNotices(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, ChunkBytes)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	for name, size := range map[string]int{"whole": ChunkBytes, "part": 4096, "odd": 1003, "short": 3} {
		good := data[:size]
		want := Sum(good)
		check := func(change string, bad []byte) {
			t.Helper()
			got := Sum(bad)
			for sum := range 2 {
				x := binary.LittleEndian.Uint64(got[8*sum:]) ^ binary.LittleEndian.Uint64(want[8*sum:])
				if n := bits.OnesCount64(x); n < 8 || n > 56 {
					t.Errorf("%s, %s: sum %d changes in %d bits", name, change, sum, n)
				}
			}
		}
		for range 200 {
			bad := bytes.Clone(good)
			bad[r.IntN(size)] ^= 1 << r.IntN(8)
			check("one bit", bad)
		}
		check("zeros", make([]byte, size))
		if size >= 1003 {
			swapped := bytes.Clone(good)
			copy(swapped, good[8:16])
			copy(swapped[8:], good[:8])
			check("two words swapped", swapped)
			check("moved by a word", append(bytes.Clone(good[8:]), good[:8]...))
			check("moved by a byte", append(bytes.Clone(good[1:]), good[0]))
		}
	}
	zeros := Sum(make([]byte, 16))
	for _, size := range []int{1, 8, 15, 17, 24} {
		if bytes.Equal(Sum(make([]byte, size)), zeros) {
			t.Errorf("%d zeros hash as 16", size)
		}
	}
}

// Chunks that differ in a few words, as counters and pointers do, keep apart.
func TestSumKeepsCountersApart(t *testing.T) {
	seen := map[string][2]uint64{}
	for a := range uint64(300) {
		for b := range uint64(300) {
			chunk := make([]byte, 64)
			binary.LittleEndian.PutUint64(chunk[8:], a)
			binary.LittleEndian.PutUint64(chunk[40:], b)
			sum := Sum(chunk)
			for _, half := range []string{string(sum[:8]), string(sum[8:]) + "y"} {
				if other, ok := seen[half]; ok {
					t.Fatalf("(%d, %d) and %v have an equal sum", a, b, other)
				}
				seen[half] = [2]uint64{a, b}
			}
		}
	}
}

// The hashes of a chunk of given bytes, computed by hand-written arithmetic of another language: artifacts keep hashes,
// so they must not change.
func TestSumIsFixed(t *testing.T) {
	zeros := strings.Repeat("\x00", ChunkBytes-1)
	for text, want := range map[string]string{
		"":                          "00000000000000000000000000000000",
		zeros + "\x00":              "6a75330ee9e8932443f809465dab9e4b",
		zeros + "\x01":              "874958cfbb06b6adeaa1ec916c211eee",
		"medusa":                    "a721a5ccd11b73e30e3a09b23f2b079f",
		"the quick brown fox jumps": "5a967fda41d80a21ae40ace8b18b9740",
	} {
		if got := Sum([]byte(text)); hex.EncodeToString(got) != want {
			t.Errorf("%.40q: %s, want %s", text, hex.EncodeToString(got), want)
		}
	}
}
