/*
 * graph_edges.c: walking graphs, and changing their edges.
 *
 * In: graphs and nodes. Out: nodes and edges in the order that SIMGPU_GRAPH_ORDER names: no driver promises one. It is the same
 * whenever a process asks. Fails: LOSSY_QUERY if edges carry data and the caller gave no room for it.
 */
#include "graphs/graphs.h"

#include <stdlib.h>

struct listed { uint64_t key; void *item; };

static int compare(const void *a, const void *b)
{
	uint64_t x = ((const struct listed *)a)->key, y = ((const struct listed *)b)->key;
	return (x > y) - (x < y);
}

static uint64_t key_of(uint64_t number)
{
	switch (config_get()->graph_order) {
	case ORDER_REVERSED: return ~number;
	case ORDER_SHUFFLED: return random_of(number);
	default: return number;
	}
}

static struct listed *list_new(size_t n)
{
	return xalloc((n + 1) * sizeof(struct listed));
}

static struct listed *list_nodes(struct node *const *nodes, size_t n)
{
	struct listed *l = list_new(n);
	for (size_t i = 0; i < n; i++)
		l[i] = (struct listed){key_of(nodes[i]->number), nodes[i]};
	qsort(l, n, sizeof(*l), compare);
	return l;
}

static struct listed *list_edges(struct edge *const *edges, size_t n)
{
	struct listed *l = list_new(n);
	for (size_t i = 0; i < n; i++)
		l[i] = (struct listed){key_of(edges[i]->number), edges[i]};
	qsort(l, n, sizeof(*l), compare);
	return l;
}

/* Answers a query: only the count if out is NULL, else as many as fit, the room behind them cleared. */
static CUresult give(struct node *const *nodes, size_t n, CUgraphNode *out, size_t *count)
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (out) {
		struct listed *l = list_nodes(nodes, n);
		for (size_t i = 0; i < *count; i++)
			out[i] = i < n ? (CUgraphNode)l[i].item : NULL;
		free(l);
	}
	if (!out || *count > n)
		*count = n;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetNodes(struct call *c, CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	(void)c;
	struct graph *g;
	CUresult r = graph_resolve(graph, &g);
	return r ? r : give(g->nodes, g->node_count, nodes, count);
}

CUresult sim_cuGraphGetRootNodes(struct call *c, CUgraph graph, CUgraphNode *root_nodes, size_t *count)
{
	(void)c;
	struct graph *g;
	CUresult r = graph_resolve(graph, &g);
	if (r)
		return r;
	struct node **roots = xalloc((g->node_count + 1) * sizeof(*roots));
	size_t n = 0;
	for (size_t i = 0; i < g->node_count; i++)
		if (!g->nodes[i]->in_count)
			roots[n++] = g->nodes[i];
	r = give(roots, n, root_nodes, count);
	free(roots);
	return r;
}

/* from, to and data may each be NULL; edges that carry data need room for it. */
static CUresult give_edges(struct edge *const *edges, size_t n, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                           size_t *count)
{
	bool wanted = from || to;
	if (!count || (data && !wanted))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && wanted && !data; i++)
		if (!edge_default(edges[i]->data))
			return CUDA_ERROR_LOSSY_QUERY;
	size_t room = wanted ? *count : 0;
	struct listed *l = list_edges(edges, n);
	for (size_t i = 0; i < room; i++) {
		const struct edge *e = i < n ? l[i].item : NULL;
		if (from)
			from[i] = e ? (CUgraphNode)e->from : NULL;
		if (to)
			to[i] = e ? (CUgraphNode)e->to : NULL;
		if (data)
			data[i] = e ? e->data : (CUgraphEdgeData){0};
	}
	free(l);
	if (!wanted || room > n)
		*count = n;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetEdges_v2(struct call *c, CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges,
                                size_t *count)
{
	(void)c;
	struct graph *g;
	CUresult r = graph_resolve(graph, &g);
	if (r)
		return r;
	if (!from != !to)
		return CUDA_ERROR_INVALID_VALUE;
	return give_edges(g->edges, g->edge_count, from, to, edges, count);
}

