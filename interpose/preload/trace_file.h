/*
 * trace_file.h: the file of a trace, and the thread that writes it.
 *
 * In: filled chunks. Out: the file, each chunk with its head. Fails: the file system. One line on standard error then says so,
 * and all later chunks are dropped, so that the trace reads as incomplete. The caller never waits for the disk, but it may wait
 * for memory: at most MOST_HELD bytes of chunks are queued, and beyond that it waits until one is written. Callers hold the lock
 * of core.h; the thread takes only the file's own lock. As long as the file is open, the process holds a lock on it (fcntl), by which other ranks see that it still writes.
 */
#ifndef MEDUSA_TRACE_FILE_H
#define MEDUSA_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNK_HEAD 8
#define CHUNK_LIMIT ((size_t)1 << 20)
#define MOST_HELD (16 * CHUNK_LIMIT)

struct trace_file;

/* Creates path, which must not exist, writes the header and starts the thread. Returns 0 or an errno. */
int trace_file_open(struct trace_file **out, const char *path);
/* Takes over a chunk of len bytes, including CHUNK_HEAD bytes of room for its head, in a buffer of cap bytes. Returns an empty
 * buffer of CHUNK_LIMIT bytes, or NULL if the file or memory failed. */
uint8_t *trace_file_swap(struct trace_file *f, uint8_t *chunk, size_t len, size_t cap);
/* The number of times that trace_file_swap had to wait, and the total time. */
void trace_file_waits(struct trace_file *f, uint32_t *count, uint64_t *ns);
/* Takes over the last chunk, waits until all chunks are written, syncs and closes. False: a step failed. */
bool trace_file_close(struct trace_file *f, uint8_t *chunk, size_t len);
/* For a forked child: it does not have the thread, and must not write. */
void trace_file_abandon(struct trace_file *f);

#endif
