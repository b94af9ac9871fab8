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

static int file = -2; /* not tried */
static char *mapped;
static struct { bool tried, taken; int word; } own[MOST_DEVICES];
static pid_t owner; /* a child of fork has neither the locks nor the device */

static off_t part(CUdevice dev)
{
	return device_number(dev) * (off_t)(BYTES + sizeof(uint64_t));
}

static volatile uint64_t *words(CUdevice dev) { return (volatile uint64_t *)(void *)(mapped + part(dev)); }

static bool lock(CUdevice dev, int command, short type, off_t start, struct flock *out)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = part(dev) + start, .l_len = sizeof(uint64_t)};
	int r;
	do
		r = fcntl(file, command, &l);
	while (r && errno == EINTR);
	if (out)
		*out = l;
	return r == 0;
}

static bool open_file(void)
{
	if (file != -2)
		return mapped != NULL;
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
	mapped = p;
	owner = getpid();
	return true;
}

static bool opened(CUdevice dev)
{
	if (own[dev].taken)
		return owner == getpid();
	if (own[dev].tried || !config_get()->shared || !open_file())
		return false;
	own[dev].tried = true;
	for (int i = 0; i < PROCESSES && !own[dev].taken; i++)
		if (lock(dev, F_SETLK, F_WRLCK, i * (off_t)sizeof(uint64_t), NULL)) {
			own[dev].word = i;
			own[dev].taken = true;
		}
	if (!own[dev].taken) {
		error_log("share device memory by %s: %d processes do so already", config_get()->shared, PROCESSES);
		return false;
	}
	words(dev)[own[dev].word] = 0;
	return true;
}

void shared_begin(CUdevice dev)
{
	if (opened(dev))
		lock(dev, F_SETLKW, F_WRLCK, BYTES, NULL);
}

void shared_end(CUdevice dev, uint64_t used)
{
	if (!opened(dev))
		return;
	words(dev)[own[dev].word] = used;
	lock(dev, F_SETLK, F_UNLCK, BYTES, NULL);
}

uint64_t shared_by_others(CUdevice dev)
{
	uint64_t sum = 0;
	struct flock l;
	if (!opened(dev))
		return 0;
	for (int i = 0; i < PROCESSES; i++)
		if (i != own[dev].word && words(dev)[i] && lock(dev, F_GETLK, F_WRLCK, i * (off_t)sizeof(uint64_t), &l) && l.l_type != F_UNLCK)
			sum += words(dev)[i];
	return sum;
}
