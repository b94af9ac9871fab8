/*
 * copy.c: copies and fills: checks, and how they enter a stream.
 *
 * In: the general three-dimensional description that every cuMemcpy call reduces to. Out: queued work or a node. Fails:
 * INVALID_VALUE for addresses in no live allocation, extents that do not fit or bad pitches; NOT_SUPPORTED for arrays.
 */
#include "calls/calls.h"

#include <stdlib.h>
#include <string.h>

/* A synchronous copy of so little to the device returns when the host's memory has been read. The device's is written later. */
#define STAGED (64 << 10)

static bool pageable(uint64_t addr)
{
	return range_host(addr) && !allocation_at(addr);
}

/* Replaces a pageable source by a packed copy of its present contents. */
static void take_snapshot(struct copy *copy)
{
	CUDA_MEMCPY3D *p = &copy->p, packed = *p;
	packed.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy->snapshot = packed.dstHost = xalloc(p->WidthInBytes * p->Height * p->Depth);
	packed.dstXInBytes = packed.dstY = packed.dstZ = 0;
	packed.dstPitch = p->WidthInBytes;
	packed.dstHeight = p->Height;
	run_copy(&packed, copy->from, copy->from);
	p->srcMemoryType = CU_MEMORYTYPE_HOST;
	p->srcHost = copy->snapshot;
	p->srcXInBytes = p->srcY = p->srcZ = 0;
	p->srcPitch = p->WidthInBytes;
	p->srcHeight = p->Height;
}

CUresult copy_submit(struct call *c, struct stream *s, const CUDA_MEMCPY3D *p, const struct context *from, const struct context *to, bool async)
{
	bool capturing;
	CUresult r = capture_check(c, s, &capturing);
	if (r || (!capturing && !async && (r = capture_unsafe(c))) || (r = copy_check(c, p)))
		return r;
	call_detail(c, "dst=0x%llx\tsrc=0x%llx\twidth=%zu\theight=%zu\tdepth=%zu", (unsigned long long)copy_target(p),
	            (unsigned long long)copy_source(p), p->WidthInBytes, p->Height, p->Depth);
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
	bool from_pageable = pageable(copy_source(p)), to_pageable = pageable(copy_target(p));
	bool to_device = !range_host(copy_target(p)), from_device = !range_host(copy_source(p));
	bool staged = from_pageable && to_device && (async || p->WidthInBytes * p->Height * p->Depth <= STAGED);
	if (staged && !async && (r = queue_run_stream(s)))
		return r;
	struct op *op = op_new(OP_COPY);
	op->copy = (struct copy){.p = *p, .from = from ? from : s->ctx, .to = to ? to : s->ctx};
	if (staged)
		take_snapshot(&op->copy);
	/* Copies within the device, staged ones, and asynchronous ones that touch no pageable target leave the host free. */
	bool wait = to_pageable || (!async && !staged && !(from_device && to_device)) || (from_pageable && !to_device);
	op_ref(op);
	queue_add(s, op);
	r = wait ? queue_run(s->ctx, op) : CUDA_SUCCESS;
	op_unref(op);
	return r;
}
