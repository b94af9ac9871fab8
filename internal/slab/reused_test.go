package slab

import "testing"

// What a list holds says nothing of the lists before and after it, nor of those that were taken back.
func TestReused(t *testing.T) {
	var s Reused[int]
	round := func() {
		var all [][]int
		for n := range 60 {
			for range 40 {
				all = append(all, s.Take(n))
			}
		}
		all = append(all, s.Take(2*bytesAtOnce)) // more than a slab
		for i, list := range all {
			for k := range list {
				if list[k] != 0 {
					t.Fatalf("list %d begins with %d", i, list[k])
				}
				list[k] = i + 1
			}
			_ = append(list, -1)
		}
		for i, list := range all {
			for k := range list {
				if list[k] != i+1 {
					t.Fatalf("list %d has an entry of list %d", i, list[k]-1)
				}
			}
		}
	}
	for range 3 {
		round()
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
