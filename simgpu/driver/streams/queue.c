/*
 * queue.c: deferred work and the order in which it runs.
 *
 * In: work per stream. Out: its effects, no earlier than something waits for them, in an order among independent streams
 * that the seed decides: a program that forgets to synchronise sees it. Fails: the first failing piece of work becomes the
 * context's sticky error, and everything queued behind it in that context is dropped.
 */
#include "streams/streams.h"

#include <stdlib.h>

#define QUEUE_LIMIT 4096 /* a launch beyond this waits for the oldest work, as on a device */

struct op *op_new(enum op_kind kind)
{
	struct op *op = xalloc(sizeof(*op));
	op->kind = kind;
	op->refs = 1;
	return op;
}

void op_ref(struct op *op)
{
	op->refs++;
}

void op_unref(struct op *op)
{
	if (op && --op->refs == 0)
		free(op);
}

void op_after(struct op *op, struct op *dep)
{
	if (!dep || dep->done)
		return;
	op->deps = grow(op->deps, &op->dep_cap, op->dep_count + 1, sizeof(*op->deps));
	op->deps[op->dep_count++] = dep;
	op_ref(dep);
}

/* The legacy default stream waits for all blocking streams and they for it. */
static void order_with_legacy(struct stream *s, struct op *op)
{
	if (s->flags & CU_STREAM_NON_BLOCKING)
		return;
	if (!s->is_legacy) {
		op_after(op, s->ctx->legacy->tail);
		return;
	}
	for (size_t i = 0; i < all_stream_count; i++) {
		struct stream *other = all_streams[i];
		if (other != s && other->ctx == s->ctx && !(other->flags & CU_STREAM_NON_BLOCKING))
			op_after(op, other->tail);
	}
}

void queue_add(struct stream *s, struct op *op)
{
	op->stream = s;
	order_with_legacy(s, op);
	if (s->head)
		s->tail->next = op;
	else
		s->head = op;
	op_unref(s->tail);
	s->tail = op;
	op_ref(op);
	if (++s->length > QUEUE_LIMIT)
		queue_run(s->ctx, s->head);
	else if (op->between)
		/* The other process cannot run this one's work, and a device does not wait for a call either. */
		queue_run(s->ctx, op);
}

static void payload_free(struct op *op)
{
	switch (op->kind) {
	case OP_KERNEL: launch_free(op->launch); break;
	case OP_COPY: free(op->copy.snapshot); break;
	case OP_GRAPH: body_unref(op->graph); break;
	case OP_MEM: free(op->mem_ops); break;
	default: break;
	}
}

/* op is the head of its stream and is over, whether it ran or not. */
static void finish(struct op *op)
{
	struct stream *s = op->stream;
	s->head = op->next;
	s->length--;
	op->done = true;
	op->running = false;
	op->done_ns = now_ns();
	for (size_t i = 0; i < op->dep_count; i++)
		op_unref(op->deps[i]);
	free(op->deps);
	op->deps = NULL;
	op->dep_count = 0;
	payload_free(op);
	op_unref(op);
	if (s->destroyed && !s->head)
		stream_end(s);
	driver_wake();
}

void queue_drop(struct stream *s)
{
	if (s->head && s->head->running) {
		/* Another thread is inside it and finishes it. No work may follow. */
		struct op *running = s->head;
		struct op *next = running->next;
		running->next = NULL;
		s->length = 1;
		if (s->tail != running) {
			op_unref(s->tail);
			s->tail = running;
			op_ref(running);
		}
		while (next) {
			struct op *op = next;
			next = op->next;
			op->done = true;
			for (size_t i = 0; i < op->dep_count; i++)
				op_unref(op->deps[i]);
			free(op->deps);
			op->deps = NULL;
			op->dep_count = 0;
			payload_free(op);
			op_unref(op);
		}
		return;
	}
	bool last = s->destroyed;
	while (s->head) {
		bool ends = last && !s->head->next;
		finish(s->head);
		if (ends)
			return; /* the stream went with its last piece of work */
	}
}

