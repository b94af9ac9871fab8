package restore

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
)

// Objects that graphs refer to besides allocations: variables of modules, events of the engine, saved host memory, tensor maps.

// GlobalError says which variable of a module could not be found in this process as it was recorded.
type GlobalError struct {
	Name, Module string
	Cause        error
}

func (e *GlobalError) Error() string {
	return fmt.Sprintf("resolve variable %s in %s: %v", e.Name, e.Module, e.Cause)
}

// Unwrap returns the cause.
func (e *GlobalError) Unwrap() error { return e.Cause }

// globals gives every variable that something refers to its address.
func (r *resolver) globals(m *memory) error {
	wanted := referenced(r.spec)
	for i, g := range r.spec.Globals {
		object := r.spec.Object(graphir.SpaceGlobal, uint32(i))
		if !wanted[object] {
			continue
		}
		addr, size, err := r.global(&g)
		if err == nil && size != g.Size {
			err = fmt.Errorf("%d bytes, recorded %d", size, g.Size)
		}
		if err != nil {
			return &GlobalError{g.Name, r.describe(r.spec.Modules[g.Module]), err}
		}
		// mutant: address of a variable
		m.base[object] = addr
	}
	return nil
}

func (r *resolver) global(g *graphir.Global) (addr, size uint64, err error) {
	want := r.spec.Modules[g.Module]
	for i := range r.loaded {
		m := &r.loaded[i]
		if !sameImage(&want, m) {
			continue
		}
		r.used = append(r.used, m.Handle)
		find := cuda.Module(m.Handle).Global
		if m.IsLibrary != 0 {
			find = cuda.LibraryHandle(m.Handle).Global
		}
		at, size, err := find(g.Name)
		return uint64(at), size, err
	}
	return 0, 0, fmt.Errorf("module is not loaded in this process (%d are)", len(r.loaded))
}

// engineEvents returns the handles of the engine's events by index, as far as the artifact refers to them, after checking
// that this process created its events as the recorded one did.
func engineEvents(spec *graphir.Spec) ([]uint64, error) {
	if len(spec.Events) == 0 {
		return nil, nil
	}
	live, err := liveEvents()
	if err != nil {
		return nil, err
	}
	handles := make([]uint64, len(spec.Events))
	for i, e := range spec.Events {
		if i >= len(live) {
			return nil, fmt.Errorf("compare events: %d were created, the artifact refers to event %d", len(live), len(spec.Events)-1)
		}
		if live[i].Flags != e.Flags || live[i].Steps != e.Step {
			return nil, fmt.Errorf("compare events: event %d has flags %#x and was created after %d allocations and frees, recorded with %#x after %d",
				i, live[i].Flags, live[i].Steps, e.Flags, e.Step)
		}
		if live[i].Live != 0 {
			handles[i] = live[i].Handle
		}
	}
	return handles, nil
}

// allocateHost provides the memory of host buffers, which graphs read at every launch.
func (m *memory) allocateHost() error {
	for i, h := range m.spec.HostBuffers {
		object := m.spec.Object(graphir.SpaceHost, uint32(i))
		if h.Size == 0 {
			continue
		}
		data, err := m.host.bytes(int(h.Size))
		if err != nil {
			return err
		}
		m.base[object] = uint64(uintptr(unsafe.Pointer(&data[0])))
	}
	return nil
}

// fillHost writes a content to host memory of our own.
func fillHost(at uint64, data []byte) {
	copy(unsafe.Slice((*byte)(hostPointer(at)), len(data)), data)
}

// hostPointer makes a pointer of an address outside of the Go heap.
func hostPointer(at uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// patch writes the addresses that relocations of data stand for.
func (m *memory) patch(data []byte, relocations []graphir.Relocation) error {
	for i := range relocations {
		f := &relocations[i]
		if f.Pointer.Space == graphir.SpaceAlloc && f.TensorMap == 0 {
			if base := m.base[f.Pointer.Index]; base != 0 { // nearly all of them
				// mutant: pointer in saved contents
				binary.LittleEndian.PutUint64(data[f.Offset:], base+f.Pointer.Offset)
				continue
			}
		}
		if err := m.patchAny(data, f); err != nil {
			return fmt.Errorf("offset %d: %w", f.Offset, err)
		}
	}
	return nil
}

// patchAny writes the address that a relocation stands for, or the tensor map over it.
func (m *memory) patchAny(data []byte, f *graphir.Relocation) error {
	addr, err := m.address(f.Pointer)
	if err != nil {
		return err
	}
	if f.TensorMap == 0 {
		binary.LittleEndian.PutUint64(data[f.Offset:], addr)
		return nil
	}
	encoded, err := encodeTensorMap(&m.spec.TensorMaps[f.TensorMap-1], addr)
	if err != nil {
		return fmt.Errorf("encode tensor map %d: %w", f.TensorMap-1, err)
	}
	copy(data[f.Offset:], encoded)
	return nil
}

// encodeTensorMap has the driver encode the map anew: its bytes are the driver's affair, and so is the place of the address
// among them.
func encodeTensorMap(t *graphir.TensorMap, addr uint64) ([]byte, error) {
	room := make([]byte, 2*graphir.TensorMapBytes)
	at := -uint64(uintptr(unsafe.Pointer(&room[0]))) & (graphir.TensorMapBytes - 1)
	out := room[at : at+graphir.TensorMapBytes]
	// mutant: arguments of a tensor map
	tiled := cuda.TiledTensorMap{DataType: t.DataType, Address: cuda.DevicePtr(addr), GlobalDim: t.GlobalDim, GlobalStrides: t.GlobalStrides,
		BoxDim: t.BoxDim, ElementStrides: t.ElementStrides,
		Interleave: t.Interleave, Swizzle: t.Swizzle, L2Promotion: t.L2Promotion, OOBFill: t.OOBFill}
	return out, tiled.Encode(out)
}
