/*
 * memory.c: allocations, copies, fills, pointers, inter-process handles.
 *
 * In: addresses and sizes. Out: the driver's memory calls; the kind of a copy selects its direction. Fails: driver calls;
 * INVALID_MEMCPY_DIRECTION for an unknown kind.
 */
#include "cudart.h"

#include <string.h>

static CUdeviceptr address(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

EXPORT cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	NEED_CONTEXT();
	return CALL(cuMemGetInfo, free, total);
}

EXPORT cudaError_t cudaMalloc(void **p, size_t bytes)
{
	NEED_CONTEXT();
	if (!p)
		return result(cudaErrorInvalidValue);
	*p = NULL;
	cudaError_t r = bytes ? CALL(cuMemAlloc, (CUdeviceptr *)p, bytes) : cudaSuccess;
	if (*p)
		stack_allocated(address(*p));
	return r;
}

EXPORT cudaError_t cudaFree(void *p)
{
	NEED_CONTEXT();
	return p ? CALL(cuMemFree, address(p)) : cudaSuccess;
}

EXPORT cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned int flags)
{
	NEED_CONTEXT();
	return CALL(cuMemHostAlloc, p, bytes, flags);
}

EXPORT cudaError_t cudaHostGetDevicePointer(void **p, void *host, unsigned int flags)
{
	NEED_CONTEXT();
	return CALL(cuMemHostGetDevicePointer, (CUdeviceptr *)p, host, flags);
}

EXPORT cudaError_t cudaFreeHost(void *p)
{
	NEED_CONTEXT();
	return p ? CALL(cuMemFreeHost, p) : cudaSuccess;
}

EXPORT cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned int flags)
{
	NEED_CONTEXT();
	return CALL(cuMemHostRegister, p, bytes, flags);
}

EXPORT cudaError_t cudaHostUnregister(void *p)
{
	NEED_CONTEXT();
	return CALL(cuMemHostUnregister, p);
}

EXPORT cudaError_t cudaMallocAsync(void **p, size_t bytes, CUstream stream)
{
	NEED_CONTEXT();
	return CALL(cuMemAllocAsync, (CUdeviceptr *)p, bytes, stream);
}

EXPORT cudaError_t cudaFreeAsync(void *p, CUstream stream)
{
	NEED_CONTEXT();
	return CALL(cuMemFreeAsync, address(p), stream);
}

EXPORT cudaError_t cudaMemPoolGetAttribute(CUmemoryPool pool, int attr, void *value)
{
	NEED_CONTEXT();
	return CALL(cuMemPoolGetAttribute, pool, attr, value);
}

EXPORT cudaError_t cudaMemPoolSetAttribute(CUmemoryPool pool, int attr, void *value)
{
	NEED_CONTEXT();
	return CALL(cuMemPoolSetAttribute, pool, attr, value);
}

EXPORT cudaError_t cudaMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	NEED_CONTEXT();
	return CALL(cuMemPoolSetAccess, pool, map, count);
}

EXPORT cudaError_t cudaMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	NEED_CONTEXT();
	return CALL(cuMemPoolTrimTo, pool, keep);
}

EXPORT cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	NEED_CONTEXT();
	if (!bytes)
		return cudaSuccess;
	switch (kind) {
	case cudaMemcpyHostToHost: memmove(dst, src, bytes); return cudaSuccess;
	case cudaMemcpyHostToDevice: return CALL(cuMemcpyHtoD, address(dst), src, bytes);
	case cudaMemcpyDeviceToHost: return CALL(cuMemcpyDtoH, dst, address(src), bytes);
	case cudaMemcpyDeviceToDevice: return CALL(cuMemcpyDtoD, address(dst), address(src), bytes);
	case cudaMemcpyDefault: return CALL(cuMemcpy, address(dst), address(src), bytes);
	}
	return result(cudaErrorInvalidMemcpyDirection);
}

EXPORT cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, CUstream stream)
{
	NEED_CONTEXT();
	if (!bytes)
		return cudaSuccess;
	switch (kind) {
	case cudaMemcpyHostToDevice: return CALL(cuMemcpyHtoDAsync, address(dst), src, bytes, stream);
	case cudaMemcpyDeviceToHost: return CALL(cuMemcpyDtoHAsync, dst, address(src), bytes, stream);
	case cudaMemcpyDeviceToDevice: return CALL(cuMemcpyDtoDAsync, address(dst), address(src), bytes, stream);
	case cudaMemcpyHostToHost:
	case cudaMemcpyDefault: return CALL(cuMemcpyAsync, address(dst), address(src), bytes, stream);
	}
	return result(cudaErrorInvalidMemcpyDirection);
}

