package slab

import "testing"

// A list that is taken after a Reset holds no old values, and needs no new memory.
func TestReused(t *testing.T) {
	var s Reused[int]
	for range 3 {
		apart(t, s.Take)
		s.Reset()
	}
	if n := testing.AllocsPerRun(10, func() {
		for range 1000 {
			s.One()
		}
		s.Reset()
	}); n > 0 {
		t.Errorf("%v allocations in memory that was there", n)
	}
}
