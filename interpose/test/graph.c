/*
 * graph.c: captures a fork and join of kernels, a memset and a copy, instantiates it, and checks its results:
 *
 *     add_one(a) --+-- memset(b) --+-- add(b, c)
 *                  +-- copy a to c +
 */
#include "common.h"

enum { N = 64, BYTES = N * 4 };

int main(void)
{
	CUmodule module;
	CUfunction add_one, add;
	CUstream main_stream, side;
	CUevent fork, join;
	CUdeviceptr a, b, c;
	CUgraph graph;
	CUgraphExec exec;
	CUDA_GRAPH_INSTANTIATE_PARAMS how = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY};
	unsigned int n = N;
	int back[N];
	start();
	CHECK(cuModuleLoadData(&module, module_ptx));
	CHECK(cuModuleGetFunction(&add_one, module, "add_one"));
	CHECK(cuModuleGetFunction(&add, module, "add"));
	CHECK(cuStreamCreate(&main_stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	a = alloc(BYTES);
	b = alloc(BYTES);
	c = alloc(2 * BYTES);
	CHECK(cuMemsetD32(a, 4, N));
	CHECK(cuCtxSynchronize()); /* the streams below do not synchronize with the null stream */

	MARK(medusa_mark_graph, "decode:4", 4);
	CHECK(cuStreamBeginCapture(main_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch_add_one(add_one, main_stream, a, n);
	CHECK(cuEventRecord(fork, main_stream));
	CHECK(cuStreamWaitEvent(side, fork, 0));
	CHECK(cuMemsetD32Async(b, 10, N, side));
	CHECK(cuMemcpyDtoDAsync(c + BYTES, a, BYTES, main_stream));
	CHECK(cuEventRecord(join, side));
	CHECK(cuStreamWaitEvent(main_stream, join, 0));
	{
		CUdeviceptr src = c + BYTES; /* the middle of an allocation */
		void *params[] = {&b, &n, &src};
		CHECK(cuLaunchKernel(add, 2, 1, 1, 32, 1, 1, 0, main_stream, params, NULL));
	}
	CHECK(cuStreamEndCapture(main_stream, &graph));
	CHECK(cuGraphInstantiateWithParams(&exec, graph, &how));
	CHECK(cuGraphLaunch(exec, main_stream));
	CHECK(cuStreamSynchronize(main_stream));
	CHECK(cuMemcpyDtoH(back, b, BYTES));
	for (int i = 0; i < N; i++)
		if (back[i] != 15)
			return 5;
	PRINT("a", a);
	PRINT("b", b);
	PRINT("c", c);
	PRINT("graph", (uintptr_t)graph);
	PRINT("exec", (uintptr_t)exec);
	PRINT("add_one", (uintptr_t)add_one);
	if (MEDUSA(medusa_graph_count)) {
		char label[32];
		uint64_t seen;
		PRINT("count", MEDUSA(medusa_graph_count)());
		CHECK(MEDUSA(medusa_graph_get)(0, label, sizeof label, &seen));
		printf("label %s\n", label);
		PRINT("instantiated", seen);
		CHECK(cuGraphExecDestroy(exec));
		CHECK(MEDUSA(medusa_graph_get)(0, label, sizeof label, &seen));
		PRINT("after-destroy", seen);
	}
	return 0;
}
