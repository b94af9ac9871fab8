package slab

// Reused hands out things of one type, until Reset takes all of them back to hand their memory out again. Its zero value is ready
// for use.
type Reused[T any] struct {
	slabs [][]T
	next  int // slab to use after this one
	left  []T
}

// Take returns n things, and no room to append to them.
func (s *Reused[T]) Take(n int) []T {
	for n > len(s.left) {
		if s.next == len(s.slabs) {
			s.slabs = append(s.slabs, make([]T, max(n, atOnce[T]())))
		}
		s.left = s.slabs[s.next]
		s.next++
	}
	out := s.left[:n:n]
	s.left = s.left[n:]
	return out
}

// One returns one thing.
func (s *Reused[T]) One() *T { return &s.Take(1)[0] }

// Reset takes everything back: it must not be used any more.
func (s *Reused[T]) Reset() {
	for _, used := range s.slabs[:s.next] {
		// mutant: memory that held other things
		clear(used)
	}
	s.next, s.left = 0, nil
}
