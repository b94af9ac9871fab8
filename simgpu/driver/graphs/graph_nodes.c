/*
 * graph_nodes.c: adding nodes to graphs, and setting their parameters.
 *
 * In: parameters of each node type; all forms reduce to CUgraphNodeParams. Out: nodes that own a copy of everything they
 * were given. Fails: as the same operation on a stream would, and INVALID_VALUE for dependencies of another graph.
 */
#include "graphs/graphs.h"

#include <string.h>

static CUresult launch_of(struct context *ctx, const CUDA_KERNEL_NODE_PARAMS *p, struct launch **out)
{
	const void *handle = p->func ? (const void *)p->func : (const void *)p->kern;
	if (!p->func && p->ctx) {
		if (!object_live(p->ctx, OBJECT_CONTEXT) || !((struct context *)p->ctx)->active)
			return CUDA_ERROR_INVALID_CONTEXT;
		ctx = (struct context *)p->ctx;
	}
	uint32_t grid[3] = {p->gridDimX, p->gridDimY, p->gridDimZ};
	uint32_t block[3] = {p->blockDimX, p->blockDimY, p->blockDimZ};
	CUresult r = launch_new(ctx, handle, grid, block, p->sharedMemBytes, p->kernelParams, p->extra, false, out);
	if (!r)
		(*out)->by_kern = !p->func;
	return r;
}

static CUresult context_of(CUcontext handle, struct context **out)
{
	if (!object_live(handle, OBJECT_CONTEXT) || !((struct context *)handle)->active)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (struct context *)handle;
	return CUDA_SUCCESS;
}

static CUresult fill_node(struct call *c, struct node *n, const CUgraphNodeParams *p)
{
	CUresult r = CUDA_SUCCESS;
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		if (object_live(p->kernel.func, OBJECT_KERNEL)) /* a launch takes it in place of a function, a node does not (seen with driver 580.159) */
			return CUDA_ERROR_INVALID_HANDLE;
		r = launch_of(c->ctx, &p->kernel, &n->launch);
		if (!r)
			n->ctx = n->launch->function->module->ctx;
		return r;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		n->copy = p->memcpy.copyParams;
		if (p->memcpy.flags || (r = context_of(p->memcpy.copyCtx, &n->ctx)))
			return CUDA_ERROR_INVALID_VALUE;
		return copy_empty(&n->copy) ? CUDA_ERROR_INVALID_VALUE : copy_check(c, &n->copy);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		n->fill = (CUDA_MEMSET_NODE_PARAMS){p->memset.dst,         p->memset.pitch, p->memset.value,
		                                    p->memset.elementSize, p->memset.width, p->memset.height};
		if ((r = context_of(p->memset.ctx, &n->ctx)))
			return r;
		return n->fill.width && n->fill.height ? fill_check(&n->fill) : CUDA_ERROR_INVALID_VALUE;
	case CU_GRAPH_NODE_TYPE_HOST:
		n->host = (struct host_call){p->host.fn, p->host.userData};
		return p->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		if ((r = context_of(p->memOp.ctx, &n->ctx)))
			return r;
		return mem_ops_new(c, p->memOp.count, p->memOp.paramArray, p->memOp.flags, &n->mem_ops);
	case CU_GRAPH_NODE_TYPE_GRAPH: {
		struct graph *child;
		if ((r = graph_resolve(p->graph.graph, &child)))
			return r;
		n->child = graph_clone(child);
		n->child->owned = true;
		return CUDA_SUCCESS;
	}
	case CU_GRAPH_NODE_TYPE_EMPTY: return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
		CUevent e = p->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? p->eventWait.event : p->eventRecord.event;
		if (!object_live(e, OBJECT_EVENT))
			return CUDA_ERROR_INVALID_HANDLE;
		n->event = (struct event *)e;
		return CUDA_SUCCESS;
	}
	default: return call_unsupported_part(c, "nodes of this type");
	}
}

CUresult node_from_params(struct call *c, const CUgraphNodeParams *p, struct node **out)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	struct node *n = node_new(p->type, c->ctx);
	if ((r = fill_node(c, n, p))) {
		node_free(n);
		return r;
	}
	*out = n;
	return CUDA_SUCCESS;
}

