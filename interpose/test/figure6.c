/*
 * figure6.c: the sequence of the paper's Figure 6, inside one capture: memory is used, freed, handed out again and used by
 * another node. Both nodes have the same address but mean two allocations.
 */
#include "common.h"

int main(void)
{
	CUmodule module;
	CUfunction add_one;
	CUstream s;
	CUdeviceptr first, second;
	CUgraph graph;
	start();
	CHECK(cuModuleLoadData(&module, module_ptx));
	CHECK(cuModuleGetFunction(&add_one, module, "add_one"));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	first = alloc(4096);
	launch_add_one(add_one, s, first, 1);
	CHECK(cuMemFree(first));
	second = alloc(4096);
	launch_add_one(add_one, s, second, 2);
	CHECK(cuStreamEndCapture(s, &graph));
	PRINT("first", first);
	PRINT("second", second);
	PRINT("graph", (uintptr_t)graph);
	return 0;
}
