/* trace_file.c: see trace_file.h. Container: header, then chunks of u32 length, u32 CRC-32C (of length and payload), payload. */
#include "trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct chunk {
	struct chunk *next;
	uint8_t *data;
	size_t len, cap;
};

struct trace_file {
	int fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work, room;
	/* All under the lock. */
	struct chunk *first, *last;
	struct chunk *spare; /* written chunks, for reuse */
	size_t held;         /* bytes of the buffers that are queued or being written */
	bool started, closing, failed;
	uint32_t waits;
	uint64_t waited_ns;
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CRC-32C with the reflected polynomial 0x82f63b78, eight bytes per step: table[k][b] is the checksum of b followed by k zero
 * bytes. Only the writing thread calls it. */
static uint32_t crc32c(const uint8_t *p, size_t n)
{
	static uint32_t table[8][256];
	uint32_t crc = 0xffffffffu;
	if (table[0][1] == 0) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t v = i;
			for (int k = 0; k < 8; k++)
				v = (v >> 1) ^ (v & 1 ? 0x82f63b78u : 0);
			table[0][i] = v;
		}
		for (int k = 1; k < 8; k++)
			for (int i = 0; i < 256; i++)
				table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xff];
	}
	for (; n >= 8; p += 8, n -= 8) {
		uint64_t v;
		memcpy(&v, p, 8);
		v ^= crc;
		crc = 0;
		for (int k = 0; k < 8; k++)
			crc ^= table[7 - k][v >> 8 * k & 0xff];
	}
	for (size_t i = 0; i < n; i++)
		crc = (crc >> 8) ^ table[0][(crc ^ p[i]) & 0xff];
	return crc ^ 0xffffffffu;
}

/* Returns 0 or an errno. */
static int write_all(int fd, const uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t k = write(fd, p, n);
		if (k < 0 && errno != EINTR)
			return errno;
		if (k > 0) {
			p += k;
			n -= (size_t)k;
		}
	}
	return 0;
}

static int write_chunk(int fd, uint8_t *data, size_t len)
{
	uint32_t size = (uint32_t)(len - CHUNK_HEAD), sum;
	/* The checksum covers the length too. For a single pass, the length is first stored directly before the payload. */
	memcpy(data + 4, &size, 4);
	sum = crc32c(data + 4, (size_t)size + 4);
	memcpy(data, &size, 4);
	memcpy(data + 4, &sum, 4);
	/* mutant: the recorder syncs nothing */
	return write_all(fd, data, len);
}

static void fail(struct trace_file *f, const char *what, int err)
{
	if (!f->failed)
		fprintf(stderr, "medusa: %s trace: %s (the trace is incomplete)\n", what, strerror(err));
	f->failed = true;
}

/* With the lock held: keeps the buffer of a chunk for the next one, or frees it. */
static void recycle(struct trace_file *f, struct chunk *c)
{
	f->held -= c->cap;
	if (c->cap == CHUNK_LIMIT && !f->closing) {
		c->next = f->spare;
		f->spare = c;
		return;
	}
	free(c->data);
	free(c);
}

