/*
 * calls.c: the cost of the calls of an engine's start with a driver that returns at once. Run with and without the interposer,
 * the difference is the interposer's.
 *
 * In: no argument, for all rows; or the name of a row; or the name and how often to run it, to count instructions; or "list".
 * Out: one line a row with its name and the nanoseconds of processor time of one call; of "list" its name and the driver
 * functions that it calls. A row runs functions that share their hook's code, or that only work together (allocate and free).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stub.h"

enum { LIVE = 1000, FUNCTIONS = 1000, LARGE = 64 << 20 };

static CUgraph graph;
static CUgraphNode node;
static CUgraphExec exec;
static CUDA_KERNEL_NODE_PARAMS params;
static CUDA_KERNEL_NODE_PARAMS_v1 params_v1;
static CUdeviceptr owned;         /* an allocation */
static void *const host = &graph; /* any address */
static CUtensorMap map __attribute__((aligned(64)));

static void init(void) { cuInit(0); }
static void launch(void) { cuLaunchKernel((CUfunction)&node, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL); }
static void set(void) { cuGraphKernelNodeSetParams_v2(node, &params); }

static void launches(void)
{
	CUfunction f = (CUfunction)&node;
	CUlaunchConfig config = {0};
	cuLaunchKernel_ptsz(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	cuLaunchKernelEx(&config, f, NULL, NULL);
	cuLaunchKernelEx_ptsz(&config, f, NULL, NULL);
	cuLaunchCooperativeKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
	cuLaunchCooperativeKernel_ptsz(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
}

static void memory(void)
{
	CUdeviceptr p;
	cuMemAlloc_v2(&p, 4096);
	cuMemFree_v2(p);
}

static void large_memory(void)
{
	CUdeviceptr p;
	cuMemAlloc_v2(&p, LARGE);
	cuMemFree_v2(p);
}

/* The calls that any program needs for such memory at an address of its own choice. */
static void mapped_memory(void)
{
	static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	const CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	static CUdeviceptr place;
	CUmemGenericAllocationHandle physical = 0;
	if (!place)
		cuMemAddressReserve(&place, LARGE, 0, 0, 0);
	cuMemCreate(&physical, LARGE, &prop, 0);
	cuMemMap(place, LARGE, 0, physical, 0);
	cuMemRelease(physical);
	cuMemSetAccess(place, LARGE, &access, 1);
	cuCtxSynchronize(); /* as a free does */
	cuMemUnmap(place, LARGE);
}

static void pitched_memory(void)
{
	CUdeviceptr p;
	size_t pitch;
	cuMemAllocPitch_v2(&p, &pitch, 1000, 4, 4);
	cuMemFree_v2(p);
}

static void managed_memory(void)
{
	CUdeviceptr p = (CUdeviceptr)(uintptr_t)host;
	cuMemAllocManaged(&p, 4096, 1);
	cuMemFree_v2(p);
}

static void host_memory(void)
{
	void *p = host;
	cuMemAllocHost_v2(&p, 4096);
	cuMemFreeHost(p);
	cuMemHostAlloc(&p, 4096, 0);
	cuMemFreeHost(p);
	cuMemHostRegister_v2(p, 4096, 0);
	cuMemHostUnregister(p);
}

static void device_pointer(void)
{
	CUdeviceptr p = (CUdeviceptr)(uintptr_t)host;
	cuMemHostGetDevicePointer_v2(&p, host, 0);
}

static void stream_memory(void)
{
	CUdeviceptr p = (CUdeviceptr)(uintptr_t)host;
	cuMemAllocAsync(&p, 4096, NULL);
	cuMemFreeAsync(p, NULL);
	cuMemAllocAsync_ptsz(&p, 4096, NULL);
	cuMemFreeAsync_ptsz(p, NULL);
	cuMemAllocFromPoolAsync(&p, 4096, NULL, NULL);
	cuMemFreeAsync(p, NULL);
	cuMemAllocFromPoolAsync_ptsz(&p, 4096, NULL, NULL);
	cuMemFreeAsync_ptsz(p, NULL);
}

static void imported_memory(void)
{
	static CUipcMemHandle handle;
	CUdeviceptr p = (CUdeviceptr)(uintptr_t)host;
	cuIpcOpenMemHandle(&p, handle, 0);
	cuIpcCloseMemHandle(p);
	cuIpcOpenMemHandle_v2(&p, handle, 0);
	cuIpcCloseMemHandle(p);
}

static void reservation(void)
{
	CUdeviceptr p;
	cuMemAddressReserve(&p, (size_t)2 << 20, 0, 0, 0);
	cuMemAddressFree(p, (size_t)2 << 20);
}

static void mapping(void)
{
	static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUdeviceptr p = (CUdeviceptr)(uintptr_t)host;
	CUmemGenericAllocationHandle physical = 1;
	cuMemCreate(&physical, 4096, &prop, 0);
	cuMemMap(p, 4096, 0, physical, 0);
	cuMemUnmap(p, 4096);
}

static void questions(void)
{
	CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID;
	uint64_t id;
	void *out = &id;
	CUdeviceptr base;
	size_t size;
	CUipcMemHandle handle;
	CUmemGenericAllocationHandle physical;
	cuMemGetAddressRange_v2(&base, &size, owned);
	cuPointerGetAttribute(&id, attribute, owned);
	cuPointerGetAttributes(1, &attribute, &out, owned);
	cuIpcGetMemHandle(&handle, owned);
	cuMemRetainAllocationHandle(&physical, (void *)(uintptr_t)owned);
	cuCtxEnablePeerAccess(NULL, 0);
}

static void event(void)
{
	CUevent e;
	cuEventCreate(&e, 0);
	cuEventDestroy_v2(e);
}

static void instantiate(void)
{
	CUgraphExec e;
	cuGraphInstantiateWithFlags(&e, graph, 0);
	cuGraphExecDestroy(e);
}

static void other_instantiate(void)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS how = {0};
	CUgraphExec e = (CUgraphExec)host;
	cuGraphInstantiate(&e, graph, NULL, NULL, 0);
	cuGraphExecDestroy(e);
	cuGraphInstantiate_v2(&e, graph, NULL, NULL, 0);
	cuGraphExecDestroy(e);
	cuGraphInstantiateWithParams(&e, graph, &how);
	cuGraphExecDestroy(e);
	cuGraphInstantiateWithParams_ptsz(&e, graph, &how);
	cuGraphExecDestroy(e);
}

static void capture(void)
{
	CUgraph g;
	cuGraphCreate(&g, 0);
	cuStreamBeginCapture(NULL);
	cuStreamEndCapture(NULL, &g);
	cuStreamBeginCapture_v2(NULL, 0);
	cuStreamEndCapture(NULL, &g);
	cuStreamBeginCaptureToGraph(NULL, g, NULL, NULL, 0, 0);
	cuStreamEndCapture(NULL, &g);
	cuStreamBeginCapture_ptsz(NULL);
	cuStreamEndCapture_ptsz(NULL, &g);
	cuStreamBeginCapture_v2_ptsz(NULL, 0);
	cuStreamEndCapture_ptsz(NULL, &g);
	cuStreamBeginCaptureToGraph_ptsz(NULL, g, NULL, NULL, 0, 0);
	cuStreamEndCapture_ptsz(NULL, &g);
	cuGraphDestroy(g);
}

static void setters(void)
{
	cuGraphKernelNodeSetParams(node, &params_v1);
	cuGraphMemcpyNodeSetParams(node, NULL);
	cuGraphMemsetNodeSetParams(node, NULL);
	cuGraphBatchMemOpNodeSetParams(node, NULL);
	cuGraphHostNodeSetParams(node, NULL);
	cuGraphEventRecordNodeSetEvent(node, NULL);
	cuGraphEventWaitNodeSetEvent(node, NULL);
	cuGraphNodeSetParams(node, NULL);
	cuGraphKernelNodeSetAttribute(node, 1, NULL);
	cuGraphKernelNodeCopyAttributes(node, node);
	cuGraphAddDependencies(graph, &node, &node, 1);
	cuGraphAddDependencies_v2(graph, &node, &node, NULL, 1);
	cuGraphRemoveDependencies(graph, &node, &node, 1);
	cuGraphRemoveDependencies_v2(graph, &node, &node, NULL, 1);
	cuGraphDestroyNode(node);
	cuGraphChildGraphNodeGetGraph(node, &graph);
}

static void exec_setters(void)
{
	cuGraphExecKernelNodeSetParams(exec, node, &params_v1);
	cuGraphExecKernelNodeSetParams_v2(exec, node, &params);
	cuGraphExecMemcpyNodeSetParams(exec, node, NULL, NULL);
	cuGraphExecMemsetNodeSetParams(exec, node, NULL, NULL);
	cuGraphExecBatchMemOpNodeSetParams(exec, node, NULL);
	cuGraphExecHostNodeSetParams(exec, node, NULL);
	cuGraphExecChildGraphNodeSetParams(exec, node, graph);
	cuGraphExecEventRecordNodeSetEvent(exec, node, NULL);
	cuGraphExecEventWaitNodeSetEvent(exec, node, NULL);
	cuGraphExecNodeSetParams(exec, node, NULL);
	cuGraphNodeSetEnabled(exec, node, 1);
	cuGraphExecUpdate(exec, graph, NULL, NULL);
	cuGraphExecUpdate_v2(exec, graph, NULL);
}

static void tensor_maps(void)
{
	static const uint64_t dims[3] = {64, 64, 64};
	static const uint32_t ones[3] = {1, 1, 1};
	static const int corners[3];
	cuTensorMapEncodeTiled(&map, 0, 2, host, dims, dims, ones, ones, 0, 0, 0, 0);
	cuTensorMapEncodeIm2col(&map, 0, 3, host, dims, dims, corners, corners, 1, 1, ones, 0, 0, 0, 0);
	cuTensorMapEncodeIm2colWide(&map, 0, 3, host, dims, dims, 0, 0, 1, 1, ones, 0, 0, 0, 0, 0);
	cuTensorMapReplaceAddress(&map, host);
}

/* An engine sets attributes of many functions. */
static void attributes(void)
{
	static unsigned turn;
	uintptr_t f = 16 * (1 + turn++ % FUNCTIONS);
	cuFuncSetAttribute((CUfunction)f, 8, 1);
	cuKernelSetAttribute(8, 1, (CUkernel)(f + 16 * FUNCTIONS), 0);
}

static void kernels(void)
{
	CUmodule module = (CUmodule)host;
	CUfunction f = (CUfunction)host;
	CUdeviceptr p = (CUdeviceptr)(uintptr_t)host;
	size_t size = 4;
	cuKernelGetFunction(&f, (CUkernel)host);
	cuLibraryGetModule(&module, (CUlibrary)host);
	cuModuleGetGlobal_v2(&p, &size, module, "g");
	cuLibraryGetGlobal(&p, &size, (CUlibrary)host, "g");
	cuLibraryGetManaged(&p, &size, (CUlibrary)host, "g");
}

static void addresses(void)
{
	void *fn = host;
	cuGetProcAddress("cuInit", &fn, 12080, 0);
	cuGetProcAddress_v2("cuInit", &fn, 12080, 0, NULL);
	cuGetProcAddress_v2_ptsz("cuInit", &fn, 12080, 0, NULL);
}

/* A load and an unload: the image, which the interposer hashes, is as small as can be. */
static void modules(void)
{
	CUmodule module = (CUmodule)host;
	CUlibrary library = (CUlibrary)host;
	cuModuleLoadData(&module, ".version 7.0");
	cuModuleUnload(module);
	cuModuleLoadDataEx(&module, ".version 7.0", 0, NULL, NULL);
	cuModuleUnload(module);
	cuModuleLoadFatBinary(&module, ".version 7.0");
	cuModuleUnload(module);
	cuLibraryLoadData(&library, ".version 7.0", NULL, NULL, 0, NULL, NULL, 0);
	cuLibraryUnload(library);
}

static const struct {
	const char *name;
	void (*run)(void);
	int calls, rounds;
	const char *functions;
} rows[] = {
	{"cuInit", init, 1, 200000, "cuInit"},
	{"cuLaunchKernel", launch, 1, 200000, "cuLaunchKernel"},
	{"launches", launches, 5, 50000, "cuLaunchKernel_ptsz cuLaunchKernelEx cuLaunchKernelEx_ptsz cuLaunchCooperativeKernel cuLaunchCooperativeKernel_ptsz"},
	{"cuMemAlloc+cuMemFree", memory, 2, 20000, "cuMemAlloc_v2 cuMemFree_v2"},
	{"large-memory", large_memory, 2, 5000, ""},
	{"mapped-memory", mapped_memory, 2, 5000, ""},
	{"pitched-memory", pitched_memory, 2, 20000, "cuMemAllocPitch_v2"},
	{"managed-memory", managed_memory, 2, 20000, "cuMemAllocManaged"},
	{"host-memory", host_memory, 6, 10000, "cuMemAllocHost_v2 cuMemFreeHost cuMemHostAlloc cuMemHostRegister_v2 cuMemHostUnregister"},
	{"device-pointer", device_pointer, 1, 100000, "cuMemHostGetDevicePointer_v2"},
	{"stream-memory", stream_memory, 8, 10000, "cuMemAllocAsync cuMemAllocAsync_ptsz cuMemAllocFromPoolAsync cuMemAllocFromPoolAsync_ptsz cuMemFreeAsync cuMemFreeAsync_ptsz"},
	{"imported-memory", imported_memory, 4, 20000, "cuIpcOpenMemHandle cuIpcOpenMemHandle_v2 cuIpcCloseMemHandle"},
	{"reservation", reservation, 2, 20000, "cuMemAddressReserve cuMemAddressFree"},
	{"mapping", mapping, 3, 20000, "cuMemCreate cuMemMap cuMemUnmap"},
	{"questions", questions, 6, 20000, "cuMemGetAddressRange_v2 cuPointerGetAttribute cuPointerGetAttributes cuIpcGetMemHandle cuMemRetainAllocationHandle cuCtxEnablePeerAccess"},
	{"cuEventCreate+cuEventDestroy", event, 2, 20000, "cuEventCreate cuEventDestroy_v2"},
	{"cuGraphKernelNodeSetParams", set, 1, 200000, "cuGraphKernelNodeSetParams_v2"},
	{"setters", setters, 16, 20000, "cuGraphKernelNodeSetParams cuGraphMemcpyNodeSetParams cuGraphMemsetNodeSetParams cuGraphBatchMemOpNodeSetParams "
		"cuGraphHostNodeSetParams cuGraphEventRecordNodeSetEvent "
		"cuGraphEventWaitNodeSetEvent cuGraphNodeSetParams cuGraphKernelNodeSetAttribute cuGraphKernelNodeCopyAttributes cuGraphAddDependencies "
		"cuGraphAddDependencies_v2 cuGraphRemoveDependencies cuGraphRemoveDependencies_v2 cuGraphDestroyNode cuGraphChildGraphNodeGetGraph"},
	{"setters-of-executable-graphs", exec_setters, 13, 20000, "cuGraphExecKernelNodeSetParams cuGraphExecKernelNodeSetParams_v2 cuGraphExecMemcpyNodeSetParams "
		"cuGraphExecMemsetNodeSetParams cuGraphExecBatchMemOpNodeSetParams cuGraphExecHostNodeSetParams cuGraphExecChildGraphNodeSetParams cuGraphExecEventRecordNodeSetEvent "
		"cuGraphExecEventWaitNodeSetEvent cuGraphExecNodeSetParams cuGraphNodeSetEnabled cuGraphExecUpdate cuGraphExecUpdate_v2"},
	{"cuGraphInstantiate+cuGraphExecDestroy", instantiate, 2, 20000, "cuGraphInstantiateWithFlags cuGraphExecDestroy"},
	{"other-instantiate", other_instantiate, 8, 10000, "cuGraphInstantiate cuGraphInstantiate_v2 cuGraphInstantiateWithParams cuGraphInstantiateWithParams_ptsz"},
	{"capture", capture, 13, 2000, "cuStreamBeginCapture cuStreamBeginCapture_v2 cuStreamBeginCaptureToGraph cuStreamBeginCapture_ptsz cuStreamBeginCapture_v2_ptsz "
		"cuStreamBeginCaptureToGraph_ptsz cuStreamEndCapture cuStreamEndCapture_ptsz cuGraphDestroy"},
	{"tensor-maps", tensor_maps, 4, 20000, "cuTensorMapEncodeTiled cuTensorMapEncodeIm2col cuTensorMapEncodeIm2colWide cuTensorMapReplaceAddress"},
	{"attributes", attributes, 2, 20000, "cuFuncSetAttribute cuKernelSetAttribute"},
	{"kernels", kernels, 5, 20000, "cuKernelGetFunction cuLibraryGetModule cuModuleGetGlobal_v2 cuLibraryGetGlobal cuLibraryGetManaged"},
	{"addresses-of-functions", addresses, 3, 20000, "cuGetProcAddress cuGetProcAddress_v2 cuGetProcAddress_v2_ptsz"},
	{"modules", modules, 8, 200, "cuModuleLoadData cuModuleUnload cuModuleLoadDataEx cuModuleLoadFatBinary cuLibraryLoadData cuLibraryUnload"},
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* no call here waits, and other processes must not count */
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The least of several tries: disturbances only ever add. */
static double measure(void (*run)(void), int rounds)
{
	enum { TRIES = 5 };
	double least = 0;
	for (int k = 0; k < TRIES; k++) {
		double began = now(), took;
		for (int i = 0; i < rounds; i++)
			run();
		took = now() - began;
		if (k == 0 || took < least)
			least = took;
	}
	return least / rounds;
}

int main(int argc, char **argv)
{
	static CUdeviceptr live[LIVE];
	CUcontext ctx = NULL;
	if (argc > 1 && strcmp(argv[1], "list") == 0) {
		for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
			printf("%s %s\n", rows[k].name, rows[k].functions);
		return 0;
	}
	cuInit(0);
	cuDevicePrimaryCtxRetain(&ctx, 0);
	cuCtxSetCurrent(ctx);
	/* An engine's weights, so that the tables of the interposer are not empty. */
	for (int i = 0; i < LIVE; i++)
		cuMemAlloc_v2(&live[i], 1 << 20);
	cuMemAlloc_v2(&owned, 4096); /* the page of further small ones */
	cuGraphCreate(&graph, 0);
	cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params);
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		int rounds = argc > 2 ? atoi(argv[2]) : 0;
		if (argc > 1 && strcmp(argv[1], rows[k].name) != 0)
			continue;
		for (int i = 0; i < rounds; i++)
			rows[k].run();
		if (argc <= 2)
			printf("%s %.2f\n", rows[k].name, measure(rows[k].run, rows[k].rounds) / rows[k].calls);
	}
	return 0;
}
