package graphir

// Relocation says that the eight bytes at Offset are an address. If TensorMap is not 0, it says that the 128 bytes at Offset are the
// tensor map with that number (counted from 1) over the address.
type Relocation struct {
	Offset    uint32
	TensorMap uint32
	Pointer   Pointer
}

// TensorMapBytes is the size of a CUtensorMap.
const TensorMapBytes = 128

// Size returns the number of bytes that the relocation covers.
func (f *Relocation) Size() uint32 {
	if f.TensorMap != 0 {
		return TensorMapBytes
	}
	return 8
}
