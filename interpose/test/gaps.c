/*
 * gaps.c: allocates equal pieces with the call that the argument names, and prints their addresses. Small pieces share pages and
 * touch without gaps. "module": a module's variable follows each piece.
 */
#include "common.h"

static void print_variable(void)
{
	CUmodule module;
	CUdeviceptr at;
	size_t bytes;
	CHECK(cuModuleLoadData(&module, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .u32 variable[128];\n"));
	CHECK(cuModuleGetGlobal(&at, &bytes, module, "variable"));
	PRINT("at", at);
}

int main(int argc, char **argv)
{
	enum { N = 8 };
	const char *how = argc > 1 ? argv[1] : "";
	CUdeviceptr p[N] = {0};
	CUstream s;
	CUmemoryPool pool;
	CUgraph graph;
	size_t bytes = strstr(how, "large") ? (size_t)4 << 20 : 512;
	start();
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuDeviceGetDefaultMemPool(&pool, 0));
	if (strstr(how, "captured"))
		CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	for (int i = 0; i < N; i++) {
		void *host = NULL;
		if (strstr(how, "pinned"))
			CHECK(cuMemHostAlloc(&host, bytes, 0));
		else if (strstr(how, "page-locked"))
			CHECK(cuMemAllocHost(&host, bytes));
		else if (strstr(how, "stream"))
			CHECK(cuMemAllocAsync(&p[i], bytes, s));
		else if (strstr(how, "pool"))
			CHECK(cuMemAllocFromPoolAsync(&p[i], bytes, pool, s));
		else
			CHECK(cuMemAlloc(&p[i], bytes));
		PRINT("at", host ? (CUdeviceptr)(uintptr_t)host : p[i]);
		if (strstr(how, "module"))
			print_variable();
	}
	if (strstr(how, "captured")) {
		size_t nodes = 0;
		CHECK(cuStreamEndCapture(s, &graph));
		CHECK(cuGraphGetNodes(graph, NULL, &nodes));
		PRINT("nodes", nodes);
	}
	return 0;
}
