/*
 * calls.c: what the calls of an engine's start cost with a driver that returns at once. Run with and without the interposer,
 * the difference is the interposer's.
 *
 * In: nothing. Out: one line a function with its name and the nanoseconds of processor time of one call. Pairs (allocate and free) count as two.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "stub.h"

enum { ROUNDS = 200000, LIVE = 1000 };

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* nothing here waits, and other processes must not count */
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void report(const char *name, double began, int calls) { printf("%s %.2f\n", name, (now() - began) / calls); }

int main(void)
{
	CUdeviceptr live[LIVE];
	CUgraph graph;
	CUgraphNode node = NULL;
	CUDA_KERNEL_NODE_PARAMS params;
	CUgraphExec exec;
	CUevent event;
	double t;
	memset(&params, 0, sizeof params);
	/* An engine's weights: the tables of the interposer have something in them. */
	for (int i = 0; i < LIVE; i++)
		cuMemAlloc_v2(&live[i], 1 << 20);
	t = now();
	for (int i = 0; i < ROUNDS; i++)
		cuLaunchKernel((CUfunction)&node, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	report("cuLaunchKernel", t, ROUNDS);
	t = now();
	for (int i = 0; i < ROUNDS / 10; i++) {
		CUdeviceptr p;
		cuMemAlloc_v2(&p, 4096);
		cuMemFree_v2(p);
	}
	report("cuMemAlloc+cuMemFree", t, ROUNDS / 10 * 2);
	t = now();
	for (int i = 0; i < ROUNDS / 10; i++) {
		cuEventCreate(&event, 0);
		cuEventDestroy_v2(event);
	}
	report("cuEventCreate+cuEventDestroy", t, ROUNDS / 10 * 2);
	cuGraphCreate(&graph, 0);
	cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params);
	t = now();
	for (int i = 0; i < ROUNDS; i++)
		cuGraphKernelNodeSetParams_v2(node, &params);
	report("cuGraphKernelNodeSetParams", t, ROUNDS);
	t = now();
	for (int i = 0; i < ROUNDS / 10; i++) {
		cuGraphInstantiateWithFlags(&exec, graph, 0);
		cuGraphExecDestroy(exec);
	}
	report("cuGraphInstantiate+cuGraphExecDestroy", t, ROUNDS / 10 * 2);
	for (int i = 0; i < LIVE; i++)
		cuMemFree_v2(live[i]);
	return 0;
}