static CUresult add(struct call *c, CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                    size_t count, const CUgraphNodeParams *p)
{
	struct graph *g;
	struct node *n, *dep;
	CUresult r = graph_resolve(graph, &g);
	if (r)
		return r;
	if (!out || (count && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	if ((r = node_from_params(c, p, &n)))
		return r;
	for (size_t i = 0; i < count && !r; i++) {
		if (node_resolve(deps[i], &dep) || dep->graph != g || (edges && !edge_valid(dep, n, edges[i])))
			r = CUDA_ERROR_INVALID_VALUE;
		for (size_t j = 0; j < i; j++)
			if (deps[j] == deps[i])
				r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r) {
		node_free(n);
		return r;
	}
	graph_attach(g, n);
	for (size_t i = 0; i < count; i++)
		graph_connect(g, (struct node *)deps[i], n, edges ? edges[i] : (CUgraphEdgeData){0});
	*out = (CUgraphNode)n;
	return CUDA_SUCCESS;
}

/* ---- one form per type ------------------------------------------------------------------------------------------- */

CUgraphNodeParams params_kernel_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUgraphNodeParams q = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
	memcpy(&q.kernel, p, sizeof(*p)); /* the later layout begins with the earlier one */
	return q;
}

CUgraphNodeParams params_kernel(const CUDA_KERNEL_NODE_PARAMS *p)
{
	return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *p};
}

CUgraphNodeParams params_memcpy(const CUDA_MEMCPY3D *p, CUcontext ctx)
{
	return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyCtx = ctx, .copyParams = *p}};
}

CUgraphNodeParams params_memset(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
	return (CUgraphNodeParams){
		.type = CU_GRAPH_NODE_TYPE_MEMSET,
		.memset = {p->dst, p->pitch, p->value, p->elementSize, p->width, p->height, ctx},
	};
}

CUgraphNodeParams params_mem_ops(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memOp = *p};
}

CUresult sim_cuGraphAddKernelNode(struct call *c, CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                                  const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_kernel_v1(params);
	return add(c, node, graph, deps, NULL, count, &p);
}

CUresult sim_cuGraphAddKernelNode_v2(struct call *c, CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                                     const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_kernel(params);
	return add(c, node, graph, deps, NULL, count, &p);
}

CUresult sim_cuGraphAddMemcpyNode(struct call *c, CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                                  const CUDA_MEMCPY3D *params, CUcontext ctx)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_memcpy(params, ctx);
	return add(c, node, graph, deps, NULL, count, &p);
}

CUresult sim_cuGraphAddMemsetNode(struct call *c, CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                                  const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_memset(params, ctx);
	return add(c, node, graph, deps, NULL, count, &p);
}

CUresult sim_cuGraphAddHostNode(struct call *c, CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                                const CUDA_HOST_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = *params};
	return add(c, node, graph, deps, NULL, count, &p);
}

CUresult sim_cuGraphAddBatchMemOpNode(struct call *c, CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                                      const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_mem_ops(params);
	return add(c, node, graph, deps, NULL, count, &p);
}

CUresult sim_cuGraphAddChildGraphNode(struct call *c, CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                                      CUgraph child_graph)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {child_graph}};
	return add(c, node, graph, deps, NULL, count, &p);
}

CUresult sim_cuGraphAddEmptyNode(struct call *c, CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
	return add(c, node, graph, deps, NULL, count, &p);
}

CUresult sim_cuGraphAddEventRecordNode(struct call *c, CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                                       CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};
	return add(c, node, graph, deps, NULL, count, &p);
}

CUresult sim_cuGraphAddEventWaitNode(struct call *c, CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                                     CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event}};
	return add(c, node, graph, deps, NULL, count, &p);
}

static bool reserved_zero(const CUgraphNodeParams *p)
{
	return p && !p->reserved0[0] && !p->reserved0[1] && !p->reserved0[2] && !p->reserved2;
}

CUresult sim_cuGraphAddNode_v2(struct call *c, CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
                               const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
	return reserved_zero(params) ? add(c, node, graph, deps, edges, count, params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphAddNode(struct call *c, CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                            CUgraphNodeParams *params)
{
	return sim_cuGraphAddNode_v2(c, node, graph, deps, NULL, count, params);
}
