package restore

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/cuda"
)

var (
	procTensorGet = cuda.Process("medusa_tensor_get")
	procBlockMap  = cuda.Process("medusa_block_map")
)

// tensorPlace is the address of a named tensor in this process.
type tensorPlace struct{ addr, size uint64 }

// Place states the address of a named tensor, for engines that do not mark tensors (medusa_mark_tensor) in a restored start.
// Pointers into allocations that the engine's own allocator divides are resolved by it.
func (s *Session) Place(name string, addr, size uint64) {
	if s.places == nil {
		s.places = make(map[string]tensorPlace)
	}
	s.places[name] = tensorPlace{addr, size}
}

// placeTensors gives the tensors in divided allocations their addresses in this process: equal sequences of driver
// allocations do not make equal places inside them. If a pointer depends on places that nobody named, all blocks of
// the framework's allocator have to be at their recorded places.
func (s *Session) placeTensors(m *memory) error {
	for i := range s.spec.Tensors {
		t := &s.spec.Tensors[i]
		if t.At.Space != graphir.SpaceAlloc || !s.spec.Allocations[t.At.Index].Suballocated {
			continue
		}
		place := s.placeOf(t)
		if place.addr == 0 {
			return fmt.Errorf("place tensor %s: the engine did not name it", t.Name)
		}
		if place.size != t.Size {
			return fmt.Errorf("place tensor %s: %d bytes, %d when recorded", t.Name, place.size, t.Size)
		}
		// mutant: tensors by name in divided allocations
		m.base[s.spec.Object(graphir.SpaceTensor, uint32(i))] = place.addr
	}
	if len(s.spec.BlockMap) == 0 {
		return nil
	}
	now, err := s.blocks()
	if err != nil {
		return err
	}
	// mutant: block map, online with offline
	if !bytes.Equal(graphir.BlockMapDigest(now), s.spec.BlockMap) {
		return errors.New("compare block maps: the framework's allocator has placed blocks differently, and a graph points to one that has no name")
	}
	return nil
}

// Tensor returns the address of a named tensor of the artifact in this process. A restored engine takes the addresses from it that
// it did not allocate itself: of tensors of the capture phase that it writes between replays. Call it after Graphs.
func (s *Session) Tensor(name string) (addr cuda.DevicePtr, ok bool) {
	if s.restored == nil {
		return 0, false
	}
	if s.byName == nil {
		s.byName = make(map[string]int, len(s.spec.Tensors))
		for i := range s.spec.Tensors {
			s.byName[s.spec.Tensors[i].Name] = i
		}
	}
	i, ok := s.byName[name]
	if !ok {
		return 0, false
	}
	at := s.spec.Tensors[i].At
	if at.Space == graphir.SpaceAlloc && s.spec.Allocations[at.Index].Suballocated {
		at = graphir.Pointer{Index: uint32(i), Space: graphir.SpaceTensor}
	}
	a, err := s.restored.memory.address(at)
	return cuda.DevicePtr(a), err == nil
}

func markedPlace(name string) (p tensorPlace, ok bool) {
	if !procTensorGet.Present() {
		return p, false
	}
	text := append([]byte(name), 0)
	var place [2]uint64
	r, err := procTensorGet.Invoke(uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(&place[0])), uintptr(unsafe.Pointer(&place[1])))
	return tensorPlace{place[0], place[1]}, err == nil && int32(r) == 0
}

// placeOf returns where this process has the tensor; nowhere if the engine has not named it yet.
func (s *Session) placeOf(t *graphir.Tensor) tensorPlace {
	place, ok := s.places[t.Name]
	if !ok {
		place, _ = markedPlace(t.Name)
	}
	return place
}

// blocks reads the framework's blocks as they were when the capture phase began, by recorded allocations.
func (s *Session) blocks() ([]graphir.Block, error) {
	blocks, err := blockMap()
	for i := range blocks {
		if to, ok := s.recorded[blocks[i].Alloc]; ok {
			blocks[i].Alloc = to
		}
	}
	return blocks, err
}

func blockMap() ([]graphir.Block, error) {
	n, err := procBlockMap.Invoke(0, 0)
	if err != nil || n == 0 {
		return nil, err
	}
	marked := make([]contract.Block, n)
	if _, err := procBlockMap.Invoke(uintptr(unsafe.Pointer(&marked[0])), n); err != nil {
		return nil, err
	}
	blocks := make([]graphir.Block, n)
	for i, b := range marked {
		blocks[i] = graphir.Block{Alloc: b.Alloc, Live: b.Live != 0, Offset: b.Offset, Size: b.Size}
	}
	return blocks, nil
}
