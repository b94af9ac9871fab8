/*
 * capture.c: stream capture.
 *
 * In: streams put into capture, and the work then submitted to them. Out: graphs. Fails: with the errors 900 to 908 as
 * documented; a call that must not happen during a capture also invalidates it, and the end of the capture says so.
 *
 * Each capturing stream holds the set of nodes that its next node depends on. Recording an event keeps that set, waiting
 * for the event adds it to another stream, which thereby joins the capture.
 */
#include "streams/streams.h"

#include <stdlib.h>
#include <string.h>

static struct capture **captures;
static size_t capture_count, capture_cap;
static uint64_t next_capture = 1;

static struct capture *capture_by_id(uint64_t id)
{
	for (size_t i = 0; i < capture_count; i++)
		if (captures[i]->id == id)
			return captures[i];
	return NULL;
}

void capture_invalidate(struct capture *cap)
{
	cap->invalidated = true;
}

void capture_invalidate_id(uint64_t id)
{
	struct capture *cap = capture_by_id(id);
	if (cap)
		capture_invalidate(cap);
}

bool capture_invalidate_all(const struct context *ctx)
{
	bool any = false;
	for (size_t i = 0; i < capture_count; i++)
		if (captures[i]->origin->ctx == ctx) {
			capture_invalidate(captures[i]);
			any = true;
		}
	return any;
}

