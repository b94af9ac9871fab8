package restore

import (
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/internal/cuda"
)

// memory maps allocation indices to this process's addresses, and owns the graph-owned allocations it made.
type memory struct {
	spec  *graphir.Spec
	base  []uint64 // by object (graphir.Spec.Object); 0 if it does not exist in this process
	owned []uint32 // allocations that were made here, in order
	host  arena    // host buffers
	kept  []keptPiece
}

// engineMemory takes the engine-owned addresses from the replayed sequence.
func engineMemory(spec *graphir.Spec, allocs []liveAlloc) *memory {
	m := &memory{spec: spec, base: make([]uint64, spec.Objects())}
	for i, a := range allocs {
		// mutant: memory that is gone has no address
		if i < len(spec.Allocations) && a.Live != 0 {
			m.base[i] = a.Addr
		}
	}
	return m
}

// address resolves an indirect index pointer (paper §4.2).
func (m *memory) address(p graphir.Pointer) (uint64, error) {
	base := m.base[m.spec.Target(p)]
	// mutant: pointer to what does not exist
	if base == 0 {
		return 0, fmt.Errorf("resolve pointer to %s: it does not exist in this process", p)
	}
	// mutant: relocation if a base is not honoured
	return base + p.Offset, nil
}

// allocate makes every graph-owned allocation that something refers to, in recorded order; mappings side by side are one.
func (m *memory) allocate() error {
	wanted := referenced(m.spec)
	chains := m.spec.Contiguous()
	for i, a := range m.spec.Allocations {
		if a.Owner != graphir.OwnerGraph || !wanted[i] || !chains.First(uint32(i)) {
			continue
		}
		behind := chains.Following(uint32(i))
		for _, k := range behind {
			a.Size += m.spec.Allocations[k].Size
		}
		addr, placed := placeExact(a)
		var err error
		if !placed {
			addr, err = allocateKind(a)
		}
		if err != nil {
			return fmt.Errorf("allocate graph-owned allocation %d (%s, %d bytes): %w", i, a.Kind, a.Size, err)
		}
		m.base[i] = addr
		// mutant: memory at its recorded place is given back
		m.owned = append(m.owned, uint32(i))
		addr += m.spec.Allocations[i].Size
		for _, k := range behind {
			// mutant: mappings of the capture phase in one piece
			m.base[k] = addr
			addr += m.spec.Allocations[k].Size
		}
	}
	return m.allocateHost()
}

// checkChains demands of the engine's mappings the property that allocate gives the others: that they lie side by side if they did.
func (m *memory) checkChains() error {
	for i, a := range m.spec.Allocations {
		if a.ContiguousTo == 0 || m.base[i] == 0 {
			continue
		}
		before := a.ContiguousTo - 1
		// mutant: mappings of the engine side by side
		if want := m.base[before] + m.spec.Allocations[before].Size; m.base[i] != want {
			return fmt.Errorf("compare mappings: allocation %d is at %#x, not behind allocation %d at %#x", i, m.base[i], before, want)
		}
	}
	return nil
}

// referenced reports for each object whether a graph, a saved content or a named tensor refers to it. Other objects
// were scratch of the skipped warm-up.
func referenced(spec *graphir.Spec) []bool {
	used := spec.Referred()
	visit := func(p graphir.Pointer) { used[spec.Target(p)] = true }
	for _, c := range spec.Contents {
		visit(graphir.Pointer{Index: c.Alloc, Space: c.Space})
		for _, f := range c.Relocations {
			visit(f.Pointer)
		}
	}
	for _, t := range spec.Tensors {
		visit(t.At)
	}
	for i, chain := range spec.Contiguous() {
		for _, k := range chain { // nobody knows how far a pointer's memory spans
			used[k] = used[k] || used[i]
		}
	}
	return used
}

// allocateKind makes memory that a kernel cannot tell from the recorded kind. Pool, stream-ordered, pitched and mapped
// device memory differ only in how the host asks for and gives back, so a plain allocation stands for all of them.
func allocateKind(a graphir.Allocation) (uint64, error) {
	switch a.Kind {
	case graphir.AllocManaged:
		p, err := cuda.MemAllocManaged(a.Size, cuda.MemAttachGlobal)
		return uint64(p), err
	case graphir.AllocPinned: // mutant: page-locked memory of the capture phase
		// Unified addressing: the host address of page-locked memory is its device address.
		p, err := cuda.MemHostAlloc(a.Size, cuda.MemHostAllocMapped)
		return uint64(p), err
	case graphir.AllocRegistered:
		return 0, fmt.Errorf("host memory that the engine registered cannot be made by the restorer")
	}
	p, err := cuda.MemAlloc(a.Size)
	return uint64(p), err
}

