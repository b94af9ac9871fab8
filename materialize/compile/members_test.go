package compile

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Neighbours in sets of all sizes, against a search through a list.
func TestMembers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []int{0, 1, 63, 64, 65, 128, 4096, 4097, 300_000} {
		m := newMembers(limit)
		var in []int
		for range min(limit, 40) {
			i := rng.IntN(limit)
			if at, known := slices.BinarySearch(in, i); !known {
				in = slices.Insert(in, at, i)
				m.add(i)
			} else if rng.IntN(2) == 0 {
				in = slices.Delete(in, at, at+1)
				m.remove(i)
			}
			if len(in) > 0 && rng.IntN(4) == 0 {
				m.remove(in[0])
				in = in[1:]
			}
			for range 20 {
				i := rng.IntN(limit + 1)
				at, _ := slices.BinarySearch(in, i)
				before, from := -1, -1
				if at > 0 {
					before = in[at-1]
				}
				if at < len(in) {
					from = in[at]
				}
				if b, f := m.before(i), m.from(i); b != before || f != from {
					t.Fatalf("limit %d, %v: before %d is %d, want %d; from it %d, want %d", limit, in, i, b, before, f, from)
				}
			}
		}
		if m.before(limit) != slices.Max(append([]int{-1}, in...)) {
			t.Errorf("limit %d: the last is %d of %v", limit, m.before(limit), in)
		}
	}
}
