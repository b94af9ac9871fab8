/*
 * copy.c: copies and fills: checks, and how they enter a stream.
 *
 * In: the general three-dimensional description that every cuMemcpy call reduces to. Out: queued work or a node. Fails:
 * INVALID_VALUE for addresses in no live allocation, extents that do not fit or bad pitches; NOT_SUPPORTED for arrays.
 */
#include "sim.h"

#include <stdlib.h>
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

static uint64_t source(const CUDA_MEMCPY3D *p)
{
	return p->srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)p->srcHost : p->srcDevice;
}

static uint64_t target(const CUDA_MEMCPY3D *p)
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
	return check_side(p->srcMemoryType, source(p), p->srcPitch, p->srcHeight, p->srcXInBytes, p->srcY, p->srcZ, p) &&
	               check_side(p->dstMemoryType, target(p), p->dstPitch, p->dstHeight, p->dstXInBytes, p->dstY, p->dstZ, p)
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

static bool pageable(uint64_t addr)
{
	return range_host(addr) && !allocation_at(addr);
}

/* Replaces a pageable source by a packed copy of what it holds now. */
static void take_snapshot(struct copy *copy)
{
	CUDA_MEMCPY3D *p = &copy->p, packed = *p;
	packed.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy->snapshot = packed.dstHost = xalloc(p->WidthInBytes * p->Height * p->Depth);
	packed.dstXInBytes = packed.dstY = packed.dstZ = 0;
	packed.dstPitch = p->WidthInBytes;
	packed.dstHeight = p->Height;
	run_copy(&packed);
	p->srcMemoryType = CU_MEMORYTYPE_HOST;
	p->srcHost = copy->snapshot;
	p->srcXInBytes = p->srcY = p->srcZ = 0;
	p->srcPitch = p->WidthInBytes;
	p->srcHeight = p->Height;
}

CUresult copy_submit(struct call *c, struct stream *s, const CUDA_MEMCPY3D *p, bool async)
{
	bool capturing;
	CUresult r = capture_check(c, s, &capturing);
	if (r || (!capturing && !async && (r = capture_unsafe(c))) || (r = copy_check(c, p)))
		return r;
	call_detail(c, "dst=0x%llx\tsrc=0x%llx\twidth=%zu\theight=%zu\tdepth=%zu", (unsigned long long)target(p),
	            (unsigned long long)source(p), p->WidthInBytes, p->Height, p->Depth);
	if (copy_empty(p))
		return CUDA_SUCCESS;
	if (capturing) {
		if (!async) {
			capture_invalidate(s->capture);
			return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
		call_detail(c, "capture=%llu", (unsigned long long)s->capture->id);
		struct node *n = node_new(CU_GRAPH_NODE_TYPE_MEMCPY, c->ctx);
		n->copy = *p;
		return capture_node(s, n);
	}
	struct op *op = op_new(OP_COPY);
	op->copy.p = *p;
	bool from_pageable = pageable(source(p)), to_pageable = pageable(target(p));
	bool to_device = !range_host(target(p)), from_device = !range_host(source(p));
	if (async && from_pageable && to_device)
		take_snapshot(&op->copy);
	/* Only copies within the device, and asynchronous ones that touch no pageable target, leave the host free. */
	bool wait = to_pageable || (!async && !(from_device && to_device)) || (from_pageable && !to_device);
	op_ref(op);
	queue_add(s, op);
	r = wait ? queue_run(c->ctx, op) : CUDA_SUCCESS;
	op_unref(op);
	return r;
}
