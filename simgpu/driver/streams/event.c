/*
 * event.c: events.
 *
 * In: the event calls. Out: points in streams that others wait for. Fails: CAPTURED_EVENT for asking after an event that
 * was last recorded in a capture; INVALID_HANDLE and NOT_READY as documented for elapsed time.
 */
#include "streams/streams.h"

#include <stdlib.h>
#include <string.h>

CUresult sim_cuEventCreate(struct call *c, CUevent *event, unsigned int flags)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!event || flags & ~7u)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_VALUE;
	*event = (CUevent)event_new(c->ctx, flags);
	return CUDA_SUCCESS;
}

struct event *event_new(struct context *ctx, unsigned flags)
{
	static uint64_t created;
	struct event *e = xalloc(sizeof(*e));
	e->ctx = ctx;
	e->number = created++;
	e->flags = flags;
	object_add(e, OBJECT_EVENT);
	if (truth_wanted()) {
		struct truth_line l = truth_start("event");
		truth_append(&l, "\t%llu\t%p", (unsigned long long)e->number, (void *)e);
		truth_end(&l);
	}
	return e;
}

void event_end(struct event *e)
{
	object_remove(e);
	op_unref(e->record);
	ticket_end(e->ticket);
	free(e->deps);
	free(e);
}

/* An event of another process is of no use any more once that one has destroyed it. */
CUresult event_resolve(CUevent handle, struct event **out)
{
	if (!object_live(handle, OBJECT_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	*out = (struct event *)handle;
	return (*out)->ticket && *(*out)->ticket->gone ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

static CUresult enter(struct call *c, CUevent handle, struct event **out)
{
	CUresult r = call_context(c);
	return r ? r : event_resolve(handle, out);
}

CUresult sim_cuEventDestroy_v2(struct call *c, CUevent handle)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!object_live(handle, OBJECT_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	event_end((struct event *)handle);
	return CUDA_SUCCESS;
}

CUresult sim_cuEventRecordWithFlags(struct call *c, CUevent handle, CUstream stream, unsigned int flags)
{
	struct event *e;
	struct stream *s;
	CUresult r = enter(c, handle, &e);
	if (r || (r = stream_resolve(c, stream, &s)))
		return r;
	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (e->ctx != s->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	bool capturing;
	if ((r = capture_check(c, s, &capturing)))
		return r;
	if (capturing)
		return capture_record_event(c, s, e, flags);
	if (flags & CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	struct op *op = op_new(OP_EVENT);
	event_set(e, op);
	queue_add(s, op);
	return CUDA_SUCCESS;
}

/* e is reached when op is done. */
void event_set(struct event *e, struct op *op)
{
	op_ref(op);
	op_unref(e->record);
	op->between = op->between || e->flags & CU_EVENT_INTERPROCESS;
	e->record = op;
	e->capture_id = 0;
	e->dep_count = 0;
}

CUresult sim_cuEventRecord(struct call *c, CUevent handle, CUstream stream)
{
	return sim_cuEventRecordWithFlags(c, handle, stream, 0);
}

static CUresult no_capture(struct call *c, const struct event *e)
{
	if (!e->capture_id)
		return capture_unsafe(c);
	capture_invalidate_id(e->capture_id);
	return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult sim_cuEventQuery(struct call *c, CUevent handle)
{
	struct event *e;
	CUresult r = enter(c, handle, &e);
	if (r || (r = no_capture(c, e)))
		return r;
	if (!e->record || e->record->done)
		return CUDA_SUCCESS;
	queue_step(e->record); /* a program that polls gets there in the end */
	return c->ctx->sticky ? c->ctx->sticky : CUDA_ERROR_NOT_READY;
}

CUresult sim_cuEventSynchronize(struct call *c, CUevent handle)
{
	struct event *e;
	CUresult r = enter(c, handle, &e);
	if (r || (r = no_capture(c, e)))
		return r;
	return e->record && !e->record->done ? queue_run(c->ctx, e->record) : CUDA_SUCCESS;
}

CUresult sim_cuEventElapsedTime(struct call *c, float *ms, CUevent start, CUevent end)
{
	struct event *a, *b;
	CUresult r = enter(c, start, &a);
	if (r || (r = enter(c, end, &b)))
		return r;
	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	if ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING || !a->record || !b->record)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!a->record->done || !b->record->done)
		return CUDA_ERROR_NOT_READY;
	*ms = (float)((double)b->record->done_ns - (double)a->record->done_ns) / 1e6f; /* a float of the times themselves would lose the difference */
	return CUDA_SUCCESS;
}

CUresult sim_cuEventElapsedTime_v2(struct call *c, float *ms, CUevent start, CUevent end)
{
	return sim_cuEventElapsedTime(c, ms, start, end);
}

/* ---- between processes ------------------------------------------------------------------------------------------ */

CUresult sim_cuIpcGetEventHandle(struct call *c, CUipcEventHandle *handle, CUevent event)
{
	struct event *e;
	CUresult r = enter(c, event, &e);
	if (r)
		return r;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (!(e->flags & CU_EVENT_INTERPROCESS) || (e->ticket && e->ticket->file < 0))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!e->ticket && !(e->ticket = ticket_new()))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct handle h = ticket_handle(e->ticket, HANDLE_EVENT);
	memcpy(handle, &h, sizeof(h));
	return CUDA_SUCCESS;
}

/* The work before a record of such an event runs at once, so the event is reached whenever another process asks. */
CUresult sim_cuIpcOpenEventHandle(struct call *c, CUevent *event, CUipcEventHandle handle)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	struct handle h;
	struct ticket *t;
	memcpy(&h, &handle, sizeof(h));
	if ((r = handle_open(&h, HANDLE_EVENT, &t)))
		return r;
	struct event *e = event_new(c->ctx, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	e->ticket = t;
	*event = (CUevent)e;
	return CUDA_SUCCESS;
}
