/*
 * graph_body.c: the part of an executable graph that runs: a frozen copy of a graph.
 *
 * In: graphs. Out: bodies. Fails: body_new with INVALID_VALUE for a graph with a cycle.
 */
#include "graphs/graphs.h"

#include <stdlib.h>
#include <string.h>

void body_set_node(struct exec_node *x, const struct node *n)
{
	if (x->type == CU_GRAPH_NODE_TYPE_KERNEL && x->launch)
		launch_free(x->launch);
	if (x->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		free(x->mem_ops);
	switch (x->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: x->launch = launch_copy(n->launch); break;
	case CU_GRAPH_NODE_TYPE_MEMCPY: x->copy = n->copy; break;
	case CU_GRAPH_NODE_TYPE_MEMSET: x->fill = n->fill; break;
	case CU_GRAPH_NODE_TYPE_HOST: x->host = n->host; break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: x->mem_ops = mem_ops_copy(n->mem_ops); break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD: x->event = n->event; break;
	default: break;
	}
}

bool body_visit(const struct exec_body *b, size_t (*pick)(size_t ready), CUresult (*visit)(struct exec_node *), CUresult *r)
{
	size_t *waits = xalloc(b->count * sizeof(*waits)), *ready = xalloc(b->count * sizeof(*ready)), n = 0, done = 0;
	*r = CUDA_SUCCESS;
	for (size_t i = 0; i < b->count; i++) {
		waits[i] = b->nodes[i].waits;
		if (!waits[i])
			ready[n++] = i;
	}
	while (n && !*r) {
		size_t k = pick ? pick(n) : n - 1, at = ready[k];
		ready[k] = ready[--n];
		done++;
		struct exec_node *x = &b->nodes[at];
		if (visit && x->enabled)
			*r = visit(x);
		for (size_t i = 0; i < x->next_count; i++)
			if (--waits[x->next[i]] == 0)
				ready[n++] = x->next[i];
	}
	free(waits);
	free(ready);
	return done == b->count;
}

/* Clusters have to fill the grid. */
static CUresult clusters_divide(const struct exec_node *x)
{
	const CUlaunchAttributeValue *v = &x->attrs[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION];
	const unsigned dim[] = {v->clusterDim.x, v->clusterDim.y, v->clusterDim.z};
	if (!(x->attr_set >> CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION & 1))
		return CUDA_SUCCESS;
	for (int i = 0; i < 3; i++)
		if (dim[i] && x->launch->grid[i] % dim[i])
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return cluster_check(x->launch->function, v);
}

CUresult body_new(const struct graph *g, struct exec_body **out)
{
	struct exec_body *b = xalloc(sizeof(*b));
	b->refs = 1;
	b->count = g->node_count;
	b->nodes = xalloc(b->count * sizeof(*b->nodes));
	CUresult r = CUDA_SUCCESS;
	for (size_t i = 0; i < b->count; i++) {
		const struct node *n = g->nodes[i];
		struct exec_node *x = &b->nodes[i];
		x->type = n->type;
		x->origin = n;
		x->ctx = n->ctx;
		x->enabled = true;
		x->attr_set = n->attr_set;
		memcpy(x->attrs, n->attrs, sizeof(x->attrs));
		x->waits = n->in_count;
		x->next_count = n->out_count;
		x->next = xalloc(n->out_count * sizeof(*x->next));
		x->next_data = xalloc(n->out_count * sizeof(*x->next_data));
		for (size_t k = 0; k < n->out_count; k++) {
			x->next[k] = n->out[k]->to->slot;
			x->next_data[k] = n->out[k]->data;
		}
		if (n->type == CU_GRAPH_NODE_TYPE_GRAPH) {
			CUresult child = body_new(n->child, &x->child);
			r = r ? r : child;
		} else {
			body_set_node(x, n);
		}
	}
	CUresult unused;
	for (size_t i = 0; i < b->count && !r; i++)
		if (b->nodes[i].type == CU_GRAPH_NODE_TYPE_KERNEL)
			r = clusters_divide(&b->nodes[i]);
	if (!r && !body_visit(b, NULL, NULL, &unused))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r) {
		body_unref(b);
		b = NULL;
	}
	*out = b;
	return r;
}

/* A copy of a body, so that one in flight can be changed. */
struct exec_body *body_copy(const struct exec_body *b)
{
	struct exec_body *copy = xalloc(sizeof(*copy));
	copy->refs = 1;
	copy->count = b->count;
	copy->nodes = xalloc(b->count * sizeof(*copy->nodes));
	for (size_t i = 0; i < b->count; i++) {
		struct exec_node *x = &copy->nodes[i];
		*x = b->nodes[i];
		x->next = xalloc(x->next_count * sizeof(*x->next));
		memcpy(x->next, b->nodes[i].next, x->next_count * sizeof(*x->next));
		x->next_data = xalloc(x->next_count * sizeof(*x->next_data));
		memcpy(x->next_data, b->nodes[i].next_data, x->next_count * sizeof(*x->next_data));
		if (x->type == CU_GRAPH_NODE_TYPE_KERNEL)
			x->launch = launch_copy(x->launch);
		else if (x->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
			x->mem_ops = mem_ops_copy(x->mem_ops);
		else if (x->type == CU_GRAPH_NODE_TYPE_GRAPH)
			x->child->refs++;
	}
	return copy;
}

void body_unref(struct exec_body *b)
{
	if (!b || --b->refs)
		return;
	for (size_t i = 0; i < b->count; i++) {
		struct exec_node *x = &b->nodes[i];
		free(x->next);
		free(x->next_data);
		if (x->type == CU_GRAPH_NODE_TYPE_KERNEL && x->launch)
			launch_free(x->launch);
		else if (x->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
			free(x->mem_ops);
		else if (x->type == CU_GRAPH_NODE_TYPE_GRAPH)
			body_unref(x->child);
	}
	free(b->nodes);
	free(b);
}

CUresult exec_resolve(CUgraphExec handle, struct exec **out)
{
	if (!object_live(handle, OBJECT_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct exec *)handle;
	return CUDA_SUCCESS;
}
