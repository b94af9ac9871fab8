/*
 * shared.c: with SIMGPU_SHARED, the memory of a device among several processes. Each of SIMGPU_DEVICES has a part of the file.
 *
 * In: a file that they all name, and how much this process has. Out: how much the others have. Fails: a file that cannot be used is
 * reported in the error log once, and the process has a device of its own.
 *
 * Each process has a word of the file, which counts as long as the process holds a lock on it. The kernel takes the lock away at the process's
 * end, however it ends, so memory of a killed process is free. A lock on the bytes behind the words lets one process at a time take memory.
 */
#include "memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROCESSES 64
#define BYTES (PROCESSES * sizeof(uint64_t))

static int file = -1;
static volatile uint64_t *words;
static int own = -1;
static pid_t owner; /* a child of fork has neither the locks nor the device */

static off_t part(void)
{
	return device_number(device_used()) * (off_t)(BYTES + sizeof(uint64_t));
}

static bool lock(int command, short type, off_t start, struct flock *out)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = part() + start, .l_len = sizeof(uint64_t)};
	int r;
	do
		r = fcntl(file, command, &l);
	while (r && errno == EINTR);
	if (out)
		*out = l;
	return r == 0;
}

static bool opened(void)
{
	if (own >= 0)
		return owner == getpid();
	static bool tried;
	if (tried || !config_get()->shared)
		return false;
	tried = true;
	file = open(config_get()->shared, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *p = MAP_FAILED;
	/* The file is as long for every device: a process that came later would cut it off otherwise. */
	const size_t length = MOST_DEVICES * (BYTES + sizeof(uint64_t));
	if (file >= 0 && !ftruncate(file, (off_t)length))
		p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (p == MAP_FAILED) {
		error_log("share device memory by %s: %s", config_get()->shared, strerror(errno));
		return false;
	}
	words = (volatile uint64_t *)((char *)p + part());
	for (int i = 0; i < PROCESSES && own < 0; i++)
		if (lock(F_SETLK, F_WRLCK, i * (off_t)sizeof(uint64_t), NULL))
			own = i;
	if (own < 0) {
		error_log("share device memory by %s: %d processes do so already", config_get()->shared, PROCESSES);
		return false;
	}
	owner = getpid();
	words[own] = 0;
	return true;
}

void shared_begin(void)
{
	if (opened())
		lock(F_SETLKW, F_WRLCK, BYTES, NULL);
}

void shared_end(uint64_t used)
{
	if (!opened())
		return;
	words[own] = used;
	lock(F_SETLK, F_UNLCK, BYTES, NULL);
}

uint64_t shared_by_others(void)
{
	uint64_t sum = 0;
	struct flock l;
	if (!opened())
		return 0;
	for (int i = 0; i < PROCESSES; i++)
		if (i != own && words[i] && lock(F_GETLK, F_WRLCK, i * (off_t)sizeof(uint64_t), &l) && l.l_type != F_UNLCK)
			sum += words[i];
	return sum;
}