EXPORT cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t bytes, CUstream stream)
{
	NEED_CONTEXT();
	CUcontext to, from;
	cudaError_t r = context_of(dst_device, &to);
	if (r || (r = context_of(src_device, &from)))
		return result(r);
	return CALL(cuMemcpyPeerAsync, address(dst), to, address(src), from, bytes, stream);
}

/* The memory type of one side of a 2D copy, by kind; unified if the kind leaves it open. */
static CUmemorytype side(enum cudaMemcpyKind kind, enum cudaMemcpyKind host, enum cudaMemcpyKind device)
{
	return kind == cudaMemcpyDefault                               ? CU_MEMORYTYPE_UNIFIED
	       : kind == device || kind == cudaMemcpyDeviceToDevice ? CU_MEMORYTYPE_DEVICE
	       : kind == host || kind == cudaMemcpyHostToHost       ? CU_MEMORYTYPE_HOST
	                                                               : CU_MEMORYTYPE_UNIFIED;
}

EXPORT cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                                     size_t height, enum cudaMemcpyKind kind, CUstream stream)
{
	NEED_CONTEXT();
	if (!width || !height)
		return cudaSuccess;
	CUDA_MEMCPY2D c = {.WidthInBytes = width, .Height = height, .srcPitch = src_pitch, .dstPitch = dst_pitch};
	c.srcMemoryType = side(kind, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost);
	c.dstMemoryType = side(kind, cudaMemcpyDeviceToHost, cudaMemcpyHostToDevice);
	c.srcHost = src;
	c.srcDevice = address(src);
	c.dstHost = dst;
	c.dstDevice = address(dst);
	return CALL(cuMemcpy2DAsync, &c, stream);
}

EXPORT cudaError_t cudaMemset(void *p, int value, size_t count)
{
	NEED_CONTEXT();
	return count ? CALL(cuMemsetD8, address(p), (unsigned char)value, count) : cudaSuccess;
}

EXPORT cudaError_t cudaMemsetAsync(void *p, int value, size_t count, CUstream stream)
{
	NEED_CONTEXT();
	return count ? CALL(cuMemsetD8Async, address(p), (unsigned char)value, count, stream) : cudaSuccess;
}

EXPORT cudaError_t cudaGetSymbolAddress(void **p, const void *symbol)
{
	NEED_CONTEXT();
	size_t bytes;
	return p ? result(variable_of(symbol, (CUdeviceptr *)p, &bytes)) : result(cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	NEED_CONTEXT();
	CUdeviceptr p;
	size_t bytes;
	cudaError_t r = variable_of(symbol, &p, &bytes);
	if (!r && (offset > bytes || count > bytes - offset))
		r = cudaErrorInvalidValue;
	return r ? result(r) : cudaMemcpy((void *)(uintptr_t)(p + offset), src, count, kind);
}

struct pointer_attributes { int type, device; void *device_pointer, *host_pointer; };
enum { UNREGISTERED = 0, MANAGED = 3, NO_DEVICE = -2 };

EXPORT cudaError_t cudaPointerGetAttributes(struct pointer_attributes *a, const void *p)
{
	NEED_CONTEXT();
	if (!a)
		return result(cudaErrorInvalidValue);
	unsigned int type = 0, managed = 0;
	int device = 0;
	*a = (struct pointer_attributes){UNREGISTERED, NO_DEVICE, NULL, NULL};
	CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
	                             CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
	                             CU_POINTER_ATTRIBUTE_HOST_POINTER};
	void *values[] = {&type, &managed, &device, &a->device_pointer, &a->host_pointer};
	cudaError_t r = CALL(cuPointerGetAttributes, 5, ids, values, address(p));
	if (r)
		return r;
	a->type = managed ? MANAGED : (int)type;
	if (a->type == UNREGISTERED)
		a->host_pointer = (void *)(uintptr_t)p;
	else
		a->device = device;
	return cudaSuccess;
}

EXPORT cudaError_t cudaIpcGetMemHandle(CUipcMemHandle *handle, void *p)
{
	NEED_CONTEXT();
	return CALL(cuIpcGetMemHandle, handle, address(p));
}

EXPORT cudaError_t cudaIpcOpenMemHandle(void **p, CUipcMemHandle handle, unsigned int flags)
{
	NEED_CONTEXT();
	return CALL(cuIpcOpenMemHandle, (CUdeviceptr *)p, handle, flags);
}

EXPORT cudaError_t cudaIpcCloseMemHandle(void *p)
{
	NEED_CONTEXT();
	return CALL(cuIpcCloseMemHandle, address(p));
}
