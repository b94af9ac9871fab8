/*
 * graph_params.c: reading and changing the parameters of nodes in graphs.
 *
 * In: nodes. Out: their parameters; the arrays inside belong to the node. Fails: INVALID_VALUE for a node of another type.
 */
#include "graphs/graphs.h"

#include <string.h>

static CUresult typed(CUgraphNode handle, CUgraphNodeType type, struct node **n)
{
	CUresult r = node_resolve(handle, n);
	return r ? r : (*n)->type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Moves the parameters of a node that was made from p into the one behind handle. */
static CUresult set(struct call *c, CUgraphNode handle, const CUgraphNodeParams *p)
{
	struct node *n, *made;
	CUresult r = typed(handle, p->type, &n);
	if (r || (r = node_from_params(c, p, &made)))
		return r;
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		struct launch *old = n->launch;
		n->launch = made->launch;
		made->launch = old;
		n->launch->cooperative = old->cooperative;
		break;
	}
	case CU_GRAPH_NODE_TYPE_MEMCPY: n->copy = made->copy; break;
	case CU_GRAPH_NODE_TYPE_MEMSET: n->fill = made->fill; break;
	case CU_GRAPH_NODE_TYPE_HOST: n->host = made->host; break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
		struct mem_ops *old = n->mem_ops;
		n->mem_ops = made->mem_ops;
		made->mem_ops = old;
		break;
	}
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD: n->event = made->event; break;
	default: r = CUDA_ERROR_INVALID_VALUE; break;
	}
	n->ctx = r ? n->ctx : made->ctx;
	node_free(made);
	return r;
}

