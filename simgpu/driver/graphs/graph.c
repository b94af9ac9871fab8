/*
 * graph.c: graphs as structures: nodes, edges, copies.
 *
 * In: nodes and edges, added by calls or by capture. Out: graphs for graph_exec.c to instantiate. Fails: INVALID_VALUE for edges
 * between graphs, to itself or twice. Nodes and edges keep the order in which they were made.
 */
#include "graphs/graphs.h"

#include <stdlib.h>
#include <string.h>

struct graph *graph_new(void)
{
	struct graph *g = xalloc(sizeof(*g));
	object_add(g, OBJECT_GRAPH);
	return g;
}

struct node *node_new(CUgraphNodeType type, struct context *ctx)
{
	static uint64_t number;
	struct node *n = xalloc(sizeof(*n));
	n->type = type;
	n->number = ++number;
	n->ctx = ctx;
	object_add(n, OBJECT_NODE);
	return n;
}

void node_free(struct node *n)
{
	object_remove(n);
	if (n->type == CU_GRAPH_NODE_TYPE_KERNEL && n->launch)
		launch_free(n->launch);
	if (n->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		free(n->mem_ops);
	if (n->type == CU_GRAPH_NODE_TYPE_GRAPH && n->child)
		graph_end(n->child);
	free(n->in);
	free(n->out);
	free(n);
}

void graph_attach(struct graph *g, struct node *n)
{
	n->graph = g;
	n->slot = g->node_count;
	g->nodes = grow(g->nodes, &g->node_cap, g->node_count + 1, sizeof(struct node *));
	g->nodes[g->node_count++] = n;
}

bool edge_default(CUgraphEdgeData d)
{
	return !d.from_port && !d.to_port && !d.type;
}

/* Ports and types other than the default lead from kernels to kernels. */
bool edge_valid(const struct node *from, const struct node *to, CUgraphEdgeData d)
{
	for (size_t i = 0; i < sizeof(d.reserved); i++)
		if (d.reserved[i])
			return false;
	if (edge_default(d))
		return true;
	return from->type == CU_GRAPH_NODE_TYPE_KERNEL && to->type == CU_GRAPH_NODE_TYPE_KERNEL &&
	       d.from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER && d.to_port == 0 &&
	       d.type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
}

CUresult graph_connect(struct graph *g, struct node *from, struct node *to, CUgraphEdgeData data)
{
	if (from->graph != g || to->graph != g || from == to || !edge_valid(from, to, data))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < to->in_count; i++)
		if (to->in[i]->from == from)
			return CUDA_ERROR_INVALID_VALUE;
	static uint64_t number;
	struct edge *e = xalloc(sizeof(*e));
	*e = (struct edge){from, to, data, ++number};
	from->out = grow(from->out, &from->out_cap, from->out_count + 1, sizeof(struct edge *));
	from->out[from->out_count++] = e;
	to->in = grow(to->in, &to->in_cap, to->in_count + 1, sizeof(struct edge *));
	to->in[to->in_count++] = e;
	g->edges = grow(g->edges, &g->edge_cap, g->edge_count + 1, sizeof(struct edge *));
	g->edges[g->edge_count++] = e;
	return CUDA_SUCCESS;
}

static void take_out(struct edge **list, size_t *count, const struct edge *e)
{
	for (size_t i = 0; i < *count; i++)
		if (list[i] == e) {
			memmove(list + i, list + i + 1, (--*count - i) * sizeof(*list));
			return;
		}
}

void graph_disconnect(struct graph *g, struct edge *e)
{
	take_out(e->from->out, &e->from->out_count, e);
	take_out(e->to->in, &e->to->in_count, e);
	take_out(g->edges, &g->edge_count, e);
	free(e);
}

void graph_end(struct graph *g)
{
	object_remove(g);
	for (size_t i = 0; i < g->edge_count; i++)
		free(g->edges[i]);
	for (size_t i = 0; i < g->node_count; i++)
		node_free(g->nodes[i]);
	free(g->edges);
	free(g->nodes);
	free(g);
}

struct graph *graph_clone(const struct graph *g)
{
	struct graph *copy = graph_new();
	for (size_t i = 0; i < g->node_count; i++) {
		const struct node *from = g->nodes[i];
		struct node *n = node_new(from->type, from->ctx);
		n->attr_set = from->attr_set;
		memcpy(n->attrs, from->attrs, sizeof(n->attrs));
		n->cloned_from = g->nodes[i];
		switch (from->type) {
		case CU_GRAPH_NODE_TYPE_KERNEL: n->launch = launch_copy(from->launch); break;
		case CU_GRAPH_NODE_TYPE_MEMCPY: n->copy = from->copy; break;
		case CU_GRAPH_NODE_TYPE_MEMSET: n->fill = from->fill; break;
		case CU_GRAPH_NODE_TYPE_HOST: n->host = from->host; break;
		case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: n->mem_ops = mem_ops_copy(from->mem_ops); break;
		case CU_GRAPH_NODE_TYPE_GRAPH:
			n->child = graph_clone(from->child);
			n->child->owned = true;
			break;
		case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		case CU_GRAPH_NODE_TYPE_EVENT_RECORD: n->event = from->event; break;
		default: break;
		}
		graph_attach(copy, n);
	}
	for (size_t i = 0; i < g->edge_count; i++) {
		const struct edge *e = g->edges[i];
		graph_connect(copy, copy->nodes[e->from->slot], copy->nodes[e->to->slot], e->data);
	}
	return copy;
}

CUresult graph_resolve(CUgraph handle, struct graph **out)
{
	if (!object_live(handle, OBJECT_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct graph *)handle;
	return CUDA_SUCCESS;
}

CUresult node_resolve(CUgraphNode handle, struct node **out)
{
	if (!object_live(handle, OBJECT_NODE))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct node *)handle;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphCreate(struct call *c, CUgraph *graph, unsigned int flags)
{
	(void)c;
	if (!graph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = (CUgraph)graph_new();
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphDestroy(struct call *c, CUgraph handle)
{
	(void)c;
	struct graph *g;
	CUresult r = graph_resolve(handle, &g);
	if (r)
		return r;
	if (g->owned)
		return CUDA_ERROR_INVALID_VALUE;
	graph_end(g);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphClone(struct call *c, CUgraph *clone, CUgraph original)
{
	(void)c;
	struct graph *g;
	CUresult r = graph_resolve(original, &g);
	if (r)
		return r;
	if (!clone)
		return CUDA_ERROR_INVALID_VALUE;
	*clone = (CUgraph)graph_clone(g);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeFindInClone(struct call *c, CUgraphNode *node, CUgraphNode original, CUgraph clone)
{
	(void)c;
	struct graph *g;
	CUresult r = graph_resolve(clone, &g);
	if (r)
		return r;
	if (!node || !original)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < g->node_count; i++)
		if (g->nodes[i]->cloned_from == (struct node *)original) {
			*node = (CUgraphNode)g->nodes[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}
