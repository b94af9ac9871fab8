package cuda

import "unsafe"

// HostBuffer is page-locked host memory, which asynchronous copies may read and write after the call has returned.
type HostBuffer struct {
	Bytes []byte
	addr  uintptr
}

// HostAlloc allocates page-locked host memory of this size in bytes.
func HostAlloc(size int) (*HostBuffer, error) {
	// The driver stores the address. Because p is declared as a pointer, go vet accepts its conversion to a slice.
	var p unsafe.Pointer
	if err := procMemHostAlloc.Call(uintptr(unsafe.Pointer(&p)), uintptr(size), 0); err != nil {
		return nil, err
	}
	return &HostBuffer{Bytes: unsafe.Slice((*byte)(p), size), addr: uintptr(p)}, nil
}

// Free releases the memory. No copy may be in progress.
func (b *HostBuffer) Free() error {
	addr := b.addr
	b.Bytes, b.addr = nil, 0
	return HostPtr(addr).Free()
}

// CopyToDevice copies src to dst and waits for the copy, which the driver's call does not: it returns when src has been read. Streams that
// do not wait for the default stream would find old bytes, and memory may be unmapped too early. An empty src copies no bytes.
func CopyToDevice(dst DevicePtr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	if err := procMemcpyHtoD.Call(uintptr(dst), uintptr(unsafe.Pointer(&src[0])), uintptr(len(src))); err != nil {
		return err
	}
	return Stream(0).Synchronize()
}

// CopyToHost fills dst from src and waits for the copy. It waits for work on the default stream only.
func CopyToHost(dst []byte, src DevicePtr) error {
	if len(dst) == 0 {
		return nil
	}
	return procMemcpyDtoH.Call(uintptr(unsafe.Pointer(&dst[0])), uintptr(src), uintptr(len(dst)))
}

// CopyToDeviceAsync copies src, which is part of a HostBuffer, on a stream. src must not change before the copy is done.
func CopyToDeviceAsync(dst DevicePtr, src []byte, stream Stream) error {
	if len(src) == 0 {
		return nil
	}
	return procMemcpyHtoDAsync.Call(uintptr(dst), uintptr(unsafe.Pointer(&src[0])), uintptr(len(src)), uintptr(stream))
}

// CopyToHostAsync fills dst, which is part of a HostBuffer, on a stream.
func CopyToHostAsync(dst []byte, src DevicePtr, stream Stream) error {
	if len(dst) == 0 {
		return nil
	}
	return procMemcpyDtoHAsync.Call(uintptr(unsafe.Pointer(&dst[0])), uintptr(src), uintptr(len(dst)), uintptr(stream))
}

// Memcpy3D mirrors CUDA_MEMCPY3D: byte positions in x, rows in y, slices in z.
type Memcpy3D struct {
	SrcXInBytes, SrcY, SrcZ, SrcLOD uint64
	SrcMemoryType                   uint32
	_                               uint32
	SrcHost                         uintptr
	SrcDevice                       DevicePtr
	SrcArray                        uintptr
	_                               uintptr
	SrcPitch, SrcHeight             uint64

	DstXInBytes, DstY, DstZ, DstLOD uint64
	DstMemoryType                   uint32
	_                               uint32
	DstHost                         uintptr
	DstDevice                       DevicePtr
	DstArray                        uintptr
	_                               uintptr
	DstPitch, DstHeight             uint64

	WidthInBytes, Height, Depth uint64
}

// Memory types of Memcpy3D.
const (
	MemoryTypeHost   = 1 // CU_MEMORYTYPE_HOST
	MemoryTypeDevice = 2 // CU_MEMORYTYPE_DEVICE
)

// Flags of allocations.
const (
	MemAttachGlobal       = 1 // CU_MEM_ATTACH_GLOBAL: any stream may access managed memory
	MemHostAllocMapped    = 2 // CU_MEMHOSTALLOC_DEVICEMAP: the device can access page-locked memory
	MemHostRegisterMapped = 2 // CU_MEMHOSTREGISTER_DEVICEMAP
)

// MemLocation mirrors CUmemLocation.
type MemLocation struct {
	Type uint32
	ID   int32
}

// MemLocationDevice is CU_MEM_LOCATION_TYPE_DEVICE.
const MemLocationDevice = 1

// MemAllocationProp mirrors CUmemAllocationProp.
type MemAllocationProp struct {
	Type, HandleTypes   uint32
	Location            MemLocation
	Win32HandleMetaData uintptr
	Flags               [8]byte
}

// MemAllocationPinned is CU_MEM_ALLOCATION_TYPE_PINNED.
const MemAllocationPinned = 1

// MemAccessDesc mirrors CUmemAccessDesc.
type MemAccessDesc struct {
	Location MemLocation
	Flags    uint32
}

// MemAccessReadWrite is CU_MEM_ACCESS_FLAGS_PROT_READWRITE.
const MemAccessReadWrite = 3
