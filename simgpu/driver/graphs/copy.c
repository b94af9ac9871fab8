/*
 * copy.c: descriptions of copies and fills, as calls, nodes and queued work hold them.
 *
 * In: the general three-dimensional description that every cuMemcpy call reduces to. Fails: INVALID_VALUE for addresses in no
 * live allocation, extents that do not fit or bad pitches; NOT_SUPPORTED for arrays.
 */
#include "graphs/graphs.h"

#include <string.h>

CUDA_MEMCPY3D copy_linear(CUmemorytype dst_type, uint64_t dst, CUmemorytype src_type, uint64_t src, uint64_t bytes)
{
	CUDA_MEMCPY3D p;
	memset(&p, 0, sizeof(p));
	p.srcMemoryType = src_type;
	p.dstMemoryType = dst_type;
	if (src_type == CU_MEMORYTYPE_HOST)
		p.srcHost = (const void *)(uintptr_t)src;
	else
		p.srcDevice = src;
	if (dst_type == CU_MEMORYTYPE_HOST)
		p.dstHost = (void *)(uintptr_t)dst;
	else
		p.dstDevice = dst;
	p.srcPitch = p.dstPitch = p.WidthInBytes = bytes;
	p.srcHeight = p.dstHeight = p.Height = p.Depth = 1;
	return p;
}

bool copy_empty(const CUDA_MEMCPY3D *p)
{
	return !p->WidthInBytes || !p->Height || !p->Depth;
}

static bool check_side(CUmemorytype type, uint64_t base, size_t pitch, size_t height, size_t x, size_t y, size_t z,
                       const CUDA_MEMCPY3D *p)
{
	if ((p->Height > 1 || p->Depth > 1) && pitch < x + p->WidthInBytes)
		return false;
	if (p->Depth > 1 && height < y + p->Height)
		return false;
	uint64_t first = base + (z * height + y) * pitch + x;
	uint64_t bytes = ((p->Depth - 1) * height + p->Height - 1) * pitch + p->WidthInBytes;
	if (!base)
		return false;
	if (type == CU_MEMORYTYPE_DEVICE || !range_host(first))
		return range_live(first, bytes);
	return true; /* host memory, pinned or not */
}

uint64_t copy_source(const CUDA_MEMCPY3D *p)
{
	return p->srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)p->srcHost : p->srcDevice;
}

uint64_t copy_target(const CUDA_MEMCPY3D *p)
{
	return p->dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)p->dstHost : p->dstDevice;
}

static bool linear_type(CUmemorytype t)
{
	return t == CU_MEMORYTYPE_HOST || t == CU_MEMORYTYPE_DEVICE || t == CU_MEMORYTYPE_UNIFIED;
}

CUresult copy_check(struct call *c, const CUDA_MEMCPY3D *p)
{
	if (p->srcMemoryType == CU_MEMORYTYPE_ARRAY || p->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		return call_unsupported_part(c, "arrays");
	if (!linear_type(p->srcMemoryType) || !linear_type(p->dstMemoryType) || p->srcLOD || p->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	if (copy_empty(p))
		return CUDA_SUCCESS;
	return check_side(p->srcMemoryType, copy_source(p), p->srcPitch, p->srcHeight, p->srcXInBytes, p->srcY, p->srcZ, p) &&
	               check_side(p->dstMemoryType, copy_target(p), p->dstPitch, p->dstHeight, p->dstXInBytes, p->dstY, p->dstZ, p)
	           ? CUDA_SUCCESS
	           : CUDA_ERROR_INVALID_VALUE;
}

CUresult fill_check(const CUDA_MEMSET_NODE_PARAMS *p)
{
	unsigned e = p->elementSize;
	if ((e != 1 && e != 2 && e != 4) || p->dst % e)
		return CUDA_ERROR_INVALID_VALUE;
	if (!p->width || !p->height)
		return CUDA_SUCCESS;
	if (p->height > 1 && (p->pitch < p->width * e || p->pitch % e))
		return CUDA_ERROR_INVALID_VALUE;
	if (p->width > UINT64_MAX / 4 || !range_live(p->dst, (p->height - 1) * p->pitch + p->width * e))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
