/*
 * memop_cases.c: memory operations: waits for values in memory, and writes of values.
 */
#include "conformance.h"

static CUstream s, t;
static CUdeviceptr p;

static CUresult open(void)
{
	CUresult r = cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
	if (!r)
		r = cu.cuStreamCreate(&t, CU_STREAM_NON_BLOCKING);
	if (!r)
		r = cu.cuMemAlloc_v2(&p, 64);
	if (!r)
		r = cu.cuMemsetD32_v2(p, 0, 16);
	return r ? r : cu.cuCtxSynchronize();
}

static CUresult close(void)
{
	CUresult r = cu.cuStreamDestroy_v2(s);
	if (!r)
		r = cu.cuStreamDestroy_v2(t);
	return r ? r : cu.cuMemFree_v2(p);
}

static CUstreamBatchMemOpParams op(CUstreamBatchMemOpType type, CUdeviceptr at, uint64_t value, unsigned flags)
{
	return (CUstreamBatchMemOpParams){.writeValue = {.operation = type, .address = at, .value64 = value, .flags = flags}};
}

static const char *writes(void)
{
	uint32_t got[4] = {0};
	OK(open());
	OK(cu.cuMemsetD32Async(p, 9, 4, s));
	OK(cu.cuStreamWriteValue32_v2(s, p, 7, 0));
	OK(cu.cuStreamWriteValue64_v2(s, p + 8, 0x100000002ull, 0));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(got, p, 16));
	CHECK(got[0] == 7 && got[1] == 9 && got[2] == 2 && got[3] == 1);
	OK(close());
	return NULL;
}

static const char *conditions(void)
{
	OK(open());
	OK(cu.cuStreamWriteValue32_v2(s, p, 5, 0));
	OK(cu.cuStreamWaitValue32_v2(s, p, 5, CU_STREAM_WAIT_VALUE_EQ));
	OK(cu.cuStreamWaitValue32_v2(s, p, 4, CU_STREAM_WAIT_VALUE_GEQ));
	OK(cu.cuStreamWaitValue32_v2(s, p, 0xfffffff0u, CU_STREAM_WAIT_VALUE_GEQ)); /* around the end of the numbers */
	OK(cu.cuStreamWaitValue32_v2(s, p, 4, CU_STREAM_WAIT_VALUE_AND));
	OK(cu.cuStreamWaitValue32_v2(s, p, 1, CU_STREAM_WAIT_VALUE_NOR));
	OK(cu.cuStreamWriteValue64_v2(s, p + 8, 1ull << 40, 0));
	OK(cu.cuStreamWaitValue64_v2(s, p + 8, 1ull << 40, CU_STREAM_WAIT_VALUE_AND));
	OK(cu.cuStreamSynchronize(s));
	OK(close());
	return NULL;
}

/* t waits for a value that s writes only later. */
static const char *waits(void)
{
	uint32_t got = 0;
	OK(open());
	OK(cu.cuStreamWaitValue32_v2(t, p, 3, CU_STREAM_WAIT_VALUE_EQ));
	OK(cu.cuMemcpyDtoDAsync_v2(p + 4, p + 8, 4, t));
	WANT(CUDA_ERROR_NOT_READY, cu.cuStreamQuery(t));
	OK(cu.cuMemsetD32Async(p + 8, 11, 1, s));
	OK(cu.cuStreamWriteValue32_v2(s, p, 3, 0));
	OK(cu.cuStreamSynchronize(t));
	OK(cu.cuMemcpyDtoH_v2(&got, p + 4, 4));
	CHECK(got == 11);
	OK(close());
	return NULL;
}

static const char *batch(void)
{
	uint64_t got = 0;
	OK(open());
	CUstreamBatchMemOpParams ops[] = {
		op(CU_STREAM_MEM_OP_WRITE_VALUE_64, p, UINT64_MAX, 0),
		op(CU_STREAM_MEM_OP_WRITE_VALUE_32, p, 1, 0),
		op(CU_STREAM_MEM_OP_WAIT_VALUE_32, p + 4, UINT32_MAX, CU_STREAM_WAIT_VALUE_EQ),
		op(CU_STREAM_MEM_OP_WRITE_VALUE_32, p, 2, 0),
	};
	OK(cu.cuStreamBatchMemOp_v2(s, 4, ops, 0));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(&got, p, 8));
	CHECK(got == 0xffffffff00000002ull);
	OK(close());
	return NULL;
}

