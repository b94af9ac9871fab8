/*
 * memcpy.c: the entry points of copies. copy.c makes the copies.
 */
#include "calls/calls.h"

static CUresult linear(struct call *c, CUstream stream, CUmemorytype dst_type, uint64_t dst, CUmemorytype src_type, uint64_t src,
                       size_t bytes, bool async)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct stream *s;
	if ((r = stream_resolve(c, stream, &s)))
		return r;
	CUDA_MEMCPY3D p = copy_linear(dst_type, dst, src_type, src, bytes);
	return copy_submit(c, s, &p, NULL, NULL, async);
}

#define HOST CU_MEMORYTYPE_HOST
#define DEVICE CU_MEMORYTYPE_DEVICE
#define UNIFIED CU_MEMORYTYPE_UNIFIED

CUresult sim_cuMemcpy(struct call *c, CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return linear(c, NULL, UNIFIED, dst, UNIFIED, src, bytes, false);
}

CUresult sim_cuMemcpyAsync(struct call *c, CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return linear(c, stream, UNIFIED, dst, UNIFIED, src, bytes, true);
}

CUresult sim_cuMemcpyHtoD_v2(struct call *c, CUdeviceptr dst, const void *src, size_t bytes)
{
	return linear(c, NULL, DEVICE, dst, HOST, (uintptr_t)src, bytes, false);
}

CUresult sim_cuMemcpyDtoH_v2(struct call *c, void *dst, CUdeviceptr src, size_t bytes)
{
	return linear(c, NULL, HOST, (uintptr_t)dst, DEVICE, src, bytes, false);
}

CUresult sim_cuMemcpyDtoD_v2(struct call *c, CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return linear(c, NULL, DEVICE, dst, DEVICE, src, bytes, false);
}

CUresult sim_cuMemcpyHtoDAsync_v2(struct call *c, CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	return linear(c, stream, DEVICE, dst, HOST, (uintptr_t)src, bytes, true);
}

CUresult sim_cuMemcpyDtoHAsync_v2(struct call *c, void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return linear(c, stream, HOST, (uintptr_t)dst, DEVICE, src, bytes, true);
}

CUresult sim_cuMemcpyDtoDAsync_v2(struct call *c, CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return linear(c, stream, DEVICE, dst, DEVICE, src, bytes, true);
}

static CUresult general(struct call *c, CUstream stream, const CUDA_MEMCPY3D *p, bool async)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct stream *s;
	if ((r = stream_resolve(c, stream, &s)))
		return r;
	return p ? copy_submit(c, s, p, NULL, NULL, async) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemcpy3D_v2(struct call *c, const CUDA_MEMCPY3D *copy)
{
	return general(c, NULL, copy, false);
}

CUresult sim_cuMemcpy3DAsync_v2(struct call *c, const CUDA_MEMCPY3D *copy, CUstream stream)
{
	return general(c, stream, copy, true);
}

/* A pitch of 0 stands for rows without a gap. */
static CUresult flat(struct call *c, CUstream stream, const CUDA_MEMCPY2D *q, bool async)
{
	if (!q)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D p = {
		.srcXInBytes = q->srcXInBytes, .srcY = q->srcY, .srcMemoryType = q->srcMemoryType, .srcHost = q->srcHost,
		.srcDevice = q->srcDevice, .srcArray = q->srcArray, .srcPitch = q->srcPitch ? q->srcPitch : q->srcXInBytes + q->WidthInBytes,
		.dstXInBytes = q->dstXInBytes, .dstY = q->dstY, .dstMemoryType = q->dstMemoryType, .dstHost = q->dstHost,
		.dstDevice = q->dstDevice, .dstArray = q->dstArray, .dstPitch = q->dstPitch ? q->dstPitch : q->dstXInBytes + q->WidthInBytes,
		.WidthInBytes = q->WidthInBytes, .Height = q->Height, .Depth = 1,
	};
	return general(c, stream, &p, async);
}

CUresult sim_cuMemcpy2D_v2(struct call *c, const CUDA_MEMCPY2D *copy)
{
	return flat(c, NULL, copy, false);
}

CUresult sim_cuMemcpy2DUnaligned_v2(struct call *c, const CUDA_MEMCPY2D *copy)
{
	return flat(c, NULL, copy, false);
}

CUresult sim_cuMemcpy2DAsync_v2(struct call *c, const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return flat(c, stream, copy, true);
}
