/*
 * old.c: captures, instantiates, and releases contexts, with the first forms of the functions, which current runtimes and libraries
 * still request from the driver. Prints addresses of allocations as `at`.
 */
#include "common.h"

static void *first_form(const char *name, int version, uint64_t flags)
{
	void *fn = NULL;
	CUdriverProcAddressQueryResult status;
	CHECK(cuGetProcAddress(name, &fn, version, flags, &status));
	return fn;
}

static void captured(uint64_t flags)
{
	CUresult (*begin)(CUstream) = (CUresult(*)(CUstream))first_form("cuStreamBeginCapture", 10000, flags);
	CUresult (*instantiate)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t) =
		(CUresult(*)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t))first_form("cuGraphInstantiate", 10000, flags);
	CUdeviceptr p;
	CUstream s;
	CUgraph g;
	CUgraphExec exec;
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(begin(s));
	PRINT("while-capturing", cuMemAlloc(&p, 64)); /* the default mode forbids it */
	cuStreamEndCapture(s, &g);
	p = alloc(64);
	CHECK(begin(s));
	CHECK(cuMemsetD8Async(p, 1, 64, s));
	CHECK(cuStreamEndCapture(s, &g));
	CHECK(instantiate(&exec, g, NULL, NULL, 0));
}

int main(void)
{
	CUcontext ctx;
	start();
	captured(0);
	captured(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	PRINT("at", alloc((size_t)4 << 20));
	CHECK(((CUresult(*)(CUdevice))first_form("cuDevicePrimaryCtxReset", 7000, 0))(0));
	CHECK(cuCtxCreate(&ctx, 0, 0));
	PRINT("at", alloc((size_t)4 << 20));
	CHECK(((CUresult(*)(CUcontext))first_form("cuCtxDestroy", 2000, 0))(ctx));
	start();
	PRINT("at", alloc((size_t)4 << 20));
	return 0;
}
