package graphir

// Engines pin host memory for copies. Their allocators use a block again once its copy has ended, so how often they ask the driver for a
// block depends on time. The rest of a start does not. Page-locked memory therefore counts in a sequence of allocations only if
// referenced memory has its size.

// Repeats returns a function that reports whether allocations of a kind and size have to come in the recorded order.
func (s *Spec) Repeats() func(kind AllocKind, size uint64) bool {
	sizes, used := map[uint64]bool{}, s.Referenced()
	for i := range s.Allocations {
		// mutant: page-locked memory that something refers to
		if a := &s.Allocations[i]; a.Kind == AllocPinned && used[i] {
			sizes[a.Size] = true
		}
	}
	return func(kind AllocKind, size uint64) bool { return kind != AllocPinned || sizes[size] }
}

// Repeating returns the steps that have to come in the recorded order, in every process.
func (s *Spec) Repeating() []Step {
	repeats := s.Repeats()
	var out []Step
	for _, step := range s.Sequence {
		if a := &s.Allocations[step.Alloc]; repeats(a.Kind, a.Size) {
			out = append(out, step)
		}
	}
	return out
}