CUresult sim_cuGraphGetEdges(struct call *c, CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	return sim_cuGraphGetEdges_v2(c, graph, from, to, NULL, count);
}

CUresult sim_cuGraphNodeGetDependencies_v2(struct call *c, CUgraphNode node, CUgraphNode *deps, CUgraphEdgeData *edges,
                                           size_t *count)
{
	(void)c;
	struct node *n;
	CUresult r = node_resolve(node, &n);
	return r ? r : give_edges(n->in, n->in_count, deps, NULL, edges, count);
}

CUresult sim_cuGraphNodeGetDependencies(struct call *c, CUgraphNode node, CUgraphNode *deps, size_t *count)
{
	return sim_cuGraphNodeGetDependencies_v2(c, node, deps, NULL, count);
}

CUresult sim_cuGraphNodeGetDependentNodes_v2(struct call *c, CUgraphNode node, CUgraphNode *dependent_nodes,
                                             CUgraphEdgeData *edges, size_t *count)
{
	(void)c;
	struct node *n;
	CUresult r = node_resolve(node, &n);
	return r ? r : give_edges(n->out, n->out_count, NULL, dependent_nodes, edges, count);
}

CUresult sim_cuGraphNodeGetDependentNodes(struct call *c, CUgraphNode node, CUgraphNode *dependent_nodes, size_t *count)
{
	return sim_cuGraphNodeGetDependentNodes_v2(c, node, dependent_nodes, NULL, count);
}

CUresult sim_cuGraphNodeGetType(struct call *c, CUgraphNode node, CUgraphNodeType *type)
{
	(void)c;
	struct node *n;
	CUresult r = node_resolve(node, &n);
	if (r)
		return r;
	if (!type)
		return CUDA_ERROR_INVALID_VALUE;
	*type = n->type;
	return CUDA_SUCCESS;
}

static CUresult pair(struct graph *g, CUgraphNode from, CUgraphNode to, struct node **a, struct node **b)
{
	if (node_resolve(from, a) || node_resolve(to, b) || (*a)->graph != g || (*b)->graph != g)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddDependencies_v2(struct call *c, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                       const CUgraphEdgeData *edges, size_t count)
{
	(void)c;
	struct graph *g;
	struct node *a, *b;
	CUresult r = graph_resolve(graph, &g);
	if (r)
		return r;
	if (count && (!from || !to))
		return CUDA_ERROR_INVALID_VALUE;
	/* The first edge's data for all of them: drivers from 580 to 610 do so, and a program that relies on more loses the
	 * other data there. */
	for (size_t i = 0; i < count; i++)
		if ((r = pair(g, from[i], to[i], &a, &b)) ||
		    (r = graph_connect(g, a, b, edges ? edges[0] : (CUgraphEdgeData){0})))
			return r;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddDependencies(struct call *c, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	return sim_cuGraphAddDependencies_v2(c, graph, from, to, NULL, count);
}

static struct edge *edge_between(const struct node *a, const struct node *b)
{
	for (size_t i = 0; i < a->out_count; i++)
		if (a->out[i]->to == b)
			return a->out[i];
	return NULL;
}

static bool same_data(CUgraphEdgeData a, CUgraphEdgeData b)
{
	return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}

CUresult sim_cuGraphRemoveDependencies_v2(struct call *c, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                          const CUgraphEdgeData *edges, size_t count)
{
	(void)c;
	struct graph *g;
	struct node *a, *b;
	CUresult r = graph_resolve(graph, &g);
	if (r)
		return r;
	if (count && (!from || !to))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if ((r = pair(g, from[i], to[i], &a, &b)))
			return r;
		struct edge *e = edge_between(a, b);
		if (!e || !same_data(e->data, edges ? edges[i] : (CUgraphEdgeData){0}))
			return CUDA_ERROR_INVALID_VALUE;
		graph_disconnect(g, e);
	}
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphRemoveDependencies(struct call *c, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	return sim_cuGraphRemoveDependencies_v2(c, graph, from, to, NULL, count);
}
