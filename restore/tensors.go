package restore

import (
	"fmt"

	"medusa/graphir"
)

// tensorPlace is where a named tensor lies in this process.
type tensorPlace struct{ addr, size uint64 }

// Place states where a named tensor lies, for engines whose own allocator divides driver allocations: equal sequences of
// those do not make equal places inside them. Graphs then restores only where every engine-owned tensor of the artifact
// was stated and lies at its recorded offset. Engines that name allocations as a whole need not call it.
func (s *Session) Place(name string, addr, size uint64) {
	if s.places == nil {
		s.places = make(map[string]tensorPlace)
	}
	s.places[name] = tensorPlace{addr, size}
}

// comparePlaces checks what Place stated.
func (s *Session) comparePlaces(m *memory) error {
	if s.places == nil {
		return nil
	}
	for i := range s.spec.Tensors {
		t := &s.spec.Tensors[i]
		if t.At.Space != graphir.SpaceAlloc || s.spec.Allocations[t.At.Alloc].Owner != graphir.OwnerEngine {
			continue
		}
		got, ok := s.places[t.Name]
		if !ok {
			return fmt.Errorf("compare places: the engine did not name tensor %s", t.Name)
		}
		want, err := m.address(t.At)
		if err != nil {
			return fmt.Errorf("compare place of tensor %s: %w", t.Name, err)
		}
		if got.addr != want || got.size != t.Size {
			return fmt.Errorf("compare places: tensor %s is %d bytes at %#x, recorded %d bytes at what is %#x here (the framework's allocator placed it elsewhere)",
				t.Name, got.size, got.addr, t.Size, want)
		}
	}
	return nil
}
