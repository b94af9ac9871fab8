/*
 * cudart.h: shared by the parts of this CUDA runtime.
 *
 * A thin runtime with the public runtime ABI (CUDA 12, or 13 if CUDART_VERSION says so; the functions that PyTorch and vLLM
 * link). Every call becomes the driver call of the same meaning. The driver is reached through cuGetProcAddress, as the vendor's
 * runtime does it, so a library in front of the driver sees this process like a production one. It contains no tables of the
 * vendor and asks the driver for none.
 *
 * cudaError_t numbers equal CUresult numbers for all results of driver calls, so results pass through unchanged.
 */
#ifndef MEDUSA_CUDART_H
#define MEDUSA_CUDART_H

#define CUDA_EXACT_SYMBOLS
#include "cuda.h"

#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))
#ifndef CUDART_VERSION
#define CUDART_VERSION 12080
#endif

typedef int cudaError_t;
enum {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorInitializationError = 3,
	cudaErrorInvalidSymbol = 13,
	cudaErrorInvalidMemcpyDirection = 21,
	cudaErrorInsufficientDriver = 35,
	cudaErrorCallRequiresNewerDriver = 36,
	cudaErrorMissingConfiguration = 52,
	cudaErrorInvalidDeviceFunction = 98,
	cudaErrorInvalidDevice = 101,
	cudaErrorNotSupported = 801
};

typedef struct { unsigned int x, y, z; } dim3;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };

/* From CUDA 13 on, a capture's edge data is part of the unversioned call. */
#if CUDART_VERSION < 13000
#define CAPTURE_INFO cuStreamGetCaptureInfo_v2
#define CAPTURE_INFO_VERSION 11030
#else
#define CAPTURE_INFO cuStreamGetCaptureInfo_v3
#define CAPTURE_INFO_VERSION 12030
#endif

