package restore

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
)

// memory maps allocation indices to this process's addresses, and owns the graph-owned allocations it made.
type memory struct {
	spec  *graphir.Spec
	base  []uint64 // by allocation index; 0 where the allocation does not exist in this process
	owned []uint32 // indices that were allocated here, in order
}

// engineMemory takes the engine-owned addresses from the replayed sequence.
func engineMemory(spec *graphir.Spec, allocs []liveAlloc) *memory {
	m := &memory{spec: spec, base: make([]uint64, len(spec.Allocations))}
	for i, a := range allocs {
		if i < len(m.base) && a.Live != 0 {
			m.base[i] = a.Addr
		}
	}
	return m
}

// address resolves an indirect index pointer (paper §4.2).
func (m *memory) address(p graphir.Pointer) (uint64, error) {
	base := m.base[p.Alloc]
	if base == 0 {
		return 0, fmt.Errorf("resolve pointer to allocation %d + %d: it does not exist in this process", p.Alloc, p.Offset)
	}
	return base + p.Offset, nil
}

// allocate makes every graph-owned allocation that something refers to, in recorded order.
func (m *memory) allocate() error {
	wanted := referenced(m.spec)
	for i, a := range m.spec.Allocations {
		if a.Owner != graphir.OwnerGraph || !wanted[i] {
			continue
		}
		addr, err := allocateKind(a)
		if err != nil {
			return fmt.Errorf("allocate graph-owned allocation %d (%s, %d bytes): %w", i, kindName(uint32(a.Kind)), a.Size, err)
		}
		m.base[i] = addr
		m.owned = append(m.owned, uint32(i))
	}
	return nil
}

// referenced reports for each allocation whether a graph, a saved content or a named tensor refers to it. What nothing
// refers to was scratch of the skipped warm-up.
func referenced(spec *graphir.Spec) []bool {
	used := make([]bool, len(spec.Allocations))
	fixups := func(fs []graphir.Fixup) {
		for _, f := range fs {
			used[f.Pointer.Alloc] = true
		}
	}
	for _, g := range spec.Graphs {
		for _, n := range g.Nodes {
			switch {
			case n.Kernel != nil:
				fixups(n.Kernel.Fixups)
			case n.Memset != nil:
				used[n.Memset.Dst.Alloc] = true
			case n.Memcpy != nil:
				used[n.Memcpy.Src.Pointer.Alloc] = true
				used[n.Memcpy.Dst.Pointer.Alloc] = true
			}
		}
	}
	for _, c := range spec.Contents {
		used[c.Alloc] = true
		fixups(c.Fixups)
	}
	for _, t := range spec.Tensors {
		used[t.At.Alloc] = true
	}
	return used
}

// CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
// CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
// CUresult cuMemFreeHost(void *p)
var (
	procMemAllocManaged = cuda.Driver("cuMemAllocManaged")
	procMemHostAlloc    = cuda.Driver("cuMemHostAlloc")
	procMemFreeHost     = cuda.Driver("cuMemFreeHost")
)

const (
	memAttachGlobal    = 1 // CU_MEM_ATTACH_GLOBAL
	memHostAllocMapped = 2 // CU_MEMHOSTALLOC_DEVICEMAP
)

// allocateKind makes memory that a kernel cannot tell from the recorded kind. Pool, stream-ordered, pitched and mapped
// device memory differ only in how the host asks for and gives back, so a plain allocation stands for all of them.
func allocateKind(a graphir.Allocation) (uint64, error) {
	switch a.Kind {
	case graphir.AllocManaged:
		var p uint64
		err := procMemAllocManaged.Call(uintptr(unsafe.Pointer(&p)), uintptr(a.Size), memAttachGlobal)
		return p, err
	case graphir.AllocPinned:
		// Unified addressing: the host address of page-locked memory is its device address.
		var p uint64
		err := procMemHostAlloc.Call(uintptr(unsafe.Pointer(&p)), uintptr(a.Size), memHostAllocMapped)
		return p, err
	case graphir.AllocRegistered:
		return 0, fmt.Errorf("host memory that the engine registered cannot be made by the restorer")
	}
	p, err := cuda.MemAlloc(a.Size)
	return uint64(p), err
}

// free gives back what allocate made, in reverse, and returns the first error.
func (m *memory) free() error {
	var first error
	for i := len(m.owned) - 1; i >= 0; i-- {
		index := m.owned[i]
		var err error
		if m.spec.Allocations[index].Kind == graphir.AllocPinned {
			err = procMemFreeHost.Call(uintptr(m.base[index]))
		} else {
			err = cuda.DevicePtr(m.base[index]).Free()
		}
		if err != nil && first == nil {
			first = fmt.Errorf("free allocation %d: %w", index, err)
		}
		m.base[index] = 0
	}
	m.owned = nil
	return first
}

// fillContents writes the saved contents of permanent buffers (paper §4.3), pointers inside them resolved.
func (m *memory) fillContents() error {
	for i := range m.spec.Contents {
		c := &m.spec.Contents[i]
		data, err := m.resolveContent(c)
		if err != nil {
			return err
		}
		at, err := m.address(graphir.Pointer{Alloc: c.Alloc, Offset: c.Offset})
		if err != nil {
			return err
		}
		if err := cuda.CopyToDevice(cuda.DevicePtr(at), data); err != nil {
			return fmt.Errorf("fill allocation %d + %d with %d bytes: %w", c.Alloc, c.Offset, len(data), err)
		}
	}
	return nil
}

// resolveContent returns the content's bytes with its pointers resolved. Without pointers that is the saved data
// itself, which must not be changed.
func (m *memory) resolveContent(c *graphir.Content) ([]byte, error) {
	if len(c.Fixups) == 0 {
		return c.Data, nil
	}
	data := append([]byte(nil), c.Data...)
	for _, f := range c.Fixups {
		addr, err := m.address(f.Pointer)
		if err != nil {
			return nil, err
		}
		binary.LittleEndian.PutUint64(data[f.Offset:], addr)
	}
	return data, nil
}
