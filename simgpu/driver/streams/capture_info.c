/*
 * capture_info.c: queries of captures, and changing the dependencies of a capturing stream.
 *
 * In: streams. Out: status, id, graph and dependencies. Fails: LOSSY_QUERY if the answer would leave out edge data,
 * STREAM_CAPTURE_IMPLICIT for the legacy stream while a blocking one captures (which this does not invalidate).
 */
#include "streams/streams.h"

#include <stdlib.h>

static CUresult enter(struct call *c, CUstream handle, struct stream **s)
{
	CUresult r = call_context(c);
	if (r || (r = stream_resolve(c, handle, s)))
		return r;
	if ((*s)->is_legacy)
		for (size_t i = 0; i < all_stream_count; i++)
			if (all_streams[i]->ctx == (*s)->ctx && all_streams[i]->capture &&
			    !(all_streams[i]->flags & CU_STREAM_NON_BLOCKING))
				return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	return CUDA_SUCCESS;
}

static CUstreamCaptureStatus status_of(const struct stream *s)
{
	return !s->capture               ? CU_STREAM_CAPTURE_STATUS_NONE
	       : s->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
	                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult sim_cuStreamIsCapturing(struct call *c, CUstream handle, CUstreamCaptureStatus *status)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r)
		return r;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	*status = status_of(s);
	return CUDA_SUCCESS;
}

/* The last answer to this thread: valid until its next query. */
static _Thread_local struct { CUgraphNode *nodes; CUgraphEdgeData *edges; size_t node_cap, edge_cap; } answer;

static CUresult info(struct call *c, CUstream handle, CUstreamCaptureStatus *status, uint64_t *id, CUgraph *graph,
                     const CUgraphNode **deps, const CUgraphEdgeData **edges, size_t *count, bool with_edges)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r)
		return r;
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	*status = status_of(s);
	if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (id)
		*id = s->capture->id;
	if (graph)
		*graph = (CUgraph)s->capture->graph;
	answer.nodes = grow(answer.nodes, &answer.node_cap, s->dep_count + 1, sizeof(*answer.nodes));
	answer.edges = grow(answer.edges, &answer.edge_cap, s->dep_count + 1, sizeof(*answer.edges));
	bool lossy = false;
	for (size_t i = 0; i < s->dep_count; i++) {
		answer.nodes[i] = (CUgraphNode)s->deps[i].node;
		answer.edges[i] = s->deps[i].edge;
		lossy = lossy || !edge_default(s->deps[i].edge);
	}
	if (deps && lossy && !(with_edges && edges))
		return CUDA_ERROR_LOSSY_QUERY;
	if (deps)
		*deps = answer.nodes;
	if (edges)
		*edges = answer.edges;
	if (count)
		*count = s->dep_count;
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo(struct call *c, CUstream stream, CUstreamCaptureStatus *status, uint64_t *id)
{
	return info(c, stream, status, id, NULL, NULL, NULL, NULL, false);
}

CUresult sim_cuStreamGetCaptureInfo_v2(struct call *c, CUstream stream, CUstreamCaptureStatus *status, uint64_t *id,
                                       CUgraph *graph, const CUgraphNode **deps, size_t *count)
{
	return info(c, stream, status, id, graph, deps, NULL, count, false);
}

CUresult sim_cuStreamGetCaptureInfo_v3(struct call *c, CUstream stream, CUstreamCaptureStatus *status, uint64_t *id,
                                       CUgraph *graph, const CUgraphNode **deps, const CUgraphEdgeData **edges, size_t *count)
{
	return info(c, stream, status, id, graph, deps, edges, count, true);
}

CUresult sim_cuStreamUpdateCaptureDependencies_v2(struct call *c, CUstream handle, CUgraphNode *deps,
                                                  const CUgraphEdgeData *edges, size_t count, unsigned int flags)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r)
		return r;
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	if (!s->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (s->capture->invalidated)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	for (size_t i = 0; i < count; i++) {
		struct node *n;
		if (node_resolve(deps[i], &n) || n->graph != s->capture->graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		s->dep_count = 0;
	for (size_t i = 0; i < count; i++)
		dependencies_add(&s->deps, &s->dep_count, &s->dep_cap,
		                 (struct dependency){(struct node *)deps[i], edges ? edges[i] : (CUgraphEdgeData){0}});
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamUpdateCaptureDependencies(struct call *c, CUstream stream, CUgraphNode *deps, size_t count,
                                               unsigned int flags)
{
	return sim_cuStreamUpdateCaptureDependencies_v2(c, stream, deps, NULL, count, flags);
}

CUresult sim_cuThreadExchangeStreamCaptureMode(struct call *c, CUstreamCaptureMode *mode)
{
	(void)c;
	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUstreamCaptureMode old = thread_state()->capture_mode;
	thread_state()->capture_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
