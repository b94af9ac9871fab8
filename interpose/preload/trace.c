/* trace.c: see trace.h. */
#include "trace.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "trace_file.h"

#define RECORD_HEAD (4 + 4 + 8 + 8 + 4) /* type, length; order, time, thread */

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the trace format is little endian"
#endif

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int trace_create(struct trace_writer *w, const char *path)
{
	int err;
	*w = (struct trace_writer){.len = CHUNK_HEAD, .cap = CHUNK_LIMIT, .start_ns = now_ns()};
	w->buf = malloc(w->cap);
	err = w->buf ? trace_file_open(&w->file, path) : ENOMEM;
	if (err)
		trace_abandon(w);
	return err;
}

void trace_flush(struct trace_writer *w)
{
	if (w->len <= CHUNK_HEAD || w->failed)
		return;
	w->buf = trace_file_swap(w->file, w->buf, w->len, w->cap);
	w->len = CHUNK_HEAD;
	w->cap = CHUNK_LIMIT;
	w->failed = !w->buf; /* trace_file.c has printed the error */
}

void trace_close(struct trace_writer *w)
{
	if (w->file)
		trace_file_close(w->file, w->buf, w->failed ? 0 : w->len);
	*w = (struct trace_writer){.failed = true};
}

void trace_abandon(struct trace_writer *w)
{
	if (w->file)
		trace_file_abandon(w->file);
	free(w->buf);
	*w = (struct trace_writer){.failed = true};
}

void trace_waits(struct trace_writer *w, uint32_t *count, uint64_t *ns) { trace_file_waits(w->file, count, ns); }

uint32_t trace_thread(void)
{
	static _Atomic uint32_t threads;
	static _Thread_local uint32_t mine; /* number + 1 */
	if (mine == 0)
		mine = atomic_fetch_add(&threads, 1) + 1;
	return mine - 1;
}

bool trace_begin(struct trace_writer *w, uint32_t type, uint64_t size)
{
	uint64_t need = RECORD_HEAD + size;
	if (w->failed)
		return false;
	if (need > UINT32_MAX - CHUNK_HEAD) {
		fprintf(stderr, "medusa: frame trace: %s (the trace is incomplete)\n", strerror(EFBIG));
		w->failed = true;
		return false;
	}
	if (w->len + need > w->cap)
		trace_flush(w);
	if (w->failed)
		return false;
	if (w->len + need > w->cap) { /* a record that needs a chunk of its own */
		uint8_t *big = realloc(w->buf, w->len + need);
		if (!big) {
			fprintf(stderr, "medusa: buffer trace: %s (the trace is incomplete)\n", strerror(ENOMEM));
			w->failed = true;
			return false;
		}
		w->buf = big;
		w->cap = w->len + need;
	}
	trace_put_u32(w, type);
	trace_put_u32(w, (uint32_t)(need - 8));
	trace_put_u64(w, w->records++);
	trace_put_u64(w, now_ns() - w->start_ns);
	trace_put_u32(w, trace_thread());
	return true;
}

void trace_finish(struct trace_writer *w)
{
	if (w->len >= CHUNK_LIMIT)
		trace_flush(w);
}
