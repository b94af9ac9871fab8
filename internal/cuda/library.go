package cuda

import "unsafe"

// LibraryHandle is a CUlibrary: code that is loaded once for all contexts. Kernel is a CUkernel of it.
type (
	LibraryHandle uintptr
	Kernel        uintptr
)

// CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
var procLibraryGetKernelCount = Driver("cuLibraryGetKernelCount")

// CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
var procLibraryEnumerateKernels = Driver("cuLibraryEnumerateKernels")

// Kernels are all kernels of the library, in the driver's order. Drivers from 12.4 on have it.
func (l LibraryHandle) Kernels() ([]Kernel, error) {
	var n uint32
	if err := procLibraryGetKernelCount.Call(uintptr(unsafe.Pointer(&n)), uintptr(l)); err != nil || n == 0 {
		return nil, err
	}
	ks := make([]Kernel, n)
	err := procLibraryEnumerateKernels.Call(uintptr(unsafe.Pointer(&ks[0])), uintptr(n), uintptr(l))
	return ks, err
}

// CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
var procKernelGetFunction = Driver("cuKernelGetFunction")

// Function is the kernel in the current context; the call loads it where it was not yet.
func (k Kernel) Function() (Function, error) {
	var f Function
	err := procKernelGetFunction.Call(uintptr(unsafe.Pointer(&f)), uintptr(k))
	return f, err
}

// CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
var procKernelGetLibrary = Driver("cuKernelGetLibrary")

// Library is the library that the kernel came from.
func (k Kernel) Library() (LibraryHandle, error) {
	var l LibraryHandle
	err := procKernelGetLibrary.Call(uintptr(unsafe.Pointer(&l)), uintptr(k))
	return l, err
}