static void *write_chunks(void *file)
{
	struct trace_file *f = file;
	pthread_mutex_lock(&f->lock);
	f->started = true;
	pthread_cond_signal(&f->room);
	for (;;) {
		struct chunk *c = f->first;
		int err = 0;
		if (!c && f->closing)
			break;
		if (!c) {
			pthread_cond_wait(&f->work, &f->lock);
			continue;
		}
		if (!(f->first = c->next))
			f->last = NULL;
		if (!f->failed) {
			pthread_mutex_unlock(&f->lock);
			err = write_chunk(f->fd, c->data, c->len);
			pthread_mutex_lock(&f->lock);
		}
		if (err)
			fail(f, "write", err);
		recycle(f, c);
		pthread_cond_broadcast(&f->room);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* The new thread blocks all signals, because the engine's own threads handle them. Before this function returns, the thread has
 * taken all memory that it needs, so that the engine's own memory is placed alike from run to run. */
static int start(struct trace_file *f)
{
	sigset_t all, before;
	int err;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&f->thread, NULL, write_chunks, f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_mutex_lock(&f->lock);
	while (!err && !f->started)
		pthread_cond_wait(&f->room, &f->lock);
	pthread_mutex_unlock(&f->lock);
	return err;
}

int trace_file_open(struct trace_file **out, const char *path)
{
	static const uint8_t header[12] = "medusaTR\1";
	struct trace_file *f = calloc(1, sizeof *f);
	int err = ENOMEM;
	if (!f)
		return err;
	f->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (f->fd < 0) {
		err = errno;
		free(f);
		return err;
	}
	(void)fcntl(f->fd, F_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET});
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	pthread_cond_init(&f->room, NULL);
	err = write_all(f->fd, header, sizeof header);
	if (!err)
		err = start(f);
	if (err) {
		close(f->fd);
		free(f);
		return err;
	}
	*out = f;
	return 0;
}

/* With the lock held. */
static bool push(struct trace_file *f, uint8_t *data, size_t len, size_t cap)
{
	struct chunk *c = malloc(sizeof *c);
	if (!c) {
		fail(f, "buffer", ENOMEM);
		free(data);
		return false;
	}
	*c = (struct chunk){NULL, data, len, cap};
	if (f->last)
		f->last->next = c;
	else
		f->first = c;
	f->last = c;
	f->held += cap;
	pthread_cond_signal(&f->work);
	return true;
}

/* With the lock held: returns an empty buffer, as soon as the limit allows one. */
static uint8_t *take(struct trace_file *f)
{
	struct chunk *c;
	uint8_t *data;
	/* mutant: the recorder's memory is bounded */
	if (!f->spare && f->held + CHUNK_LIMIT > MOST_HELD) {
		uint64_t began = now_ns();
		while (!f->spare && f->held + CHUNK_LIMIT > MOST_HELD)
			pthread_cond_wait(&f->room, &f->lock);
		f->waits++;
		f->waited_ns += now_ns() - began;
	}
	c = f->spare;
	if (!c) {
		data = malloc(CHUNK_LIMIT);
		if (!data)
			fail(f, "buffer", ENOMEM);
		return data;
	}
	f->spare = c->next;
	data = c->data;
	free(c);
	return data;
}

uint8_t *trace_file_swap(struct trace_file *f, uint8_t *chunk, size_t len, size_t cap)
{
	uint8_t *next = NULL;
	pthread_mutex_lock(&f->lock);
	if (push(f, chunk, len, cap) && !f->failed)
		next = take(f);
	pthread_mutex_unlock(&f->lock);
	return next;
}

void trace_file_waits(struct trace_file *f, uint32_t *count, uint64_t *ns)
{
	pthread_mutex_lock(&f->lock);
	*count = f->waits;
	*ns = f->waited_ns;
	pthread_mutex_unlock(&f->lock);
}

bool trace_file_close(struct trace_file *f, uint8_t *chunk, size_t len)
{
	bool ok;
	pthread_mutex_lock(&f->lock);
	if (len > CHUNK_HEAD)
		push(f, chunk, len, len);
	else
		free(chunk);
	f->closing = true;
	pthread_cond_signal(&f->work);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	if (!f->failed && fsync(f->fd) != 0 && errno != EINVAL) /* EINVAL: a pipe */
		fail(f, "sync", errno);
	ok = !f->failed;
	close(f->fd);
	while (f->spare) {
		struct chunk *c = f->spare;
		f->spare = c->next;
		free(c->data);
		free(c);
	}
	pthread_cond_destroy(&f->work);
	pthread_cond_destroy(&f->room);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return ok;
}

/* The state of the writing thread at the fork is unknown, so only the descriptor is closed. */
void trace_file_abandon(struct trace_file *f) { close(f->fd); }
