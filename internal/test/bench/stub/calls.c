/*
 * calls.c: what the calls of an engine's start cost with a driver that returns at once. Run with and without the interposer,
 * the difference is the interposer's.
 *
 * In: nothing, or the name of one function and how often to call it. Out: one line a function with its name and the
 * nanoseconds of processor time of one call. Pairs (allocate and free) count as two.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stub.h"

enum { LIVE = 1000 };

static CUgraph graph;
static CUgraphNode node;
static CUDA_KERNEL_NODE_PARAMS params;

static void launch(void) { cuLaunchKernel((CUfunction)&node, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL); }
static void set(void) { cuGraphKernelNodeSetParams_v2(node, &params); }

static void memory(void)
{
	CUdeviceptr p;
	cuMemAlloc_v2(&p, 4096);
	cuMemFree_v2(p);
}

static void event(void)
{
	CUevent e;
	cuEventCreate(&e, 0);
	cuEventDestroy_v2(e);
}

static void instantiate(void)
{
	CUgraphExec exec;
	cuGraphInstantiateWithFlags(&exec, graph, 0);
	cuGraphExecDestroy(exec);
}

static const struct {
	const char *name;
	void (*run)(void);
	int calls, rounds;
} functions[] = {
	{"cuLaunchKernel", launch, 1, 200000},
	{"cuMemAlloc+cuMemFree", memory, 2, 20000},
	{"cuEventCreate+cuEventDestroy", event, 2, 20000},
	{"cuGraphKernelNodeSetParams", set, 1, 200000},
	{"cuGraphInstantiate+cuGraphExecDestroy", instantiate, 2, 20000},
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* nothing here waits, and other processes must not count */
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	static CUdeviceptr live[LIVE];
	/* An engine's weights: the tables of the interposer have something in them. */
	for (int i = 0; i < LIVE; i++)
		cuMemAlloc_v2(&live[i], 1 << 20);
	cuGraphCreate(&graph, 0);
	cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params);
	for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
		int rounds = argc > 2 ? atoi(argv[2]) : functions[k].rounds;
		double began;
		if (argc > 1 && strcmp(argv[1], functions[k].name) != 0)
			continue;
		began = now();
		for (int i = 0; i < rounds; i++)
			functions[k].run();
		printf("%s %.2f\n", functions[k].name, (now() - began) / rounds / functions[k].calls);
	}
	return 0;
}
