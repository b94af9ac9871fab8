package cuda

import "unsafe"

// DevicePtr is a CUdeviceptr: an address in device memory.
type DevicePtr uint64

// CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
var procMemAlloc = Driver("cuMemAlloc_v2")

// MemAlloc allocates device memory of a size in bytes; size 0 is InvalidValue.
func MemAlloc(size uint64) (DevicePtr, error) {
	var p DevicePtr
	err := procMemAlloc.Call(uintptr(unsafe.Pointer(&p)), uintptr(size))
	return p, err
}

// CUresult cuMemFree_v2(CUdeviceptr dptr)
var procMemFree = Driver("cuMemFree_v2")

// Free releases an allocation; p is the address that MemAlloc returned.
func (p DevicePtr) Free() error { return procMemFree.Call(uintptr(p)) }

// CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
var procMemGetInfo = Driver("cuMemGetInfo_v2")

// MemInfo is the free and total device memory of the current context, in bytes.
func MemInfo() (free, total uint64, err error) {
	err = procMemGetInfo.Call(uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	return free, total, err
}

// CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
var procMemHostAlloc = Driver("cuMemHostAlloc")

// HostBuffer is page-locked host memory: asynchronous copies read and write it after the call has returned.
type HostBuffer struct {
	Bytes []byte
	addr  uintptr
}

// HostAlloc allocates page-locked host memory of a size in bytes.
func HostAlloc(size int) (*HostBuffer, error) {
	// The driver stores the address; declaring it as a pointer keeps the conversion to a slice valid for go vet.
	var p unsafe.Pointer
	if err := procMemHostAlloc.Call(uintptr(unsafe.Pointer(&p)), uintptr(size), 0); err != nil {
		return nil, err
	}
	return &HostBuffer{Bytes: unsafe.Slice((*byte)(p), size), addr: uintptr(p)}, nil
}

// CUresult cuMemFreeHost(void *p)
var procMemFreeHost = Driver("cuMemFreeHost")

// Free releases the memory. No copy may be under way.
func (b *HostBuffer) Free() error {
	addr := b.addr
	b.Bytes, b.addr = nil, 0
	return procMemFreeHost.Call(addr)
}

// CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
var procMemcpyHtoD = Driver("cuMemcpyHtoD_v2")

// CopyToDevice copies src to dst and waits for it. An empty src copies nothing.
func CopyToDevice(dst DevicePtr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return procMemcpyHtoD.Call(uintptr(dst), uintptr(unsafe.Pointer(&src[0])), uintptr(len(src)))
}

// CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
var procMemcpyDtoH = Driver("cuMemcpyDtoH_v2")

// CopyToHost fills dst from src and waits for it. It does not wait for work on streams other than the default one.
func CopyToHost(dst []byte, src DevicePtr) error {
	if len(dst) == 0 {
		return nil
	}
	return procMemcpyDtoH.Call(uintptr(unsafe.Pointer(&dst[0])), uintptr(src), uintptr(len(dst)))
}

// CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
var procMemcpyHtoDAsync = Driver("cuMemcpyHtoDAsync_v2")

// CopyToDeviceAsync copies src, which lies in a HostBuffer, on a stream. src must not change before the copy is done.
func CopyToDeviceAsync(dst DevicePtr, src []byte, stream Stream) error {
	if len(src) == 0 {
		return nil
	}
	return procMemcpyHtoDAsync.Call(uintptr(dst), uintptr(unsafe.Pointer(&src[0])), uintptr(len(src)), uintptr(stream))
}

// CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
var procMemcpyDtoHAsync = Driver("cuMemcpyDtoHAsync_v2")

// CopyToHostAsync fills dst, which lies in a HostBuffer, on a stream.
func CopyToHostAsync(dst []byte, src DevicePtr, stream Stream) error {
	if len(dst) == 0 {
		return nil
	}
	return procMemcpyDtoHAsync.Call(uintptr(unsafe.Pointer(&dst[0])), uintptr(src), uintptr(len(dst)), uintptr(stream))
}

// CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
var procMemcpyDtoDAsync = Driver("cuMemcpyDtoDAsync_v2")

// CopyOnDeviceAsync copies size bytes inside device memory on a stream.
func CopyOnDeviceAsync(dst, src DevicePtr, size uint64, stream Stream) error {
	return procMemcpyDtoDAsync.Call(uintptr(dst), uintptr(src), uintptr(size), uintptr(stream))
}

// CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
var procMemsetD8Async = Driver("cuMemsetD8Async")

// MemsetAsync sets size bytes to value on a stream.
func MemsetAsync(dst DevicePtr, value byte, size uint64, stream Stream) error {
	return procMemsetD8Async.Call(uintptr(dst), uintptr(value), uintptr(size), uintptr(stream))
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

// MemoryTypeDevice is CU_MEMORYTYPE_DEVICE, for Memcpy3D.
const MemoryTypeDevice = 2
