/* floor.c: the floor that building graphs is measured against (stub.h). It is preloaded behind the interposer, and calls
 * the driver that the process has. */
#include "stub.h"

#include <stdlib.h>

enum { PARAMS = 20, BUFFER = 160 }; /* no kernel of the workloads takes less */

struct node {
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUDA_MEMSET_NODE_PARAMS memset;
	void *pointers[PARAMS];
	unsigned char buffer[BUFFER];
};

struct built {
	const CUfunction *functions;
	uint32_t nodes, shape;
	struct node *node;
	CUgraphExec exec;
};

struct prepared {
	uint32_t count, most;
	struct built *graphs;
	CUgraphNode *handles;
	CUgraphEdgeData *data;
};

void *floor_prepare(const struct floor_graph *graphs, uint32_t count, CUdeviceptr memory)
{
	struct prepared *p = calloc(1, sizeof *p);
	p->count = count;
	p->graphs = calloc(count, sizeof *p->graphs);
	for (uint32_t i = 0; i < count; i++) {
		struct built *g = &p->graphs[i];
		*g = (struct built){.functions = graphs[i].functions, .nodes = graphs[i].nodes, .shape = graphs[i].shape};
		g->node = calloc(g->nodes, sizeof *g->node);
		p->most = g->nodes > p->most ? g->nodes : p->most;
		for (uint32_t k = 0; k < g->nodes; k++) {
			struct node *n = &g->node[k];
			for (int j = 0; j < PARAMS; j++)
				n->pointers[j] = n->buffer + 8 * j;
			n->kernel = (CUDA_KERNEL_NODE_PARAMS){.func = g->functions[k], .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
							      .blockDimX = 128, .blockDimY = 1, .blockDimZ = 1, .kernelParams = n->pointers};
			n->memset = (CUDA_MEMSET_NODE_PARAMS){.dst = memory, .elementSize = 4, .width = 1, .height = 1};
		}
	}
	p->handles = calloc(p->most, sizeof *p->handles);
	p->data = calloc(p->most, sizeof *p->data);
	return p;
}

static int make_template(struct prepared *p, const struct built *g, CUgraph graph, CUcontext ctx)
{
	int rc = 0;
	for (uint32_t k = 0; k < g->nodes && rc == 0; k++) {
		if (g->functions[k])
			rc = cuGraphAddKernelNode_v2(&p->handles[k], graph, NULL, 0, &g->node[k].kernel);
		else
			rc = cuGraphAddMemsetNode(&p->handles[k], graph, NULL, 0, &g->node[k].memset, ctx);
	}
	return rc ? rc : (int)cuGraphAddDependencies_v2(graph, p->handles, p->handles + 1, p->data, g->nodes - 1);
}

static int set_template(struct prepared *p, const struct built *g)
{
	int rc = 0;
	for (uint32_t k = 0; k < g->nodes && rc == 0; k++) {
		if (g->functions[k])
			rc = cuGraphKernelNodeSetParams_v2(p->handles[k], &g->node[k].kernel);
		else
			rc = cuGraphMemsetNodeSetParams(p->handles[k], &g->node[k].memset);
	}
	return rc;
}

static int build_shape(struct prepared *p, uint32_t first, CUcontext ctx)
{
	CUgraph graph;
	int rc = cuGraphCreate(&graph, 0);
	for (uint32_t i = first; i < p->count && rc == 0; i++) {
		struct built *g = &p->graphs[i];
		if (g->shape != first)
			continue;
		rc = i == first ? make_template(p, g, graph, ctx) : set_template(p, g);
		if (rc == 0)
			rc = cuGraphInstantiateWithFlags(&g->exec, graph, 0);
		if (rc == 0)
			rc = cuGraphUpload(g->exec, NULL);
	}
	return rc ? rc : (int)cuGraphDestroy(graph);
}

int floor_build(void *prepared)
{
	struct prepared *p = prepared;
	CUcontext ctx;
	int rc = cuCtxGetCurrent(&ctx);
	for (uint32_t i = 0; i < p->count && rc == 0; i++)
		if (p->graphs[i].shape == i)
			rc = build_shape(p, i, ctx);
	return rc;
}

int floor_destroy(void *prepared)
{
	struct prepared *p = prepared;
	int rc = 0;
	for (uint32_t i = p->count; i-- > 0 && rc == 0;)
		rc = cuGraphExecDestroy(p->graphs[i].exec);
	return rc;
}

void floor_release(void *prepared)
{
	struct prepared *p = prepared;
	for (uint32_t i = 0; i < p->count; i++)
		free(p->graphs[i].node);
	free(p->graphs);
	free(p->handles);
	free(p->data);
	free(p);
}
