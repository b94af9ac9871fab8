package cuda

import (
	"fmt"
	"unsafe"
)

// LibraryLoadData loads NUL-terminated PTX text, a cubin or a fatbin for all contexts.
func LibraryLoadData(image []byte) (LibraryHandle, error) {
	if len(image) == 0 {
		return 0, fmt.Errorf("cuLibraryLoadData: %w", invalidImage)
	}
	var l LibraryHandle
	err := procLibraryLoadData.Call(uintptr(unsafe.Pointer(&l)), uintptr(unsafe.Pointer(&image[0])), 0, 0, 0, 0, 0, 0)
	return l, err
}

// Kernels returns all kernels of the library, in the driver's order. It needs driver 12.4.
func (l LibraryHandle) Kernels() ([]Kernel, error) {
	var n uint32
	if err := procLibraryGetKernelCount.Call(uintptr(unsafe.Pointer(&n)), uintptr(l)); err != nil || n == 0 {
		return nil, err
	}
	ks := make([]Kernel, n)
	err := procLibraryEnumerateKernels.Call(uintptr(unsafe.Pointer(&ks[0])), uintptr(n), uintptr(l))
	return ks, err
}
