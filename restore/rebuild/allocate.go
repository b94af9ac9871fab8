package rebuild

import (
	"fmt"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/memory"
)

// owned is the memory that a restore has made: allocations of the capture phase, and host buffers. It is part of a map of the process's
// memory.
type owned struct {
	memory      *memory.Map
	allocations []made        // in order
	host        arena         // host buffers
	kept        []memory.Kept // of the engine's memory, which contents are written over
}

// made is an allocation and the call that gives it back. The artifact's word for its kind does not say which call made it.
type made struct {
	index uint32
	free  func() error
}

// allocate makes every graph-owned allocation that something refers to, in recorded order; mappings side by side are one.
func (o *owned) allocate() error {
	wanted := o.memory.Spec.Referenced()
	chains := o.memory.Spec.Contiguous()
	for i, a := range o.memory.Spec.Allocations {
		if a.Owner != graphir.OwnerGraph || !wanted[i] || !chains.First(uint32(i)) {
			continue
		}
		following := chains.Following(uint32(i))
		for _, k := range following {
			a.Size += o.memory.Spec.Allocations[k].Size
		}
		addr, free, err := allocateKind(a)
		if err != nil {
			return fmt.Errorf("allocate graph-owned allocation %d (%s, %d bytes): %w", i, a.Kind, a.Size, err)
		}
		o.memory.Base[i] = addr
		o.allocations = append(o.allocations, made{uint32(i), free})
		addr += o.memory.Spec.Allocations[i].Size
		for _, k := range following {
			// mutant: mappings of the capture phase in one piece
			o.memory.Base[k] = addr
			addr += o.memory.Spec.Allocations[k].Size
		}
	}
	return nil
}

// free gives back the memory of allocate and allocateHost, and returns the first error.
func (o *owned) free() error {
	defer o.host.release()
	return o.freeAllocations()
}

// freeAllocations gives back the memory of allocate, in reverse, and returns the first error.
func (o *owned) freeAllocations() error {
	var first error
	for i := len(o.allocations) - 1; i >= 0; i-- {
		m := o.allocations[i]
		if err := m.free(); err != nil && first == nil {
			first = fmt.Errorf("free allocation %d: %w", m.index, err)
		}
		o.memory.Base[m.index] = 0
	}
	o.allocations = nil
	return first
}

// allocateKind makes memory that a kernel cannot tell from the recorded kind, at the recorded place if it can. Pool, stream-ordered, pitched
// and mapped device memory differ only in how the host asks for and gives back, so a plain allocation stands for all of them.
func allocateKind(a graphir.Allocation) (addr uint64, free func() error, err error) {
	switch a.Kind {
	case graphir.AllocManaged:
		p, err := cuda.MemAllocManaged(a.Size, cuda.MemAttachGlobal)
		return uint64(p), p.Free, err
	case graphir.AllocPinned: // mutant: page-locked memory of the capture phase
		// Unified addressing: the host address of page-locked memory is its device address.
		p, err := cuda.MemHostAlloc(a.Size, cuda.MemHostAllocMapped)
		return uint64(p), p.Free, err
	case graphir.AllocRegistered:
		return 0, nil, fmt.Errorf("host memory that the engine registered cannot be made by the restorer")
	}
	// mutant: memory at its recorded place is given back
	if addr, placed := placeExact(a); placed {
		return addr, cuda.DevicePtr(addr).Free, nil
	}
	p, err := cuda.MemAlloc(a.Size)
	return uint64(p), p.Free, err
}

// allocateHost provides the memory of host buffers, which graphs read at every launch.
func (o *owned) allocateHost() error {
	for i, h := range o.memory.Spec.HostBuffers {
		object := o.memory.Spec.Object(graphir.SpaceHost, uint32(i))
		if h.Size == 0 {
			continue
		}
		data, err := o.host.bytes(int(h.Size))
		if err != nil {
			return err
		}
		o.memory.Base[object] = uint64(uintptr(unsafe.Pointer(&data[0])))
	}
	return nil
}

// fillHost writes a content to host memory of our own.
func fillHost(at uint64, data []byte) { copy(hostBytes(at, len(data)), data) }

// hostBytes are n bytes outside of the Go heap.
func hostBytes(at uint64, n int) []byte { return unsafe.Slice((*byte)(hostPointer(at)), n) }

// hostPointer makes a pointer of an address outside of the Go heap.
func hostPointer(at uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
