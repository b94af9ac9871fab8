// Package slab allocates many small things of one type at once, which costs less than one allocation each.
//
// In: how many are needed. Out: zeroed memory. Fails: never. Things that share an allocation are freed together, so a slab is
// for things that live about as long as each other. If all of them end at one known moment, Reused needs no new memory for the
// next.
package slab

import "unsafe"

// bytesAtOnce is the largest size that Go's allocator has a class for. It takes about as long for each slab, whatever its size.
const bytesAtOnce = 32 << 10

func atOnce[T any]() int {
	var one T
	return bytesAtOnce / max(1, int(unsafe.Sizeof(one)))
}

// Of hands out things of one type. Its zero value is ready for use.
type Of[T any] struct{ left []T }

// Take returns n things, and no room to append to them.
func (s *Of[T]) Take(n int) []T {
	if n > len(s.left) {
		s.left = make([]T, max(n, atOnce[T]()))
	}
	out := s.left[:n:n]
	s.left = s.left[n:]
	return out
}

// One returns one thing.
func (s *Of[T]) One() *T { return &s.Take(1)[0] }

// Clone returns a copy of list.
func (s *Of[T]) Clone(list []T) []T {
	out := s.Take(len(list))
	copy(out, list)
	return out
}
