/*
 * graph_exec.c: executable graphs: instantiating, changing, launching.
 *
 * In: graphs. Out: queued launches. Fails: INVALID_VALUE for cycles and bad flags, GRAPH_EXEC_UPDATE_FAILURE for updates
 * that change more than parameters, NOT_SUPPORTED for launches from the device.
 */
#include "calls/calls.h"

#include <stdlib.h>
#include <string.h>

void exec_end(struct exec *e)
{
	object_remove(e);
	overhead_nodes(e->ctx->device, e->nodes, false);
	body_unref(e->body);
	op_unref(e->last);
	free(e);
}

static CUresult instantiate(struct call *c, CUgraphExec *exec, CUgraph graph, uint64_t flags, CUgraphInstantiateResult *result)
{
	*result = CUDA_GRAPH_INSTANTIATE_ERROR;
	CUresult r = call_context(c);
	if (r)
		return r;
	struct graph *g;
	if ((r = graph_resolve(graph, &g)))
		return r;
	if (!exec || flags & ~15ull)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return call_unsupported_part(c, "launches from the device");
	struct exec_body *b;
	if ((r = body_new(g, &b))) {
		*result = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
		return r;
	}
	struct exec *e = xalloc(sizeof(*e));
	e->ctx = c->ctx;
	e->flags = flags;
	e->body = b;
	e->nodes = b->count;
	overhead_nodes(e->ctx->device, e->nodes, true);
	object_add(e, OBJECT_EXEC);
	*exec = (CUgraphExec)e;
	*result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	truth_instance(g, e);
	call_detail(c, "exec=%p\tnodes=%zu\tflags=%llu", (void *)e, b->count, (unsigned long long)flags);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphInstantiateWithFlags(struct call *c, CUgraphExec *exec, CUgraph graph, uint64_t flags)
{
	CUgraphInstantiateResult unused;
	return instantiate(c, exec, graph, flags & ~(uint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, &unused);
}

CUresult sim_cuGraphInstantiate_v2(struct call *c, CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log_buffer,
                                   size_t buffer_size)
{
	if (error_node)
		*error_node = NULL;
	if (log_buffer && buffer_size)
		log_buffer[0] = 0;
	return sim_cuGraphInstantiateWithFlags(c, exec, graph, 0);
}

CUresult sim_cuGraphInstantiate(struct call *c, CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log_buffer, size_t buffer_size)
{
	return sim_cuGraphInstantiate_v2(c, exec, graph, error_node, log_buffer, buffer_size);
}

CUresult sim_cuGraphInstantiateWithParams(struct call *c, CUgraphExec *exec, CUgraph graph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	params->hErrNode_out = NULL;
	return instantiate(c, exec, graph, params->flags, &params->result_out);
}

CUresult sim_cuGraphExecGetFlags(struct call *c, CUgraphExec exec, uint64_t *flags)
{
	(void)c;
	struct exec *e;
	CUresult r = exec_resolve(exec, &e);
	if (r)
		return r;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = e->flags;
	return CUDA_SUCCESS;
}

/* Launches in flight keep the memory that they hold. */
CUresult sim_cuGraphExecDestroy(struct call *c, CUgraphExec exec)
{
	call_detail(c, "exec=%p", (void *)exec);
	struct exec *e;
	CUresult r = exec_resolve(exec, &e);
	if (!r)
		exec_end(e);
	return r;
}

/* The device can reach everything already; the call's checks remain. */
CUresult sim_cuGraphUpload(struct call *c, CUgraphExec exec, CUstream stream)
{
	CUresult r = call_context(c);
	struct exec *e;
	struct stream *s;
	bool capturing;
	if (r || (r = exec_resolve(exec, &e)) || (r = stream_resolve(c, stream, &s)) || (r = capture_check(c, s, &capturing)))
		return r;
	if (capturing) {
		capture_invalidate(s->capture);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	call_detail(c, "exec=%p\tnodes=%zu", (void *)e, e->body->count);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphLaunch(struct call *c, CUgraphExec exec, CUstream stream)
{
	CUresult r = call_context(c);
	struct exec *e;
	struct stream *s;
	bool capturing;
	if (r || (r = exec_resolve(exec, &e)) || (r = stream_resolve(c, stream, &s)) || (r = capture_check(c, s, &capturing)))
		return r;
	if (capturing) {
		capture_invalidate(s->capture);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	struct op *op = op_new(OP_GRAPH);
	op->graph = e->body;
	e->body->refs++;
	op_after(op, e->last);
	body_events(e->body, op);
	op_unref(e->last);
	e->last = op;
	op_ref(op);
	queue_add(s, op);
	call_detail(c, "exec=%p\tnodes=%zu", (void *)e, e->body->count);
	return CUDA_SUCCESS;
}

/* ---- changing one node ------------------------------------------------------------------------------------------- */

static struct exec_node *own_node(struct exec *e, const struct node *n)
{
	size_t i = n->slot < e->body->count && e->body->nodes[n->slot].origin == n ? n->slot : 0;
	while (i < e->body->count && e->body->nodes[i].origin != n)
		i++;
	if (i == e->body->count)
		return NULL;
	if (e->body->refs > 1) {
		struct exec_body *copy = body_copy(e->body);
		body_unref(e->body);
		e->body = copy;
	}
	return &e->body->nodes[i];
}

static CUresult set(struct call *c, CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *p)
{
	struct exec *e;
	struct node *n, *made;
	CUresult r = exec_resolve(exec, &e);
	if (r || (r = node_resolve(node, &n)))
		return r;
	if (n->type != p->type || p->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return CUDA_ERROR_INVALID_VALUE;
	if ((r = node_from_params(c, p, &made)))
		return r;
	struct exec_node *x = made->ctx == n->ctx ? own_node(e, n) : NULL;
	if (x && x->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP && !mem_ops_alike(x->mem_ops, made->mem_ops))
		x = NULL;
	if (x) {
		bool cooperative = x->type == CU_GRAPH_NODE_TYPE_KERNEL && x->launch->cooperative;
		body_set_node(x, made);
		if (cooperative)
			x->launch->cooperative = true;
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	node_free(made);
	return r;
}

CUresult sim_cuGraphExecKernelNodeSetParams_v2(struct call *c, CUgraphExec exec, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_kernel(params);
	return set(c, exec, node, &p);
}

CUresult sim_cuGraphExecKernelNodeSetParams(struct call *c, CUgraphExec exec, CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_kernel_v1(params);
	return set(c, exec, node, &p);
}

CUresult sim_cuGraphExecMemcpyNodeSetParams(struct call *c, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *params,
                                            CUcontext ctx)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_memcpy(params, ctx);
	return set(c, exec, node, &p);
}

CUresult sim_cuGraphExecMemsetNodeSetParams(struct call *c, CUgraphExec exec, CUgraphNode node,
                                            const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_memset(params, ctx);
	return set(c, exec, node, &p);
}

CUresult sim_cuGraphExecBatchMemOpNodeSetParams(struct call *c, CUgraphExec exec, CUgraphNode node,
                                                const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = params_mem_ops(params);
	return set(c, exec, node, &p);
}

CUresult sim_cuGraphExecHostNodeSetParams(struct call *c, CUgraphExec exec, CUgraphNode node,
                                          const CUDA_HOST_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = *params};
	return set(c, exec, node, &p);
}

CUresult sim_cuGraphExecEventRecordNodeSetEvent(struct call *c, CUgraphExec exec, CUgraphNode node, CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};
	return set(c, exec, node, &p);
}

CUresult sim_cuGraphExecEventWaitNodeSetEvent(struct call *c, CUgraphExec exec, CUgraphNode node, CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event}};
	return set(c, exec, node, &p);
}

CUresult sim_cuGraphExecNodeSetParams(struct call *c, CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	return params ? set(c, exec, node, params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphNodeSetEnabled(struct call *c, CUgraphExec exec, CUgraphNode node, unsigned int is_enabled)
{
	(void)c;
	struct exec *e;
	struct node *n;
	CUresult r = exec_resolve(exec, &e);
	if (r || (r = node_resolve(node, &n)))
		return r;
	struct exec_node *x = n->type <= CU_GRAPH_NODE_TYPE_MEMSET ? own_node(e, n) : NULL;
	if (!x)
		return CUDA_ERROR_INVALID_VALUE;
	x->enabled = is_enabled != 0;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetEnabled(struct call *c, CUgraphExec exec, CUgraphNode node, unsigned int *is_enabled)
{
	(void)c;
	struct exec *e;
	struct node *n;
	CUresult r = exec_resolve(exec, &e);
	if (r || (r = node_resolve(node, &n)))
		return r;
	struct exec_node *x = is_enabled && n->type <= CU_GRAPH_NODE_TYPE_MEMSET ? own_node(e, n) : NULL;
	if (!x)
		return CUDA_ERROR_INVALID_VALUE;
	*is_enabled = x->enabled;
	return CUDA_SUCCESS;
}

/* ---- updating from a graph of the same topology -------------------------------------------------------------------- */

static CUgraphExecUpdateResult differs(const struct exec_node *x, const struct node *n)
{
	if (x->type != n->type)
		return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
	if (x->next_count != n->out_count || x->waits != n->in_count)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (size_t i = 0; i < n->out_count; i++)
		if (x->next[i] != n->out[i]->to->slot)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	if (x->ctx != n->ctx || x->type == CU_GRAPH_NODE_TYPE_GRAPH ||
	    (x->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP && !mem_ops_alike(x->mem_ops, n->mem_ops)))
		return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
	if (x->type == CU_GRAPH_NODE_TYPE_KERNEL && x->launch->cooperative != n->launch->cooperative)
		return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult sim_cuGraphExecUpdate_v2(struct call *c, CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *result)
{
	CUresult r = call_context(c);
	struct exec *e;
	struct graph *g;
	if (r || (r = exec_resolve(exec, &e)) || (r = graph_resolve(graph, &g)))
		return r;
	if (!result)
		return CUDA_ERROR_INVALID_VALUE;
	*result = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
	if (g->node_count != e->body->count)
		result->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (size_t i = 0; i < g->node_count && !result->result; i++) {
		result->result = differs(&e->body->nodes[i], g->nodes[i]);
		if (result->result)
			result->errorNode = (CUgraphNode)g->nodes[i];
	}
	if (result->result)
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	struct exec_body *b;
	if ((r = body_new(g, &b)))
		return r;
	/* Node attributes and the nodes by which single updates find their place stay those of the instantiated graph. */
	for (size_t i = 0; i < b->count; i++) {
		b->nodes[i].origin = e->body->nodes[i].origin;
		b->nodes[i].attr_set = e->body->nodes[i].attr_set;
		memcpy(b->nodes[i].attrs, e->body->nodes[i].attrs, sizeof(b->nodes[i].attrs));
	}
	body_unref(e->body);
	e->body = b;
	return CUDA_SUCCESS;
}
