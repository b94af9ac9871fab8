package slab

import "testing"

func TestThingsDoNotOverlap(t *testing.T) {
	var s Of[int]
	var all [][]int
	for n := range 60 {
		for range 40 {
			all = append(all, s.Take(n))
		}
	}
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
