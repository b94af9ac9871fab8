/*
 * graph_run.c: executable graphs at work.
 *
 * In: bodies. Out: their effects. Nodes run in a random topological order drawn from the seed, so that a missing edge shows.
 * Fails: as its nodes do.
 */
#include "streams/streams.h"

static size_t random_pick(size_t ready)
{
	return (size_t)(random_order() % ready);
}

static CUresult run_node(struct exec_node *x)
{
	switch (x->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: return run_launch(x->launch);
	case CU_GRAPH_NODE_TYPE_MEMCPY: return run_copy(&x->copy, x->ctx, x->ctx);
	case CU_GRAPH_NODE_TYPE_MEMSET: return run_fill(&x->fill, x->ctx);
	case CU_GRAPH_NODE_TYPE_HOST: run_host(&x->host); break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return run_mem_ops(x->mem_ops, x->ctx);
	case CU_GRAPH_NODE_TYPE_GRAPH: return run_body(x->child);
	default: break; /* events were taken care of by body_events */
	}
	return CUDA_SUCCESS;
}

void body_events(const struct exec_body *b, struct op *op)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct exec_node *x = &b->nodes[i];
		if (x->type == CU_GRAPH_NODE_TYPE_GRAPH)
			body_events(x->child, op);
		else if (x->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT && object_live(x->event, OBJECT_EVENT))
			op_after(op, x->event->record);
	}
	/* Only now: a graph may wait for the earlier record of an event that it records again. */
	for (size_t i = 0; i < b->count; i++)
		if (b->nodes[i].type == CU_GRAPH_NODE_TYPE_EVENT_RECORD && object_live(b->nodes[i].event, OBJECT_EVENT))
			event_set(b->nodes[i].event, op);
}

CUresult run_body(struct exec_body *b)
{
	CUresult r;
	body_visit(b, random_pick, run_node, &r);
	return r;
}