CUresult capture_unsafe(struct call *c)
{
	CUstreamCaptureMode mode = thread_state()->capture_mode;
	bool forbidden = false;
	for (size_t i = 0; i < capture_count && mode != CU_STREAM_CAPTURE_MODE_RELAXED; i++) {
		struct capture *cap = captures[i];
		bool mine = cap->thread == thread_number();
		if ((mine && cap->mode != CU_STREAM_CAPTURE_MODE_RELAXED) ||
		    (!mine && mode == CU_STREAM_CAPTURE_MODE_GLOBAL && cap->mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
			capture_invalidate(cap);
			forbidden = true;
		}
	}
	if (forbidden)
		call_detail(c, "capture=forbids");
	return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

/* The legacy stream would wait for every blocking stream: that cannot be captured. */
static bool legacy_conflict(const struct stream *legacy, bool invalidate)
{
	bool conflict = false;
	for (size_t i = 0; i < all_stream_count; i++) {
		struct stream *s = all_streams[i];
		if (s->ctx != legacy->ctx || !s->capture || s->flags & CU_STREAM_NON_BLOCKING)
			continue;
		conflict = true;
		if (invalidate)
			capture_invalidate(s->capture);
	}
	return conflict;
}

CUresult capture_check(struct call *c, struct stream *s, bool *capturing)
{
	(void)c;
	*capturing = s->capture != NULL;
	if (s->capture)
		return s->capture->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
	if (s->is_legacy && legacy_conflict(s, true))
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	return CUDA_SUCCESS;
}

void dependencies_add(struct dependency **deps, size_t *count, size_t *cap, struct dependency d)
{
	for (size_t i = 0; i < *count; i++)
		if ((*deps)[i].node == d.node)
			return;
	*deps = grow(*deps, cap, *count + 1, sizeof(**deps));
	(*deps)[(*count)++] = d;
}

/* n is about to be destroyed: nodes that waited for it wait for its dependencies. */
void dependencies_forget(struct graph *g, const struct node *n)
{
	for (size_t i = 0; i < all_stream_count; i++) {
		struct stream *s = all_streams[i];
		if (!s->capture || s->capture->graph != g)
			continue;
		for (size_t d = 0; d < s->dep_count; d++)
			if (s->deps[d].node == n) {
				s->deps[d] = s->deps[--s->dep_count];
				for (size_t k = 0; k < n->in_count; k++)
					dependencies_add(&s->deps, &s->dep_count, &s->dep_cap,
					                 (struct dependency){n->in[k]->from, n->in[k]->data});
				break;
			}
	}
}

CUresult capture_node(struct stream *s, struct node *n)
{
	graph_attach(s->capture->graph, n);
	for (size_t i = 0; i < s->dep_count; i++) {
		CUresult r = graph_connect(n->graph, s->deps[i].node, n, s->deps[i].edge);
		if (r)
			return r;
	}
	s->dep_count = 0;
	dependencies_add(&s->deps, &s->dep_count, &s->dep_cap, (struct dependency){n, {0}});
	truth_node(s->capture->id, n);
	return CUDA_SUCCESS;
}

static CUresult event_node(struct stream *s, struct event *e, CUgraphNodeType type)
{
	struct node *n = node_new(type, s->ctx);
	n->event = e;
	return capture_node(s, n);
}

CUresult capture_record_event(struct call *c, struct stream *s, struct event *e, unsigned flags)
{
	(void)c;
	if (flags & CU_EVENT_RECORD_EXTERNAL)
		return event_node(s, e, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
	op_unref(e->record);
	e->record = NULL;
	e->capture_id = s->capture->id;
	e->dep_count = 0;
	for (size_t i = 0; i < s->dep_count; i++)
		dependencies_add(&e->deps, &e->dep_count, &e->dep_cap, s->deps[i]);
	return CUDA_SUCCESS;
}

CUresult capture_wait_event(struct call *c, struct stream *s, struct event *e, unsigned flags)
{
	if (flags & CU_EVENT_WAIT_EXTERNAL)
		return s->capture ? event_node(s, e, CU_GRAPH_NODE_TYPE_WAIT_EVENT) : CUDA_ERROR_INVALID_VALUE;
	if (!e->capture_id) {
		if (!e->record) /* never recorded: no wait */
			return CUDA_SUCCESS;
		capture_invalidate(s->capture);
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	struct capture *cap = capture_by_id(e->capture_id);
	if (!cap) {
		if (s->capture)
			capture_invalidate(s->capture);
		return s->capture ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_ERROR_CAPTURED_EVENT;
	}
	if (cap->invalidated)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (s->capture && s->capture != cap) {
		capture_invalidate(cap);
		capture_invalidate(s->capture);
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (s->is_legacy) {
		capture_invalidate(cap);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	s->capture = cap;
	for (size_t i = 0; i < e->dep_count; i++)
		if (object_live(e->deps[i].node, OBJECT_NODE)) /* the application may have destroyed it meanwhile */
			dependencies_add(&s->deps, &s->dep_count, &s->dep_cap, e->deps[i]);
	call_detail(c, "capture=%llu", (unsigned long long)cap->id);
	return CUDA_SUCCESS;
}

static CUresult begin(struct call *c, CUstream handle, CUstreamCaptureMode mode)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct stream *s;
	if ((r = stream_resolve(c, handle, &s)))
		return r;
	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (s->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	struct capture *cap = xalloc(sizeof(*cap));
	cap->id = next_capture++;
	cap->mode = mode;
	cap->thread = thread_number();
	cap->graph = graph_new();
	cap->graph->owned = true;
	cap->origin = s;
	s->capture = cap;
	s->dep_count = 0;
	captures = grow(captures, &capture_cap, capture_count + 1, sizeof(*captures));
	captures[capture_count++] = cap;
	call_detail(c, "capture=%llu\tmode=%d", (unsigned long long)cap->id, (int)mode);
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamBeginCapture(struct call *c, CUstream stream)
{
	return begin(c, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult sim_cuStreamBeginCapture_v2(struct call *c, CUstream stream, CUstreamCaptureMode mode)
{
	return begin(c, stream, mode);
}

/* Takes the capture off its streams. The graph stays with the caller. */
static void finish(struct capture *cap)
{
	for (size_t i = 0; i < all_stream_count; i++)
		if (all_streams[i]->capture == cap) {
			all_streams[i]->capture = NULL;
			all_streams[i]->dep_count = 0;
		}
	for (size_t i = 0; i < capture_count; i++)
		if (captures[i] == cap)
			captures[i] = captures[--capture_count];
	free(cap);
}

void captures_end(struct context *ctx)
{
	for (size_t i = capture_count; i-- > 0;)
		if (captures[i]->origin->ctx == ctx) {
			graph_end(captures[i]->graph);
			finish(captures[i]);
		}
}

/* A capture whose origin is destroyed can never be ended by the program, so it ends here. */
void capture_stream_gone(struct stream *s)
{
	struct capture *cap = s->capture;
	s->capture = NULL;
	if (cap && cap->origin == s) {
		graph_end(cap->graph);
		finish(cap);
	}
}

static void mark_ancestors(const struct node *n, bool *seen)
{
	if (seen[n->slot])
		return;
	seen[n->slot] = true;
	struct node const **stack = NULL;
	size_t depth = 0, cap = 0;
	stack = grow(stack, &cap, 1, sizeof(*stack));
	stack[depth++] = n;
	while (depth) {
		const struct node *top = stack[--depth];
		for (size_t i = 0; i < top->in_count; i++) {
			const struct node *from = top->in[i]->from;
			if (seen[from->slot])
				continue;
			seen[from->slot] = true;
			stack = grow(stack, &cap, depth + 1, sizeof(*stack));
			stack[depth++] = from;
		}
	}
	free(stack);
}

/* Every stream that joined must have been waited for by the origin, directly or not. */
static bool joined(const struct capture *cap)
{
	bool *seen = xalloc(cap->graph->node_count);
	for (size_t i = 0; i < cap->origin->dep_count; i++)
		mark_ancestors(cap->origin->deps[i].node, seen);
	bool all = true;
	for (size_t i = 0; i < all_stream_count; i++)
		if (all_streams[i]->capture == cap)
			for (size_t d = 0; d < all_streams[i]->dep_count; d++)
				all = all && seen[all_streams[i]->deps[d].node->slot];
	free(seen);
	return all;
}

CUresult sim_cuStreamEndCapture(struct call *c, CUstream handle, CUgraph *graph)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct stream *s;
	if ((r = stream_resolve(c, handle, &s)))
		return r;
	struct capture *cap = s->capture;
	if (!cap)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	call_detail(c, "capture=%llu", (unsigned long long)cap->id);
	if (cap->mode != CU_STREAM_CAPTURE_MODE_RELAXED && cap->thread != thread_number())
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (cap->origin != s) {
		capture_invalidate(cap);
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	*graph = NULL;
	r = cap->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : joined(cap) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	if (r) {
		graph_end(cap->graph);
	} else {
		cap->graph->owned = false;
		*graph = (CUgraph)cap->graph;
		call_detail(c, "nodes=%zu\tedges=%zu", cap->graph->node_count, cap->graph->edge_count);
	}
	finish(cap);
	return r;
}

/* Captures may be waiting for the node. */
CUresult sim_cuGraphDestroyNode(struct call *c, CUgraphNode handle)
{
	(void)c;
	struct node *n;
	CUresult r = node_resolve(handle, &n);
	if (r)
		return r;
	struct graph *g = n->graph;
	dependencies_forget(g, n);
	while (n->in_count)
		graph_disconnect(g, n->in[0]);
	while (n->out_count)
		graph_disconnect(g, n->out[0]);
	memmove(g->nodes + n->slot, g->nodes + n->slot + 1, (--g->node_count - n->slot) * sizeof(*g->nodes));
	for (size_t i = n->slot; i < g->node_count; i++)
		g->nodes[i]->slot = i;
	node_free(n);
	return CUDA_SUCCESS;
}
