/*
 * floor.c NODES GRAPHS: the time that the driver itself takes for graphs of kernel nodes in a chain: adding nodes, instantiating, uploading,
 * the first launch and later ones. Prints nanoseconds per node as NAME VALUE, the median over the graphs.
 */
#include <time.h>

#include "common.h"

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

enum { ADD, INSTANTIATE, UPLOAD, FIRST, LAUNCH, STEPS };
static const char *const step_names[] = {"add", "instantiate", "upload", "first-launch", "launch"};

static void measure(CUfunction f, CUdeviceptr p, CUstream stream, int nodes, uint64_t *took)
{
	uint32_t n = 1;
	void *params[] = {&p, &n};
	CUDA_KERNEL_NODE_PARAMS k = {.func = f, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1,
				     .blockDimZ = 1, .kernelParams = params};
	CUgraphNode node = NULL, before;
	CUgraphExec exec;
	CUgraph graph;
	uint64_t at = now(), next;
	CHECK(cuGraphCreate(&graph, 0));
	for (int i = 0; i < nodes; i++) {
		before = node;
		CHECK(cuGraphAddKernelNode(&node, graph, &before, i > 0, &k));
	}
#define DONE(step) (next = now(), took[step] = (next - at) / (uint64_t)nodes, at = next)
	DONE(ADD);
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	DONE(INSTANTIATE);
	CHECK(cuGraphUpload(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	DONE(UPLOAD);
	for (int step = FIRST; step <= LAUNCH; step++) {
		CHECK(cuGraphLaunch(exec, stream));
		CHECK(cuStreamSynchronize(stream));
		DONE(step);
	}
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

int main(int argc, char **argv)
{
	int nodes = argc == 3 ? atoi(argv[1]) : 0, graphs = argc == 3 ? atoi(argv[2]) : 0;
	uint64_t took[64][STEPS], of[64];
	CUmodule module;
	CUfunction f;
	CUstream stream;
	CUdeviceptr p;
	uint32_t kept;
	if (nodes < 1 || graphs < 1 || graphs > 64)
		return 2;
	start();
	CHECK(cuModuleLoadData(&module, module_ptx));
	CHECK(cuModuleGetFunction(&f, module, "add_one"));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	p = alloc(64);
	CHECK(cuMemsetD32(p, 0, 16));
	CHECK(cuCtxSynchronize()); /* the stream does not wait for the default stream */
	for (int g = 0; g < graphs; g++)
		measure(f, p, stream, nodes, took[g]);
	for (int s = 0; s < STEPS; s++) {
		for (int g = 0; g < graphs; g++)
			of[g] = took[g][s];
		qsort(of, (size_t)graphs, sizeof *of, ascending);
		PRINT(step_names[s], of[graphs / 2]);
	}
	CHECK(cuMemcpyDtoH(&kept, p, sizeof kept));
	PRINT("launched", kept); /* every node of both launches of each graph */
	return 0;
}
