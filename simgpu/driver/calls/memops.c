/*
 * memops.c: the entry points of memory operations on streams.
 *
 * In: values and addresses. Out: queued work, or a node of the graph that the stream captures. Fails: as graphs/memops.c says.
 */
#include "calls/calls.h"

#include <stdlib.h>

CUresult sim_cuStreamBatchMemOp_v2(struct call *c, CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags)
{
	CUresult r = call_context(c);
	struct stream *s;
	struct mem_ops *m;
	bool capturing;
	if (r || (r = stream_resolve(c, stream, &s)) || (r = capture_check(c, s, &capturing)) ||
	    (r = mem_ops_new(c, count, params, flags, &m)))
		return r;
	call_detail(c, "count=%u\taddress=0x%llx", count, (unsigned long long)params->waitValue.address);
	if (capturing) {
		call_detail(c, "capture=%llu", (unsigned long long)s->capture->id);
		struct node *n = node_new(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, c->ctx);
		n->mem_ops = m;
		return capture_node(s, n);
	}
	struct op *op = op_new(OP_MEM);
	op->mem_ops = m;
	queue_add(s, op);
	return CUDA_SUCCESS;
}

/* One operation, of 32 or 64 bits. */
#define ONE(NAME, TYPE, OPERATION, VALUE)                                                                                      \
	CUresult sim_cuStream##NAME##_v2(struct call *c, CUstream stream, CUdeviceptr addr, TYPE value, unsigned int flags)        \
	{                                                                                                                         \
		CUstreamBatchMemOpParams p = {.waitValue = {.operation = OPERATION, .address = addr, .VALUE = value, .flags = flags}}; \
		return sim_cuStreamBatchMemOp_v2(c, stream, 1, &p, 0);                                                                \
	}

ONE(WaitValue32, uint32_t, CU_STREAM_MEM_OP_WAIT_VALUE_32, value)
ONE(WriteValue32, uint32_t, CU_STREAM_MEM_OP_WRITE_VALUE_32, value)
ONE(WaitValue64, uint64_t, CU_STREAM_MEM_OP_WAIT_VALUE_64, value64)
ONE(WriteValue64, uint64_t, CU_STREAM_MEM_OP_WRITE_VALUE_64, value64)
