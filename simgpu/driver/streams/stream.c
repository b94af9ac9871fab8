/*
 * stream.c: streams, the default streams among them.
 *
 * In: the stream calls. Out: queues for queue.c. Fails: INVALID_HANDLE for a handle of no stream;
 * STREAM_CAPTURE_UNSUPPORTED for waiting on a stream that captures.
 */
#include "core/procs_gen.h"
#include "streams/streams.h"

#include <stdlib.h>
#include <string.h>

struct stream **all_streams;
size_t all_stream_count;
static size_t all_stream_cap;
static uint64_t next_stream_id = 1;

struct stream *stream_new(struct context *ctx, unsigned flags, int priority)
{
	struct stream *s = xalloc(sizeof(*s));
	s->ctx = ctx;
	s->flags = flags;
	s->priority = priority;
	s->id = next_stream_id++;
	all_streams = grow(all_streams, &all_stream_cap, all_stream_count + 1, sizeof(struct stream *));
	all_streams[all_stream_count++] = s;
	return s;
}

void stream_end(struct stream *s)
{
	object_remove(s);
	capture_stream_gone(s);
	for (size_t i = 0; i < all_stream_count; i++)
		if (all_streams[i] == s) {
			memmove(all_streams + i, all_streams + i + 1, (--all_stream_count - i) * sizeof(*all_streams));
			break;
		}
	op_unref(s->tail);
	free(s->deps);
	free(s);
}

static struct stream *per_thread(struct context *ctx)
{
	unsigned t = thread_number();
	ctx->per_thread = grow(ctx->per_thread, &ctx->per_thread_cap, (size_t)t + 1, sizeof(struct stream *));
	if (!ctx->per_thread[t]) {
		ctx->per_thread[t] = stream_new(ctx, CU_STREAM_DEFAULT, 0);
		ctx->per_thread[t]->is_per_thread = true;
	}
	return ctx->per_thread[t];
}

CUresult stream_resolve(struct call *c, CUstream handle, struct stream **out)
{
	if (handle == CU_STREAM_PER_THREAD || (!handle && c->per_thread))
		*out = per_thread(c->ctx);
	else if (!handle || handle == CU_STREAM_LEGACY)
		*out = c->ctx->legacy;
	else if (object_live(handle, OBJECT_STREAM))
		*out = (struct stream *)handle;
	else
		return CUDA_ERROR_INVALID_HANDLE;
	call_detail(c, "stream=%llu", (unsigned long long)(*out)->id);
	return CUDA_SUCCESS;
}

static CUresult enter(struct call *c, CUstream handle, struct stream **s)
{
	CUresult r = call_context(c);
	return r ? r : stream_resolve(c, handle, s);
}

CUresult sim_cuStreamCreateWithPriority(struct call *c, CUstream *stream, unsigned int flags, int priority)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	priority = priority > 0 ? 0 : priority < -5 ? -5 : priority; /* clamped, says the documentation */
	struct stream *s = stream_new(c->ctx, flags, priority);
	object_add(s, OBJECT_STREAM);
	*stream = (CUstream)s;
	call_detail(c, "stream=%llu", (unsigned long long)s->id);
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamCreate(struct call *c, CUstream *stream, unsigned int flags)
{
	return sim_cuStreamCreateWithPriority(c, stream, flags, 0);
}

CUresult sim_cuStreamDestroy_v2(struct call *c, CUstream handle)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r)
		return r;
	if (s->is_legacy || s->is_per_thread)
		return CUDA_ERROR_INVALID_HANDLE;
	if (s->capture)
		capture_invalidate(s->capture);
	object_remove(s);
	s->destroyed = true;
	if (!s->head) /* otherwise it ends with its last piece of work */
		stream_end(s);
	return CUDA_SUCCESS;
}

static CUresult no_wait_in_capture(struct call *c, struct stream *s)
{
	bool capturing;
	CUresult r = capture_check(c, s, &capturing);
	if (r)
		return r;
	if (!capturing)
		return capture_unsafe(c);
	capture_invalidate(s->capture);
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult sim_cuStreamSynchronize(struct call *c, CUstream handle)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r || (r = no_wait_in_capture(c, s)))
		return r;
	/* Waiting for the legacy stream means waiting for the streams that it waits for. */
	if (s->is_legacy) {
		struct op *op = op_new(OP_NOTHING);
		queue_add(s, op);
	}
	return queue_run_stream(s);
}

CUresult sim_cuStreamQuery(struct call *c, CUstream handle)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r || (r = no_wait_in_capture(c, s)))
		return r;
	if (!s->head)
		return CUDA_SUCCESS;
	queue_step(s->tail); /* a program that polls gets there in the end */
	return c->ctx->sticky ? c->ctx->sticky : CUDA_ERROR_NOT_READY;
}

CUresult sim_cuStreamGetPriority(struct call *c, CUstream handle, int *priority)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r)
		return r;
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	*priority = s->priority;
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetFlags(struct call *c, CUstream handle, unsigned int *flags)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r)
		return r;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = s->flags;
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetId(struct call *c, CUstream handle, uint64_t *id)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r)
		return r;
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	*id = s->id;
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCtx(struct call *c, CUstream handle, CUcontext *ctx)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r)
		return r;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = (CUcontext)s->ctx;
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamWaitEvent(struct call *c, CUstream handle, CUevent event, unsigned int flags)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r)
		return r;
	struct event *e;
	if ((r = event_resolve(event, &e)))
		return r;
	if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	bool capturing;
	if ((r = capture_check(c, s, &capturing)))
		return r;
	if (capturing || e->capture_id)
		return capture_wait_event(c, s, e, flags);
	if (!e->record || e->record->done)
		return CUDA_SUCCESS;
	struct op *op = op_new(OP_NOTHING);
	op_after(op, e->record);
	queue_add(s, op);
	return CUDA_SUCCESS;
}

CUresult sim_cuLaunchHostFunc(struct call *c, CUstream handle, CUhostFn fn, void *user_data)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r)
		return r;
	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	bool capturing;
	if ((r = capture_check(c, s, &capturing)))
		return r;
	if (capturing) {
		struct node *n = node_new(CU_GRAPH_NODE_TYPE_HOST, c->ctx);
		n->host = (struct host_call){fn, user_data};
		return capture_node(s, n);
	}
	struct op *op = op_new(OP_HOST);
	op->host = (struct host_call){fn, user_data};
	queue_add(s, op);
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamAddCallback(struct call *c, CUstream handle, CUstreamCallback callback, void *user_data, unsigned int flags)
{
	struct stream *s;
	CUresult r = enter(c, handle, &s);
	if (r)
		return r;
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if ((r = no_wait_in_capture(c, s))) /* callbacks cannot be captured */
		return r;
	struct op *op = op_new(OP_CALLBACK);
	op->callback.fn = callback;
	op->callback.data = user_data;
	queue_add(s, op);
	return CUDA_SUCCESS;
}
