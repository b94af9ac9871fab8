/* trace.c: see trace.h. Container: header, then chunks of u32 length, u32 CRC-32C (of length and payload), payload. */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CHUNK_HEAD 8
#define CHUNK_LIMIT ((size_t)1 << 20)
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

/* CRC-32C with the reflected polynomial 0x82f63b78, one byte a step. */
static uint32_t crc32c(const uint8_t *p, size_t n)
{
	static uint32_t table[256];
	uint32_t crc = 0xffffffffu;
	if (table[1] == 0) { /* every writer holds the lock, so nobody races us here */
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t v = i;
			for (int k = 0; k < 8; k++)
				v = (v >> 1) ^ (v & 1 ? 0x82f63b78u : 0);
			table[i] = v;
		}
	}
	for (size_t i = 0; i < n; i++)
		crc = (crc >> 8) ^ table[(crc ^ p[i]) & 0xff];
	return crc ^ 0xffffffffu;
}

static void fail(struct trace_writer *w, const char *what, int err)
{
	if (!w->failed)
		fprintf(stderr, "medusa: %s trace: %s (the trace is incomplete)\n", what, strerror(err));
	w->failed = true;
}

static void write_all(struct trace_writer *w, const uint8_t *p, size_t n)
{
	while (n > 0 && !w->failed) {
		ssize_t k = write(w->fd, p, n);
		if (k < 0 && errno != EINTR)
			fail(w, "write", errno);
		if (k > 0) {
			p += k;
			n -= (size_t)k;
		}
	}
}

int trace_create(struct trace_writer *w, const char *path)
{
	static const uint8_t header[12] = "medusaTR\1";
	*w = (struct trace_writer){.fd = -1, .len = CHUNK_HEAD, .cap = CHUNK_LIMIT, .start_ns = now_ns()};
	w->buf = malloc(w->cap);
	if (!w->buf)
		return ENOMEM;
	w->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (w->fd < 0) {
		int err = errno;
		trace_abandon(w);
		return err;
	}
	write_all(w, header, sizeof header);
	return 0;
}

void trace_flush(struct trace_writer *w)
{
	uint32_t size = (uint32_t)(w->len - CHUNK_HEAD), sum;
	uint8_t *first;
	if (size == 0)
		return;
	/* The checksum covers the length too; laid out as length, payload in memory for one pass over it. */
	first = w->buf + 4;
	memcpy(first, &size, 4);
	sum = crc32c(first, (size_t)size + 4);
	memcpy(w->buf, &size, 4);
	memcpy(w->buf + 4, &sum, 4);
	write_all(w, w->buf, w->len);
	w->len = CHUNK_HEAD;
	if (w->cap > CHUNK_LIMIT) { /* grown for one big record */
		uint8_t *small = realloc(w->buf, CHUNK_LIMIT);
		if (small) {
			w->buf = small;
			w->cap = CHUNK_LIMIT;
		}
	}
}

void trace_close(struct trace_writer *w)
{
	trace_flush(w);
	if (!w->failed && fsync(w->fd) != 0 && errno != EINVAL) /* EINVAL: a pipe */
		fail(w, "sync", errno);
	trace_abandon(w);
}

void trace_abandon(struct trace_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	free(w->buf);
	*w = (struct trace_writer){.fd = -1, .failed = true};
}

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
		fail(w, "frame", EFBIG);
		return false;
	}
	if (w->len + need > w->cap)
		trace_flush(w);
	if (w->len + need > w->cap) {
		uint8_t *big = realloc(w->buf, w->len + need);
		if (!big) {
			fail(w, "buffer", ENOMEM);
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
