package memory

import (
	"bytes"
	"errors"
	"fmt"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/live"
)

// PlaceTensors gives the tensors in suballocated memory their addresses in this process: equal sequences of driver
// allocations do not make equal places inside them. If a pointer depends on the place of an unnamed block, all
// blocks of the framework's allocator have to be at their recorded places.
func (m *Map) PlaceTensors() error {
	for i := range m.Spec.Tensors {
		t := &m.Spec.Tensors[i]
		if t.At.Space != graphir.SpaceAlloc || !m.Spec.Allocations[t.At.Index].Suballocated {
			continue
		}
		place, ok := live.MarkedTensor(t.Name)
		if !ok {
			return fmt.Errorf("place tensor %s: the engine did not name it", t.Name)
		}
		if place.Size != t.Size {
			return fmt.Errorf("place tensor %s: %d bytes, %d when recorded", t.Name, place.Size, t.Size)
		}
		// mutant: tensors by name in suballocated allocations
		m.Base[m.Spec.Object(graphir.SpaceTensor, uint32(i))] = place.Addr
	}
	if len(m.Spec.BlockMap) == 0 {
		return nil
	}
	now, err := m.Blocks()
	if err != nil {
		return err
	}
	// mutant: block map, online with offline
	if !bytes.Equal(graphir.BlockMapDigest(now), m.Spec.BlockMap) {
		return errors.New("compare block maps: the framework's allocator has placed blocks differently, and a graph points to one that has no name")
	}
	return nil
}

// PlaceMarked does the same for the tensors that the engine has named by now.
func (m *Map) PlaceMarked() {
	for i := range m.Spec.Tensors {
		if t := &m.Spec.Tensors[i]; t.At.Space == graphir.SpaceAlloc && m.Spec.Allocations[t.At.Index].Suballocated {
			if place, ok := live.MarkedTensor(t.Name); ok && place.Size == t.Size {
				m.Base[m.Spec.Object(graphir.SpaceTensor, uint32(i))] = place.Addr
			}
		}
	}
}

// Blocks returns the framework's blocks as they were when the capture phase began, by recorded allocations.
func (m *Map) Blocks() ([]graphir.Block, error) {
	blocks, err := live.Blocks()
	for i := range blocks {
		if to, ok := m.recorded[blocks[i].Alloc]; ok {
			blocks[i].Alloc = to
		}
	}
	return blocks, err
}

// Tensor returns the address of a named tensor.
func (m *Map) Tensor(name string) (addr cuda.DevicePtr, ok bool) {
	if m.byName == nil {
		m.byName = make(map[string]int, len(m.Spec.Tensors))
		for i := range m.Spec.Tensors {
			m.byName[m.Spec.Tensors[i].Name] = i
		}
	}
	i, ok := m.byName[name]
	if !ok {
		return 0, false
	}
	at := m.Spec.Tensors[i].At
	if at.Space == graphir.SpaceAlloc && m.Spec.Allocations[at.Index].Suballocated {
		at = graphir.Pointer{Index: uint32(i), Space: graphir.SpaceTensor}
	}
	a, err := m.Address(at)
	return cuda.DevicePtr(a), err == nil
}