/* Driver entry points: base name, the symbol with the ABI used here, and the version to request. */
#define DRIVER_CALLS(X) \
	X(cuInit, cuInit, 2000) \
	X(cuDriverGetVersion, cuDriverGetVersion, 2020) \
	X(cuGetErrorName, cuGetErrorName, 6000) \
	X(cuGetErrorString, cuGetErrorString, 6000) \
	X(cuDeviceGet, cuDeviceGet, 2000) \
	X(cuDeviceGetCount, cuDeviceGetCount, 2000) \
	X(cuDeviceGetName, cuDeviceGetName, 2000) \
	X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040) \
	X(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020) \
	X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000) \
	X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010) \
	X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000) \
	X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020) \
	X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000) \
	X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, 11000) \
	X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000) \
	X(cuCtxGetCurrent, cuCtxGetCurrent, 4000) \
	X(cuCtxGetDevice, cuCtxGetDevice, 2000) \
	X(cuCtxSetCurrent, cuCtxSetCurrent, 4000) \
	X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000) \
	X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000) \
	X(cuCtxSynchronize, cuCtxSynchronize, 2000) \
	X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000) \
	X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050) \
	X(cuLibraryLoadData, cuLibraryLoadData, 12000) \
	X(cuLibraryGetKernel, cuLibraryGetKernel, 12000) \
	X(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000) \
	X(cuLibraryGetManaged, cuLibraryGetManaged, 12000) \
	X(cuLibraryGetKernelCount, cuLibraryGetKernelCount, 12040) \
	X(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000) \
	X(cuLibraryUnload, cuLibraryUnload, 12000) \
	X(cuKernelGetFunction, cuKernelGetFunction, 12000) \
	X(cuKernelSetAttribute, cuKernelSetAttribute, 12000) \
	X(cuFuncGetAttribute, cuFuncGetAttribute, 2020) \
	X(cuFuncSetAttribute, cuFuncSetAttribute, 9000) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000) \
	X(cuLaunchKernel, cuLaunchKernel, 4000) \
	X(cuLaunchKernelEx, cuLaunchKernelEx, 11060) \
	X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000) \
	X(cuLaunchHostFunc, cuLaunchHostFunc, 10000) \
	X(cuMemGetInfo, cuMemGetInfo_v2, 3020) \
	X(cuMemAlloc, cuMemAlloc_v2, 3020) \
	X(cuMemAllocManaged, cuMemAllocManaged, 6000) \
	X(cuMemFree, cuMemFree_v2, 3020) \
	X(cuMemHostAlloc, cuMemHostAlloc, 2020) \
	X(cuMemFreeHost, cuMemFreeHost, 2000) \
	X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, 3020) \
	X(cuMemHostRegister, cuMemHostRegister_v2, 6050) \
	X(cuMemHostUnregister, cuMemHostUnregister, 4000) \
	X(cuPointerGetAttributes, cuPointerGetAttributes, 7000) \
	X(cuMemAllocAsync, cuMemAllocAsync, 11020) \
	X(cuMemFreeAsync, cuMemFreeAsync, 11020) \
	X(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020) \
	X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020) \
	X(cuMemPoolSetAccess, cuMemPoolSetAccess, 11020) \
	X(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020) \
	X(cuMemcpy, cuMemcpy, 4000) \
	X(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020) \
	X(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020) \
	X(cuMemcpyDtoD, cuMemcpyDtoD_v2, 3020) \
	X(cuMemcpyAsync, cuMemcpyAsync, 4000) \
	X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020) \
	X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020) \
	X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020) \
	X(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000) \
	X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, 3020) \
	X(cuMemsetD8, cuMemsetD8_v2, 3020) \
	X(cuMemsetD8Async, cuMemsetD8Async, 3020) \
	X(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010) \
	X(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2, 11000) \
	X(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010) \
	X(cuIpcGetEventHandle, cuIpcGetEventHandle, 4010) \
	X(cuIpcOpenEventHandle, cuIpcOpenEventHandle, 4010) \
	X(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050) \
	X(cuStreamDestroy, cuStreamDestroy_v2, 4000) \
	X(cuStreamGetPriority, cuStreamGetPriority, 5050) \
	X(cuStreamQuery, cuStreamQuery, 2000) \
	X(cuStreamSynchronize, cuStreamSynchronize, 2000) \
	X(cuStreamWaitEvent, cuStreamWaitEvent, 3020) \
	X(cuStreamAddCallback, cuStreamAddCallback, 5000) \
	X(cuStreamIsCapturing, cuStreamIsCapturing, 10000) \
	X(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10010) \
	X(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, 12030) \
	X(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_v2, 12030) \
	X(cuStreamEndCapture, cuStreamEndCapture, 10000) \
	X(cuStreamGetCaptureInfo, CAPTURE_INFO, CAPTURE_INFO_VERSION) \
	X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010) \
	X(cuEventCreate, cuEventCreate, 2000) \
	X(cuEventDestroy, cuEventDestroy_v2, 4000) \
	X(cuEventRecord, cuEventRecord, 2000) \
	X(cuEventRecordWithFlags, cuEventRecordWithFlags, 11010) \
	X(cuEventQuery, cuEventQuery, 2000) \
	X(cuEventSynchronize, cuEventSynchronize, 2000) \
	X(cuEventElapsedTime, cuEventElapsedTime, 2000) \
	X(cuGraphGetNodes, cuGraphGetNodes, 10000) \
	X(cuGraphNodeGetDependencies, cuGraphNodeGetDependencies_v2, 12030) \
	X(cuGraphConditionalHandleCreate, cuGraphConditionalHandleCreate, 12030) \
	X(cuGraphRetainUserObject, cuGraphRetainUserObject, 11030) \
	X(cuUserObjectCreate, cuUserObjectCreate, 11030) \
	X(cuUserObjectRelease, cuUserObjectRelease, 11030) \
	X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040) \
	X(cuGraphExecUpdate, cuGraphExecUpdate_v2, 12000) \
	X(cuGraphLaunch, cuGraphLaunch, 10000) \
	X(cuGraphDestroy, cuGraphDestroy, 10000) \
	X(cuGraphExecDestroy, cuGraphExecDestroy, 10000) \
	X(cuGraphDebugDotPrint, cuGraphDebugDotPrint, 11030) \
	X(cuGetProcAddress, cuGetProcAddress_v2, 12000)

struct driver {
#define X(base, symbol, version) __typeof__(&symbol) base;
	DRIVER_CALLS(X)
#undef X
};
extern struct driver driver;

/* driver.c. Finds and initializes the driver; for calls that need no context. */
cudaError_t driver_ready(void);
/* The same with a context current on this thread: its current one, or else the primary one of the thread's device. */
cudaError_t context_ready(void);
cudaError_t context_of(int device, CUcontext *ctx);
int device_current(void);
/* Notes a failure for cudaGetLastError and returns it. */
cudaError_t result(cudaError_t r);

/* stack.c: called at the points at which callers are about to build parameters, and for each allocation. */
void stack_prepare(void);
void stack_allocated(CUdeviceptr p);

/* return CALL(cuX, args): calls the driver's cuX, or returns an error if the driver lacks it. */
#define CALL(name, ...) result(driver.name ? (cudaError_t)driver.name(__VA_ARGS__) : cudaErrorCallRequiresNewerDriver)
#define NEED_DRIVER() do { cudaError_t e_ = driver_ready(); if (e_) return result(e_); } while (0)
#define NEED_CONTEXT() do { cudaError_t e_ = context_ready(); if (e_) return result(e_); } while (0)

/* registration.c. Returns the function behind a host stub, and loads its fat binary at the first use. */
cudaError_t function_of(const void *stub, CUfunction *f);
/* The memory behind a host variable, in the current context. */
cudaError_t variable_of(const void *symbol, CUdeviceptr *p, size_t *bytes);

#endif
