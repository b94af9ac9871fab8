/*
 * memset.c: the entry points of fills. Asynchronous with respect to the host in both forms, as documented, unless the
 * target is pinned host memory and the call is the synchronous one.
 */
#include "calls/calls.h"

static CUresult submit(struct call *c, CUstream stream, CUDA_MEMSET_NODE_PARAMS p, bool async)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct stream *s;
	bool capturing;
	if ((r = stream_resolve(c, stream, &s)) || (r = capture_check(c, s, &capturing)) ||
	    (!capturing && !async && (r = capture_unsafe(c))) || (r = fill_check(&p)))
		return r;
	call_detail(c, "dst=0x%llx\tvalue=%u\telem=%u\twidth=%zu\theight=%zu", (unsigned long long)p.dst, p.value, p.elementSize,
	            p.width, p.height);
	if (!p.width || !p.height)
		return CUDA_SUCCESS;
	if (capturing) {
		if (!async) {
			capture_invalidate(s->capture);
			return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
		call_detail(c, "capture=%llu", (unsigned long long)s->capture->id);
		struct node *n = node_new(CU_GRAPH_NODE_TYPE_MEMSET, c->ctx);
		n->fill = p;
		return capture_node(s, n);
	}
	struct op *op = op_new(OP_FILL);
	op->fill = p;
	op_ref(op);
	queue_add(s, op);
	if (!async && range_host(p.dst))
		r = queue_run(s->ctx, op);
	op_unref(op);
	return r;
}

/* sync, async, 2D sync and 2D async, for one element type */
#define MEMSET(BITS, TYPE)                                                                                                     \
	CUresult sim_cuMemsetD##BITS##_v2(struct call *c, CUdeviceptr dst, TYPE value, size_t count)                              \
	{                                                                                                                         \
		return submit(c, NULL, (CUDA_MEMSET_NODE_PARAMS){dst, 0, value, BITS / 8, count, 1}, false);                         \
	}                                                                                                                         \
	CUresult sim_cuMemsetD##BITS##Async(struct call *c, CUdeviceptr dst, TYPE value, size_t count, CUstream stream)           \
	{                                                                                                                         \
		return submit(c, stream, (CUDA_MEMSET_NODE_PARAMS){dst, 0, value, BITS / 8, count, 1}, true);                        \
	}                                                                                                                         \
	CUresult sim_cuMemsetD2D##BITS##_v2(struct call *c, CUdeviceptr dst, size_t pitch, TYPE value, size_t width,              \
	                                    size_t height)                                                                        \
	{                                                                                                                         \
		return submit(c, NULL, (CUDA_MEMSET_NODE_PARAMS){dst, pitch, value, BITS / 8, width, height}, false);                \
	}                                                                                                                         \
	CUresult sim_cuMemsetD2D##BITS##Async(struct call *c, CUdeviceptr dst, size_t pitch, TYPE value, size_t width,            \
	                                      size_t height, CUstream stream)                                                     \
	{                                                                                                                         \
		return submit(c, stream, (CUDA_MEMSET_NODE_PARAMS){dst, pitch, value, BITS / 8, width, height}, true);               \
	}

MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned int)
