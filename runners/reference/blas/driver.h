/* driver.h: this library's access to the driver. It is not linked: entry points are looked up at the first use. */
#ifndef VBLAS_DRIVER_H
#define VBLAS_DRIVER_H

#define CUDA_EXACT_SYMBOLS
#include "cuda.h"

/* field, the name that the driver is asked for, the symbol of the ABI meant */
#define DRIVER_CALLS(X)                                                  \
	X(CtxGetCurrent, "cuCtxGetCurrent", cuCtxGetCurrent)                 \
	X(ModuleLoadData, "cuModuleLoadData", cuModuleLoadData)              \
	X(ModuleGetFunction, "cuModuleGetFunction", cuModuleGetFunction)     \
	X(ModuleUnload, "cuModuleUnload", cuModuleUnload)                    \
	X(LibraryLoadData, "cuLibraryLoadData", cuLibraryLoadData)           \
	X(LibraryGetKernel, "cuLibraryGetKernel", cuLibraryGetKernel)        \
	X(LibraryUnload, "cuLibraryUnload", cuLibraryUnload)                 \
	X(KernelGetFunction, "cuKernelGetFunction", cuKernelGetFunction)     \
	X(MemAlloc, "cuMemAlloc", cuMemAlloc_v2)                             \
	X(MemFree, "cuMemFree", cuMemFree_v2)                                \
	X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync", cuMemcpyHtoDAsync_v2)        \
	X(MemsetD32Async, "cuMemsetD32Async", cuMemsetD32Async)              \
	X(StreamCreate, "cuStreamCreate", cuStreamCreate)                    \
	X(StreamSynchronize, "cuStreamSynchronize", cuStreamSynchronize)     \
	X(StreamDestroy, "cuStreamDestroy", cuStreamDestroy_v2)              \
	X(LaunchKernel, "cuLaunchKernel", cuLaunchKernel)                    \
	X(ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", cuThreadExchangeStreamCaptureMode)

struct vblas_driver {
#define FIELD(field, name, symbol) __typeof__(symbol) *field;
	DRIVER_CALLS(FIELD)
#undef FIELD
};

/* The driver, or NULL if there is none or it lacks an entry point (vblas_fail has been told). */
const struct vblas_driver *vblas_driver(void);

/* A symbol of the loaded libcuda, found in the ELF tables of the library itself: neither the dynamic linker nor the
 * driver's own lookup takes part, so no library that is placed before them answers. NULL if it is not found. */
void *vblas_driver_symbol(const char *name);

/* Keeps text and result for vblasLastError and returns r. */
CUresult vblas_fail(const char *call, CUresult r);

#endif
