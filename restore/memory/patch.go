package memory

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
)

// Patch writes the addresses that relocations of data stand for.
func (m *Map) Patch(data []byte, relocations []graphir.Relocation) error {
	for i := range relocations {
		f := &relocations[i]
		if f.Pointer.Space == graphir.SpaceAlloc && f.TensorMap == 0 {
			if base := m.Base[f.Pointer.Index]; base != 0 { // nearly all of them
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
func (m *Map) patchAny(data []byte, f *graphir.Relocation) error {
	addr, err := m.Address(f.Pointer)
	if err != nil {
		return err
	}
	if f.TensorMap == 0 {
		binary.LittleEndian.PutUint64(data[f.Offset:], addr)
		return nil
	}
	encoded, err := encodeTensorMap(&m.Spec.TensorMaps[f.TensorMap-1], addr)
	if err != nil {
		return fmt.Errorf("encode tensor map %d: %w", f.TensorMap-1, err)
	}
	copy(data[f.Offset:], encoded)
	return nil
}

// encodeTensorMap has the driver encode the map anew: only the driver knows the format of the bytes, and the
// position of the address in them.
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
