/*
 * trace.h: the writer of one trace file (interpose/trace/README.md describes the format).
 *
 * In: records, through the generated functions of trace_gen.h. Out: chunks of whole records, which a separate thread writes
 * (trace_file.h). Fails: the file system. The writer then prints one line on standard error and drops all later records, and the
 * trace reads as incomplete. Not thread-safe: callers hold the lock of core.h, which also gives the records their total order.
 */
#ifndef MEDUSA_TRACE_H
#define MEDUSA_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct trace_bytes {
	const void *data;
	uint64_t size;
};

struct trace_writer {
	struct trace_file *file; /* NULL: closed */
	bool failed;
	uint8_t *buf; /* the chunk being filled, including its head */
	size_t len, cap;
	uint64_t records;
	uint64_t start_ns;
};

/* Creates path, which must not exist, and writes the header. Returns 0 or an errno. */
int trace_create(struct trace_writer *w, const char *path);
/* Hands the chunk to the writing thread. Waits for memory if too many bytes are queued, but never for the disk. */
void trace_flush(struct trace_writer *w);
/* Flushes, waits until everything is on the disk, and closes. */
void trace_close(struct trace_writer *w);
/* Closes without writing: for a forked child, whose parent owns the file. */
void trace_abandon(struct trace_writer *w);
/* The number of times that the process had to wait for memory, and the total time. */
void trace_waits(struct trace_writer *w, uint32_t *count, uint64_t *ns);
/* The calling thread's number, in order of first appearance. */
uint32_t trace_thread(void);

/* For trace_gen.h only. */
bool trace_begin(struct trace_writer *w, uint32_t type, uint64_t size);
void trace_finish(struct trace_writer *w);

static inline void trace_put(struct trace_writer *w, const void *p, size_t n)
{
	if (n > 0)
		memcpy(w->buf + w->len, p, n);
	w->len += n;
}

/* All supported machines are little-endian, and so is the format. */
static inline void trace_put_u8(struct trace_writer *w, uint8_t v) { trace_put(w, &v, sizeof v); }
static inline void trace_put_u32(struct trace_writer *w, uint32_t v) { trace_put(w, &v, sizeof v); }
static inline void trace_put_u64(struct trace_writer *w, uint64_t v) { trace_put(w, &v, sizeof v); }
static inline void trace_put_i64(struct trace_writer *w, int64_t v) { trace_put(w, &v, sizeof v); }
static inline void trace_put_f64(struct trace_writer *w, double v) { trace_put(w, &v, sizeof v); }

static inline void trace_put_bytes(struct trace_writer *w, struct trace_bytes b)
{
	trace_put_u32(w, (uint32_t)b.size);
	trace_put(w, b.data, b.size);
}

static inline void trace_put_str(struct trace_writer *w, const char *s)
{
	trace_put_bytes(w, (struct trace_bytes){s, s ? strlen(s) : 0});
}

static inline uint64_t trace_size_str(const char *s) { return 4 + (s ? strlen(s) : 0); }

#endif
