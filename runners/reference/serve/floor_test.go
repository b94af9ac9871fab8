package serve

import (
	"testing"

	"medusa/runners/reference/engine"
)

// A cache of 4 to 100 bytes, in pages of 4.
func TestWish(t *testing.T) {
	for _, row := range []struct {
		name                                string
		mapped, free, floor, wanted, become uint64
	}{
		{"as much free as is to be", 40, 10, 10, 0, 40},
		{"a byte is missing", 40, 9, 10, 0, 36},
		{"a page is missing", 40, 6, 10, 0, 36},
		{"more than a page is missing", 40, 5, 10, 0, 32},
		{"nothing is free", 40, 0, 10, 0, 28},
		{"the least part stays", 40, 0, 1000, 0, 4},
		{"the least part stays as it is", 4, 0, 1000, 0, 4},
		{"half of the room", 40, 30, 10, 0, 48},
		{"room for one page", 40, 17, 10, 0, 40},
		{"up to its range", 96, 90, 10, 0, 100},
		{"up to what was wanted", 40, 90, 10, 47, 44},
		{"wanted more than there is", 40, 1000, 10, 5000, 100},
		{"has what was wanted", 40, 90, 10, 40, 40},
		{"has more than was wanted", 40, 90, 10, 20, 40},
	} {
		size := engine.KVSize{Range: 100, Least: 4, Mapped: row.mapped, Page: 4}
		if got := wish(size, row.free, row.floor, row.wanted); got != row.become {
			t.Errorf("%s: %d bytes, want %d", row.name, got, row.become)
		}
	}
}
