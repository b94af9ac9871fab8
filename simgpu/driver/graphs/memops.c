/*
 * memops.c: descriptions of memory operations, as calls, nodes and queued work hold them.
 *
 * In: arrays of operations. Out: a copy. Fails: INVALID_VALUE for a number of operations that the driver does not take, an unknown
 * operation or flag, an address that is not aligned, and memory that is not live or managed; NOT_SUPPORTED for barriers and flushes.
 */
#include "graphs/graphs.h"

#include <stdlib.h>
#include <string.h>

#define MOST_OPS 255

static CUresult check(struct call *c, const CUstreamMemOpValue *v)
{
	uint64_t size = 4;
	switch (v->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_64: size = 8; /* fall through */
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		if (v->flags & CU_STREAM_WAIT_VALUE_FLUSH)
			return call_unsupported_part(c, "flushes of remote writes");
		if (v->flags > CU_STREAM_WAIT_VALUE_NOR)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_64: size = 8; /* fall through */
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		if (v->flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
	case CU_STREAM_MEM_OP_BARRIER: return call_unsupported_part(c, "barriers and flushes among memory operations");
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	const struct allocation *a = allocation_at(v->address);
	if (!a || a->kind == ALLOC_MANAGED || v->address % size || !range_live(v->address, size))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult mem_ops_new(struct call *c, unsigned count, const CUstreamBatchMemOpParams *ops, unsigned flags, struct mem_ops **out)
{
	if (!count || count > MOST_OPS || !ops || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		CUresult r = check(c, &ops[i].waitValue);
		if (r)
			return r;
	}
	struct mem_ops *m = xalloc(sizeof(*m) + count * sizeof(*ops));
	m->count = count;
	memcpy(m->ops, ops, count * sizeof(*ops));
	*out = m;
	return CUDA_SUCCESS;
}

struct mem_ops *mem_ops_copy(const struct mem_ops *m)
{
	size_t size = sizeof(*m) + m->count * sizeof(*m->ops);
	return memcpy(xalloc(size), m, size);
}

bool mem_ops_alike(const struct mem_ops *a, const struct mem_ops *b)
{
	for (unsigned i = 0; i < a->count && i < b->count; i++)
		if (a->ops[i].operation != b->ops[i].operation)
			return false;
	return a->count == b->count;
}
