// Package memory says where the memory of an artifact lies in this process: it resolves indirect index pointers.
//
// In: a graphir.Spec and the allocations of this process, whose order has to be the recorded one. Out: addresses by index, saved bytes with
// their pointers resolved. Fails: if the engine has allocated otherwise than when it was recorded, and for a
// pointer to memory that does not exist here.
package memory

import (
	"fmt"

	"medusa/graphir"
	"medusa/restore/live"
)

// Map leads from the objects of an artifact to addresses of this process.
type Map struct {
	Spec     *graphir.Spec
	Base     []uint64          // by object (graphir.Spec.Object); 0 if it does not exist in this process
	byName   map[string]int    // of tensors
	recorded map[uint32]uint32 // recorded index of this process's allocations; nil: the same
}

// OfEngine finds the engine's allocations, once their order in this process proves to be the recorded one: up to the capture phase, or, for
// whole, with it.
func OfEngine(spec *graphir.Spec, whole bool) (*Map, error) {
	steps, err := live.Sequence()
	if err != nil {
		return nil, err
	}
	allocs, err := live.Allocations()
	if err != nil {
		return nil, err
	}
	allocs, recorded, err := align(spec, steps, allocs, whole)
	if err != nil {
		return nil, err
	}
	m := engineMap(spec, allocs)
	m.recorded = recorded
	return m, m.checkContiguous()
}

// engineMap takes the engine-owned addresses from the replayed sequence.
func engineMap(spec *graphir.Spec, allocs []live.Alloc) *Map {
	m := &Map{Spec: spec, Base: make([]uint64, spec.Objects())}
	for i, a := range allocs {
		// mutant: memory that is gone has no address
		if i < len(spec.Allocations) && a.Live != 0 {
			m.Base[i] = a.Addr
		}
	}
	return m
}

// Address resolves an indirect index pointer (paper §4.2).
func (m *Map) Address(p graphir.Pointer) (uint64, error) {
	base := m.Base[m.Spec.Target(p)]
	// mutant: pointer to what does not exist
	if base == 0 {
		return 0, fmt.Errorf("resolve pointer to %s: it does not exist in this process", p)
	}
	// mutant: relocation if a base is not honoured
	return base + p.Offset, nil
}

// checkContiguous checks that the engine's mappings are contiguous if they were when recorded. A restore makes the other mappings so.
func (m *Map) checkContiguous() error {
	for i, a := range m.Spec.Allocations {
		if a.ContiguousTo == 0 || m.Base[i] == 0 {
			continue
		}
		before := a.ContiguousTo - 1
		// mutant: mappings of the engine side by side
		if want := m.Base[before] + m.Spec.Allocations[before].Size; m.Base[i] != want {
			return fmt.Errorf("compare mappings: allocation %d is at %#x, not contiguous to allocation %d at %#x", i, m.Base[i], before, want)
		}
	}
	return nil
}

// Content returns the content's bytes with its pointers resolved. Without pointers that is the saved data
// itself, which must not be changed.
func (m *Map) Content(c *graphir.Content) ([]byte, error) {
	if len(c.Relocations) == 0 {
		return c.Data, nil
	}
	// mutant: saved contents stay as they are
	data := append([]byte(nil), c.Data...)
	return data, m.Patch(data, c.Relocations)
}
