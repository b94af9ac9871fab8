/*
 * slow.c PATH RECORDS: writes a trace with this many records of 1,000 bytes, as record mode does, to a disk that takes 20 ms per
 * chunk. Prints how often it had to wait for the disk, and how often it was synced.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static ssize_t slow_write(int fd, const void *p, size_t n)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	return write(fd, p, n);
}

static int syncs;

static int counted_sync(int fd)
{
	syncs++;
	return fsync(fd);
}

#define write slow_write
#define fsync counted_sync
#define fdatasync counted_sync
#include "../preload/trace_file.c"
#undef write
#undef fsync
#undef fdatasync
#define now_ns trace_now_ns
#include "../preload/trace.c"
#include "trace_gen.h"

int main(int argc, char **argv)
{
	static char bytes[1000];
	struct trace_writer w;
	uint32_t waits;
	uint64_t ns;
	if (argc != 3 || trace_create(&w, argv[1]) != 0)
		return 2;
	trace_process(&w, 1, 1, 0, "slow", NULL, 0);
	for (int i = 0; i < atoi(argv[2]); i++) {
		bytes[0] = (char)i;
		trace_content(&w, (uint32_t)i, 0, (struct trace_bytes){bytes, sizeof bytes});
	}
	trace_waits(&w, &waits, &ns);
	if (waits > 0)
		trace_waited(&w, waits, ns);
	trace_end(&w, w.records);
	trace_close(&w);
	printf("%u %d\n", waits, syncs);
	return 0;
}