// free gives back the memory of allocate, in reverse, and returns the first error.
func (m *memory) free() error {
	var first error
	for i := len(m.owned) - 1; i >= 0; i-- {
		index := m.owned[i]
		var err error
		if m.spec.Allocations[index].Kind == graphir.AllocPinned {
			err = cuda.HostPtr(m.base[index]).Free()
		} else {
			err = cuda.DevicePtr(m.base[index]).Free()
		}
		if err != nil && first == nil {
			first = fmt.Errorf("free allocation %d: %w", index, err)
		}
		m.base[index] = 0
	}
	m.owned = nil
	m.host.release()
	return first
}

// fillContents writes the saved contents of permanent buffers (paper §4.3), pointers inside them resolved. Variables of modules
// are the engine's: their contents are kept first.
func (m *memory) fillContents() error {
	if err := m.keepVariables(); err != nil {
		return err
	}
	// mutant: permanent buffers are filled
	for i := range m.spec.Contents {
		c := &m.spec.Contents[i]
		data, err := m.resolveContent(c)
		if err != nil {
			return err
		}
		at, err := m.address(graphir.Pointer{Index: c.Alloc, Offset: c.Offset, Space: c.Space})
		if err != nil {
			return err
		}
		switch c.Space {
		case graphir.SpaceHost:
			// mutant: bytes of pageable memory
			fillHost(at, data)
		case graphir.SpaceGlobal:
			// mutant: content of a variable
			err = fillStable(at, data, c.Unstable)
		default:
			err = cuda.CopyToDevice(cuda.DevicePtr(at), data)
		}
		if err != nil {
			return fmt.Errorf("fill %s#%d + %d with %d bytes: %w", c.Space, c.Alloc, c.Offset, len(data), err)
		}
	}
	return nil
}

// keepVariables keeps the contents of modules' variables that fillContents is to write over.
func (m *memory) keepVariables() error {
	for i := range m.spec.Contents {
		c := &m.spec.Contents[i]
		if c.Space != graphir.SpaceGlobal {
			continue
		}
		if m.kept == nil { // the engine's streams need not wait for the copy, nor the copy for them
			if err := cuda.Synchronize(); err != nil {
				return err
			}
		}
		at, err := m.address(graphir.Pointer{Index: c.Alloc, Offset: c.Offset, Space: c.Space})
		if err != nil {
			return err
		}
		p := keptPiece{at, make([]byte, len(c.Data))}
		if err := cuda.CopyToHost(p.data, cuda.DevicePtr(at)); err != nil {
			return fmt.Errorf("keep what %s#%d + %d holds: %w", c.Space, c.Alloc, c.Offset, err)
		}
		m.kept = append(m.kept, p)
	}
	return nil
}

// keptPiece is a piece of the engine's memory that a restore or a check writes over.
type keptPiece struct {
	addr uint64
	data []byte
}

// spoiltError says that the engine's memory is not what the engine left: nothing can start on it in this process.
type spoiltError struct{ cause error }

func (e *spoiltError) Error() string {
	return "put back what the engine's memory held: " + e.cause.Error()
}

func (e *spoiltError) Unwrap() error { return e.cause }

func putBack(kept []keptPiece) error {
	for _, p := range kept {
		if err := cuda.CopyToDevice(cuda.DevicePtr(p.addr), p.data); err != nil {
			return &spoiltError{err}
		}
	}
	return nil
}

// fillStable leaves bytes alone that differed between the recordings: in a variable of the engine's own module the engine
// put them there itself.
func fillStable(at uint64, data []byte, unstable []graphir.Range) error {
	from := uint64(0)
	for _, u := range append(slices.Clone(unstable), graphir.Range{Offset: uint64(len(data))}) {
		if u.Offset > from {
			if err := cuda.CopyToDevice(cuda.DevicePtr(at+from), data[from:u.Offset]); err != nil {
				return err
			}
		}
		from = u.Offset + u.Size
	}
	return nil
}

// resolveContent returns the content's bytes with its pointers resolved. Without pointers that is the saved data
// itself, which must not be changed.
func (m *memory) resolveContent(c *graphir.Content) ([]byte, error) {
	if len(c.Relocations) == 0 {
		return c.Data, nil
	}
	// mutant: saved contents stay as they are
	data := append([]byte(nil), c.Data...)
	return data, m.patch(data, c.Relocations)
}