static const char *invalid(void)
{
	CUstreamBatchMemOpParams many[256], unknown;
	OK(open());
	for (int i = 0; i < 256; i++)
		many[i] = op(CU_STREAM_MEM_OP_WRITE_VALUE_32, p, 1, 0);
	unknown = op((CUstreamBatchMemOpType)77, p, 1, 0);
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuStreamBatchMemOp_v2(s, 256, many, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuStreamBatchMemOp_v2(s, 1, many, 1));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuStreamBatchMemOp_v2(s, 1, &unknown, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuStreamWriteValue32_v2(s, p + 2, 1, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuStreamWriteValue64_v2(s, p + 4, 1, 0));
	OK(cu.cuStreamSynchronize(s));
	OK(close());
	return NULL;
}

static const char *captured(void)
{
	CUgraph g;
	CUgraphNode n[2];
	CUgraphNodeType type;
	CUDA_BATCH_MEM_OP_NODE_PARAMS q = {0};
	uint32_t got = 1;
	size_t count = 2;
	OK(open());
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CUresult first = cu.cuStreamWriteValue32_v2(s, p, 7, 0), second = cu.cuStreamWaitValue32_v2(s, p, 7, CU_STREAM_WAIT_VALUE_EQ);
	OK(cu.cuStreamEndCapture(s, &g));
	CHECK(!first && !second);
	OK(cu.cuGraphGetNodes(g, n, &count));
	CHECK(count == 2);
	OK(cu.cuGraphNodeGetType(n[0], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
	OK(cu.cuGraphBatchMemOpNodeGetParams(n[0], &q));
	CHECK(q.count == 1 && q.flags == 0 && q.paramArray[0].operation == CU_STREAM_MEM_OP_WRITE_VALUE_32);
	CHECK(q.paramArray[0].writeValue.address == p && q.paramArray[0].writeValue.value == 7);
	OK(cu.cuMemcpyDtoH_v2(&got, p, 4));
	CHECK(got == 0); /* no operation ran */
	OK(cu.cuGraphDestroy(g));
	OK(close());
	return NULL;
}

static const char *node(void)
{
	CUgraph g;
	CUgraphNode n;
	CUgraphExec x, y;
	uint32_t got[2] = {0};
	OK(open());
	CUstreamBatchMemOpParams ops[2] = {op(CU_STREAM_MEM_OP_WRITE_VALUE_32, p, 1, 0), op(CU_STREAM_MEM_OP_WRITE_VALUE_32, p + 4, 2, 0)};
	CUDA_BATCH_MEM_OP_NODE_PARAMS q = {.ctx = context, .count = 2, .paramArray = ops};
	OK(cu.cuGraphCreate(&g, 0));
	OK(cu.cuGraphAddBatchMemOpNode(&n, g, NULL, 0, &q));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	ops[0].writeValue.value = 30; /* the node has a copy */
	ops[1].writeValue.value = 40;
	OK(cu.cuGraphBatchMemOpNodeSetParams(n, &q));
	OK(cu.cuGraphInstantiateWithFlags(&y, g, 0));
	OK(cu.cuGraphLaunch(x, s));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(got, p, 8));
	CHECK(got[0] == 1 && got[1] == 2);
	OK(cu.cuGraphLaunch(y, s));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(got, p, 8));
	CHECK(got[0] == 30 && got[1] == 40);
	ops[1].writeValue.value = 50;
	OK(cu.cuGraphExecBatchMemOpNodeSetParams(x, n, &q));
	OK(cu.cuGraphLaunch(x, s));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(got, p, 8));
	CHECK(got[0] == 30 && got[1] == 50);
	q.count = 1;
	CHECK(cu.cuGraphExecBatchMemOpNodeSetParams(x, n, &q) != CUDA_SUCCESS);
	OK(cu.cuGraphExecDestroy(x));
	OK(cu.cuGraphExecDestroy(y));
	OK(cu.cuGraphDestroy(g));
	OK(close());
	return NULL;
}

static const struct conformance_case cases[] = {
	{"memop/write", "cuStreamWriteValue32, cuStreamWriteValue64: in stream order", writes, SHARED},
	{"memop/conditions", "CUstreamWaitValue_flags: GEQ (cyclic), EQ, AND, NOR", conditions, SHARED},
	{"memop/wait", "cuStreamWaitValue32: work submitted after it waits for the value", waits, SHARED},
	{"memop/batch", "cuStreamBatchMemOp: in the order of the array", batch, SHARED},
	{"memop/invalid", "cuStreamBatchMemOp: at most 255 operations, no flags, known operations, natural alignment", invalid, SHARED},
	{"memop/captured", "cuStreamWriteValue32, cuStreamWaitValue32 in a capture: nodes; cuGraphBatchMemOpNodeGetParams", captured, SHARED},
	{"memop/node", "cuGraphAddBatchMemOpNode copies the array; cuGraphExecBatchMemOpNodeSetParams: not the number of operations", node, SHARED},
};
GROUP(memop_cases, cases);
