/*
 * library.c: further functions that torch for CUDA 13 links: explicitly loaded libraries, graphs that are extended, memory of
 * other kinds.
 *
 * In: the runtime's calls. Out: the driver's calls of the same meaning; handles of libraries and kernels are the driver's own.
 * Fails: driver calls, with the driver's result; NOT_SUPPORTED if the runtime's arguments would have to be translated.
 */
#include "cudart.h"

EXPORT cudaError_t cudaLibraryLoadData(CUlibrary *library, const void *code, void *jit_options, void **jit_values, unsigned n_jit,
                                       void *options, void **values, unsigned n)
{
	NEED_CONTEXT();
	(void)jit_options, (void)jit_values, (void)options, (void)values;
	if (n_jit || n)
		return result(cudaErrorNotSupported);
	return CALL(cuLibraryLoadData, library, code, NULL, NULL, 0, NULL, NULL, 0);
}

EXPORT cudaError_t cudaLibraryLoadFromFile(CUlibrary *library, const char *file, void *jit_options, void **jit_values, unsigned n_jit,
                                           void *options, void **values, unsigned n)
{
	NEED_CONTEXT();
	(void)jit_options, (void)jit_values, (void)options, (void)values;
	if (n_jit || n)
		return result(cudaErrorNotSupported);
	return CALL(cuLibraryLoadFromFile, library, file, NULL, NULL, 0, NULL, NULL, 0);
}

EXPORT cudaError_t cudaLibraryUnload(CUlibrary library)
{
	NEED_CONTEXT();
	return CALL(cuLibraryUnload, library);
}

EXPORT cudaError_t cudaLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	NEED_CONTEXT();
	return CALL(cuLibraryGetKernel, kernel, library, name);
}

EXPORT cudaError_t cudaLibraryGetKernelCount(unsigned *count, CUlibrary library)
{
	NEED_CONTEXT();
	return CALL(cuLibraryGetKernelCount, count, library);
}

EXPORT cudaError_t cudaLibraryGetGlobal(void **p, size_t *bytes, CUlibrary library, const char *name)
{
	NEED_CONTEXT();
	return CALL(cuLibraryGetGlobal, (CUdeviceptr *)p, bytes, library, name);
}

EXPORT cudaError_t cudaLibraryGetManaged(void **p, size_t *bytes, CUlibrary library, const char *name)
{
	NEED_CONTEXT();
	return CALL(cuLibraryGetManaged, (CUdeviceptr *)p, bytes, library, name);
}

EXPORT cudaError_t cudaKernelSetAttributeForDevice(CUkernel kernel, CUfunction_attribute attr, int value, int device)
{
	NEED_CONTEXT();
	return CALL(cuKernelSetAttribute, attr, value, kernel, device);
}

EXPORT cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned flags)
{
	NEED_CONTEXT();
	return CALL(cuMemAllocManaged, (CUdeviceptr *)p, bytes, flags);
}

EXPORT cudaError_t cudaMallocHost(void **p, size_t bytes)
{
	NEED_CONTEXT();
	return CALL(cuMemHostAlloc, p, bytes, 0);
}

EXPORT cudaError_t cudaStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                                                 size_t count, CUstreamCaptureMode mode)
{
	NEED_CONTEXT();
	return CALL(cuStreamBeginCaptureToGraph, stream, graph, deps, edges, count, mode);
}

/* The form of CUDA 13. The earlier function of this name has no edge data. */
EXPORT cudaError_t cudaStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *deps, const CUgraphEdgeData *edges, size_t count,
                                                       unsigned flags)
{
	NEED_CONTEXT();
	if (CUDART_VERSION < 13000)
		return result(cudaErrorNotSupported);
	return CALL(cuStreamUpdateCaptureDependencies, stream, deps, edges, count, flags);
}

EXPORT cudaError_t cudaGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph graph, unsigned value, unsigned flags)
{
	NEED_CONTEXT();
	CUcontext ctx;
	cudaError_t r = CALL(cuCtxGetCurrent, &ctx);
	return r ? r : CALL(cuGraphConditionalHandleCreate, handle, graph, ctx, value, flags);
}

EXPORT cudaError_t cudaGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
	NEED_CONTEXT();
	return CALL(cuGraphRetainUserObject, graph, object, count, flags);
}

EXPORT cudaError_t cudaUserObjectCreate(CUuserObject *object, void *p, CUhostFn destroy, unsigned count, unsigned flags)
{
	NEED_CONTEXT();
	return CALL(cuUserObjectCreate, object, p, destroy, count, flags);
}

EXPORT cudaError_t cudaUserObjectRelease(CUuserObject object, unsigned count)
{
	NEED_CONTEXT();
	return CALL(cuUserObjectRelease, object, count);
}

#define UNSUPPORTED(name) \
	EXPORT cudaError_t name(void) { return result(cudaErrorNotSupported); }
UNSUPPORTED(cudaGraphAddNode)
UNSUPPORTED(cudaLibraryGetUnifiedFunction)
UNSUPPORTED(cudaDeviceGetGraphMemAttribute)
UNSUPPORTED(cudaDeviceSetGraphMemAttribute)
