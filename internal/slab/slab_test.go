package slab

import "testing"

// apart takes many lists and checks that they are zeroed and do not share memory.
func apart(t *testing.T, take func(n int) []int) {
	t.Helper()
	var all [][]int
	for n := range 60 {
		for range 40 {
			all = append(all, take(n))
		}
	}
	all = append(all, take(2*bytesAtOnce)) // more than a slab
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

func TestThingsDoNotOverlap(t *testing.T) {
	var s Of[int]
	apart(t, s.Take)
}