static void fail(struct context *ctx, CUresult r)
{
	ctx->sticky = r;
	for (size_t i = all_stream_count; i-- > 0;)
		if (all_streams[i]->ctx == ctx)
			queue_drop(all_streams[i]);
}

static CUresult perform(struct op *op)
{
	switch (op->kind) {
	case OP_KERNEL: return run_launch(op->launch);
	case OP_COPY: return run_copy(&op->copy.p, op->copy.from, op->copy.to);
	case OP_FILL: return run_fill(&op->fill, op->stream->ctx);
	case OP_GRAPH: return run_body(op->graph);
	case OP_MEM: return run_mem_ops(op->mem_ops, op->stream->ctx);
	case OP_FREE: allocation_end(op->freed); break;
	case OP_HOST: run_host(&op->host); break;
	case OP_CALLBACK: run_callback(op); break;
	case OP_EVENT:
	case OP_NOTHING: break;
	}
	return CUDA_SUCCESS;
}

static void run(struct op *op)
{
	struct context *ctx = op->stream->ctx;
	op_ref(op);
	op->running = true;
	CUresult r = perform(op);
	finish(op);
	op_unref(op);
	if (r)
		fail(ctx, r);
}

static bool ready(const struct op *op)
{
	if (op->running || (op->kind == OP_MEM && mem_ops_held(op->mem_ops, op->stream->ctx)))
		return false;
	for (size_t i = 0; i < op->dep_count; i++)
		if (!op->deps[i]->done)
			return false;
	return true;
}

/* The piece of work that op needs next: op itself once it is ready. */
static struct op *towards(struct op *op)
{
	for (;;) {
		struct op *head = op->stream->head;
		struct op *blocked = NULL;
		for (size_t i = 0; i < head->dep_count && !blocked; i++)
			if (!head->deps[i]->done)
				blocked = head->deps[i];
		if (!blocked)
			return head;
		op = blocked;
	}
}

static struct op *any_ready(void)
{
	struct op *pick = NULL;
	uint64_t seen = 0;
	for (size_t i = 0; i < all_stream_count; i++) {
		struct op *head = all_streams[i]->head;
		if (head && ready(head) && random_order() % ++seen == 0)
			pick = head;
	}
	return pick;
}

/* only: runs just the work that op needs, so that work of other streams stays as late as it may be. */
static void step(struct op *op, bool only)
{
	struct op *next = only ? NULL : any_ready();
	if (!next)
		next = towards(op);
	if (next->running)
		driver_wait();
	else
		run(next);
}

bool queue_other(void)
{
	struct op *next = any_ready();
	if (next)
		run(next);
	return next != NULL;
}

void queue_step(struct op *op)
{
	op_ref(op);
	struct op *next = op->done ? NULL : towards(op);
	if (next && (next->kind != OP_MEM || !mem_ops_held(next->mem_ops, next->stream->ctx)))
		step(op, true);
	op_unref(op);
}

CUresult queue_run(struct context *ctx, struct op *op)
{
	bool only = random_order() & 1;
	op_ref(op);
	while (!op->done)
		step(op, only);
	op_unref(op);
	return ctx->sticky;
}

CUresult queue_run_stream(struct stream *s)
{
	return s->tail && !s->tail->done ? queue_run(s->ctx, s->tail) : s->ctx->sticky;
}

CUresult queue_run_all(struct context *ctx)
{
	for (size_t i = 0; i < all_stream_count; i++) {
		struct stream *s = all_streams[i];
		if (s->ctx != ctx || !s->head)
			continue;
		CUresult r = queue_run_stream(s);
		if (r)
			return r;
		i = (size_t)-1; /* streams may have gone meanwhile */
	}
	return ctx->sticky;
}

bool stream_busy(const struct stream *s)
{
	return s->head != NULL;
}
