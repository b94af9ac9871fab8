package cuda

import (
	"fmt"
	"unsafe"
)

// TensorMapBytes is the size of a CUtensorMap.
const (
	TensorMapBytes = 128
	tensorMapAlign = 64
)

// TiledTensorMap has the arguments of cuTensorMapEncodeTiled, with the driver's names and numbers. The lists have one element per
// dimension; GlobalStrides has one fewer.
type TiledTensorMap struct {
	DataType               uint32
	Address                DevicePtr
	GlobalDim              []uint64
	GlobalStrides          []uint64
	BoxDim, ElementStrides []uint32

	Interleave, Swizzle, L2Promotion, OOBFill uint32
}

// Encode makes the driver write the map to out.
func (t *TiledTensorMap) Encode(out []byte) error {
	rank := len(t.GlobalDim)
	if len(out) < TensorMapBytes || rank == 0 || len(t.GlobalStrides) < rank-1 || len(t.BoxDim) < rank || len(t.ElementStrides) < rank {
		return fmt.Errorf("cuTensorMapEncodeTiled: %w", InvalidValue)
	}
	strides := t.GlobalStrides
	if len(strides) == 0 {
		strides = make([]uint64, 1) // the driver requires an address even if it reads no stride
	}
	return procTensorMapEncodeTiled.Call(uintptr(unsafe.Pointer(&out[0])), uintptr(t.DataType), uintptr(rank), uintptr(t.Address),
		uintptr(unsafe.Pointer(&t.GlobalDim[0])), uintptr(unsafe.Pointer(&strides[0])), uintptr(unsafe.Pointer(&t.BoxDim[0])),
		uintptr(unsafe.Pointer(&t.ElementStrides[0])), uintptr(t.Interleave), uintptr(t.Swizzle), uintptr(t.L2Promotion), uintptr(t.OOBFill))
}

// TensorMapReplaceAddress changes the address in an encoded map.
func TensorMapReplaceAddress(tensorMap []byte, address DevicePtr) error {
	if len(tensorMap) < TensorMapBytes {
		return fmt.Errorf("cuTensorMapReplaceAddress: %w", InvalidValue)
	}
	return procTensorMapReplaceAddress.Call(uintptr(unsafe.Pointer(&tensorMap[0])), uintptr(address))
}
