package graphir

import (
	"cmp"
	"slices"
)

// Frees without an allocation between them leave the same memory in any order. Allocators that give back all that they have kept free it in the order
// of addresses, among them addresses of streams (torch's emptyCache). Addresses do not repeat, so the order of such frees is not compared.

// ordered is a step whose place among frees is given by the allocation that it frees.
type ordered interface {
	freed() (place uint32, free bool)
}

func (s Step) freed() (uint32, bool)       { return s.Alloc, s.Free }
func (s ThreadStep) freed() (uint32, bool) { return uint32(s.Order), s.Free }

// OrderFrees returns the steps with frees that follow each other in the order of their allocations.
func OrderFrees[S ordered](steps []S) []S {
	out := slices.Clone(steps)
	for i := 0; i < len(out); i++ {
		end := i
		for end < len(out) && isFree(out[end]) {
			end++
		}
		// mutant: frees that follow each other
		slices.SortFunc(out[i:end], func(a, b S) int {
			x, _ := a.freed()
			y, _ := b.freed()
			return cmp.Compare(x, y)
		})
		i = end
	}
	return out
}

// Begins compares the steps of short with the first ones of long, in both of which frees are ordered, and returns how many of short and how many of long
// it has gone through: all of short, if long begins with it. Frees behind the last allocation of short may be any of those at that place in long.
func Begins[S ordered](long, short []S, same func(long, short S) bool) (inLong, inShort int) {
	last := len(short)
	for last > 0 && isFree(short[last-1]) {
		last--
	}
	i, j := 0, 0
	for ; j < len(short); i, j = i+1, j+1 {
		// mutant: frees at the end that long has besides
		for j >= last && i < len(long) && isFree(long[i]) && !same(long[i], short[j]) {
			i++
		}
		if i == len(long) || !same(long[i], short[j]) {
			break
		}
	}
	return i, j
}

func isFree[S ordered](s S) bool {
	_, free := s.freed()
	return free
}