CUresult sim_cuGraphKernelNodeGetParams_v2(struct call *c, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
	(void)c;
	struct node *n;
	CUresult r = typed(node, CU_GRAPH_NODE_TYPE_KERNEL, &n);
	if (r)
		return r;
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	struct launch *l = n->launch;
	*params = (CUDA_KERNEL_NODE_PARAMS){
		.func = l->by_kern ? NULL : l->handle,
		.gridDimX = l->grid[0], .gridDimY = l->grid[1], .gridDimZ = l->grid[2],
		.blockDimX = l->block[0], .blockDimY = l->block[1], .blockDimZ = l->block[2],
		.sharedMemBytes = l->shared,
		.kernelParams = l->extra_size ? NULL : l->pointers,
		.extra = l->extra_size ? l->extra : NULL,
		.kern = l->by_kern ? (CUkernel)l->handle : NULL,
		.ctx = (CUcontext)n->ctx,
	};
	if (config_get()->node_kernels != KERNELS_LAUNCHED && object_live(l->handle, OBJECT_KERNEL)) {
		params->func = (CUfunction)l->function;
		params->kern = config_get()->node_kernels == KERNELS_BOTH ? (CUkernel)l->handle : NULL;
	}
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeGetParams(struct call *c, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS p;
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = sim_cuGraphKernelNodeGetParams_v2(c, node, &p);
	if (!r)
		memcpy(params, &p, sizeof(*params));
	return r;
}

CUresult sim_cuGraphKernelNodeSetParams_v2(struct call *c, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_kernel(params);
	return set(c, node, &p);
}

CUresult sim_cuGraphKernelNodeSetParams(struct call *c, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_kernel_v1(params);
	return set(c, node, &p);
}

CUresult sim_cuGraphMemcpyNodeGetParams(struct call *c, CUgraphNode node, CUDA_MEMCPY3D *params)
{
	(void)c;
	struct node *n;
	CUresult r = typed(node, CU_GRAPH_NODE_TYPE_MEMCPY, &n);
	if (r)
		return r;
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	*params = n->copy;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemcpyNodeSetParams(struct call *c, CUgraphNode node, const CUDA_MEMCPY3D *params)
{
	struct node *n;
	CUresult r = typed(node, CU_GRAPH_NODE_TYPE_MEMCPY, &n);
	if (r || !params)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_memcpy(params, (CUcontext)n->ctx);
	return set(c, node, &p);
}

CUresult sim_cuGraphMemsetNodeGetParams(struct call *c, CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params)
{
	(void)c;
	struct node *n;
	CUresult r = typed(node, CU_GRAPH_NODE_TYPE_MEMSET, &n);
	if (r)
		return r;
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	*params = n->fill;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemsetNodeSetParams(struct call *c, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
	struct node *n;
	CUresult r = typed(node, CU_GRAPH_NODE_TYPE_MEMSET, &n);
	if (r || !params)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_memset(params, (CUcontext)n->ctx);
	return set(c, node, &p);
}

CUresult sim_cuGraphHostNodeGetParams(struct call *c, CUgraphNode node, CUDA_HOST_NODE_PARAMS *params)
{
	(void)c;
	struct node *n;
	CUresult r = typed(node, CU_GRAPH_NODE_TYPE_HOST, &n);
	if (r)
		return r;
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	*params = (CUDA_HOST_NODE_PARAMS){n->host.fn, n->host.data};
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphHostNodeSetParams(struct call *c, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = *params};
	return set(c, node, &p);
}

CUresult sim_cuGraphBatchMemOpNodeGetParams(struct call *c, CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	(void)c;
	struct node *n;
	CUresult r = typed(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &n);
	if (r)
		return r;
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	*params = (CUDA_BATCH_MEM_OP_NODE_PARAMS){(CUcontext)n->ctx, n->mem_ops->count, n->mem_ops->ops, 0};
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphBatchMemOpNodeSetParams(struct call *c, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_mem_ops(params);
	return set(c, node, &p);
}

CUresult sim_cuGraphChildGraphNodeGetGraph(struct call *c, CUgraphNode node, CUgraph *graph)
{
	(void)c;
	struct node *n;
	CUresult r = typed(node, CU_GRAPH_NODE_TYPE_GRAPH, &n);
	if (r)
		return r;
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = (CUgraph)n->child;
	return CUDA_SUCCESS;
}

static CUresult get_event(CUgraphNode node, CUgraphNodeType type, CUevent *event)
{
	struct node *n;
	CUresult r = typed(node, type, &n);
	if (r)
		return r;
	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	*event = (CUevent)n->event;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphEventRecordNodeGetEvent(struct call *c, CUgraphNode node, CUevent *event)
{
	(void)c;
	return get_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult sim_cuGraphEventWaitNodeGetEvent(struct call *c, CUgraphNode node, CUevent *event)
{
	(void)c;
	return get_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult sim_cuGraphEventRecordNodeSetEvent(struct call *c, CUgraphNode node, CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};
	return set(c, node, &p);
}

CUresult sim_cuGraphEventWaitNodeSetEvent(struct call *c, CUgraphNode node, CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event}};
	return set(c, node, &p);
}

CUresult sim_cuGraphNodeSetParams(struct call *c, CUgraphNode node, CUgraphNodeParams *params)
{
	return params ? set(c, node, params) : CUDA_ERROR_INVALID_VALUE;
}

/* ---- attributes of kernel nodes ------------------------------------------------------------------------------------ */

static CUresult attribute(struct call *c, CUgraphNode node, CUlaunchAttributeID attr, const CUlaunchAttributeValue *v,
                          struct node **n)
{
	CUresult r = typed(node, CU_GRAPH_NODE_TYPE_KERNEL, n);
	if (r)
		return r;
	call_detail(c, "attr=%d", (int)attr);
	r = node_attribute_check(attr, v);
	return r == CUDA_ERROR_NOT_SUPPORTED ? call_unsupported_part(c, "this kernel node attribute") : r;
}

CUresult sim_cuGraphKernelNodeGetAttribute(struct call *c, CUgraphNode node, CUlaunchAttributeID attr,
                                           CUlaunchAttributeValue *value)
{
	struct node *n;
	CUresult r = attribute(c, node, attr, NULL, &n);
	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	*value = n->attrs[attr]; /* zero if it was never set */
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeSetAttribute(struct call *c, CUgraphNode node, CUlaunchAttributeID attr,
                                           const CUlaunchAttributeValue *value)
{
	struct node *n;
	CUresult r = value ? attribute(c, node, attr, value, &n) : CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	if (attr == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && (r = cluster_check(n->launch->function, value)))
		return r;
	n->attrs[attr] = *value;
	n->attr_set |= 1u << attr;
	if (attr == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		n->launch->cooperative = value->cooperative != 0;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeCopyAttributes(struct call *c, CUgraphNode dst, CUgraphNode src)
{
	(void)c;
	struct node *to, *from;
	CUresult r = typed(dst, CU_GRAPH_NODE_TYPE_KERNEL, &to);
	if (r || (r = typed(src, CU_GRAPH_NODE_TYPE_KERNEL, &from)))
		return r;
	memcpy(to->attrs, from->attrs, sizeof(to->attrs));
	to->attr_set = from->attr_set;
	to->launch->cooperative = from->launch->cooperative;
	return CUDA_SUCCESS;
}
