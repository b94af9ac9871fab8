/* driver.c: see stub.h. */
#include "stub.h"

#include <stdlib.h>
#include <time.h>

static uint64_t cost_add, cost_set, cost_instantiate;
static struct stub_counts counts;

struct graph {
	uint64_t nodes;
};

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void spin(uint64_t ns)
{
	uint64_t end;
	if (ns == 0)
		return;
	end = now() + ns;
	while (now() < end)
		;
}

void stub_costs(uint64_t add, uint64_t set, uint64_t instantiate)
{
	cost_add = add;
	cost_set = set;
	cost_instantiate = instantiate;
	counts = (struct stub_counts){0};
}

void stub_count(struct stub_counts *out) { *out = counts; }

CUresult cuInit(unsigned int flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }

CUresult cuDriverGetVersion(int *version)
{
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	*ctx = (CUcontext)&counts;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *dev)
{
	*dev = 0;
	return CUDA_SUCCESS;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	*graph = calloc(1, sizeof(struct graph));
	return *graph && !flags ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph graph)
{
	free(graph);
	return CUDA_SUCCESS;
}

static CUresult add(CUgraphNode *node, CUgraph graph)
{
	struct graph *g = (struct graph *)graph;
	counts.added++;
	*node = (CUgraphNode)(uintptr_t)(++g->nodes << 4);
	spin(cost_add);
	return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t n, const CUDA_KERNEL_NODE_PARAMS *params)
{
	(void)deps, (void)n, (void)params;
	return add(node, graph);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t n, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
	(void)deps, (void)n, (void)params, (void)ctx;
	return add(node, graph);
}

static CUresult set(void)
{
	counts.set++;
	spin(cost_set);
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	(void)node, (void)params;
	return set();
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
	(void)node, (void)params;
	return set();
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t n)
{
	(void)graph, (void)from, (void)to, (void)data;
	counts.dependencies += n;
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags)
{
	uint64_t nodes = ((struct graph *)graph)->nodes;
	(void)flags;
	counts.instantiated += nodes;
	*exec = (CUgraphExec)(uintptr_t)(counts.instantiated << 4);
	spin(cost_instantiate * nodes);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	(void)exec;
	return CUDA_SUCCESS;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	(void)exec, (void)stream;
	counts.uploads++;
	return CUDA_SUCCESS;
}

/* The other functions that an engine calls most often. Memory is addresses alone. */
CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
			unsigned int shared, CUstream stream, void **params, void **extra)
{
	(void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)params, (void)extra;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	static CUdeviceptr cursor = 0x7f0000000000;
	*ptr = cursor;
	cursor += (bytes + 511) & ~(size_t)511;
	return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	(void)ptr;
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	static uintptr_t cursor = 0x1000;
	(void)flags;
	*event = (CUevent)(cursor += 16);
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	(void)event;
	return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	(void)stream;
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

/* Other functions whose answers the interposer needs. */
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	(void)dev;
	*bytes = (size_t)80 << 30;
	return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, uint64_t flags)
{
	(void)size, (void)alignment, (void)flags;
	*ptr = addr;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height, unsigned int elem_size)
{
	(void)elem_size;
	*pitch = (width + 511) & ~(size_t)511;
	return cuMemAlloc_v2(ptr, *pitch * height);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
	(void)graph, (void)nodes;
	*n = 0;
	return CUDA_SUCCESS;
}
