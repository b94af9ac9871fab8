/*
 * usage.c: how much device memory this process has, for other programs.
 *
 * In: each change of it. Out: a file named after the process in the folder SIMGPU_PROCESSES, with the process's bytes and the
 * device's, which simgpu/nvidia-smi reads. Fails: a file that cannot be written is reported once, and the process is then missing there.
 */
#include "memory/memory.h"

#include <fcntl.h>
#include <unistd.h>

static int file = -2;
static pid_t writer;
static uint64_t told;

static void open_file(void)
{
	char path[4096];
	writer = getpid();
	snprintf(path, sizeof(path), "%s/%d", config_get()->processes, writer);
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (file < 0)
		error_log("tell the use of device memory: %s cannot be written", path);
	told = 0;
}

void usage_tell(void)
{
	if (!config_get()->processes)
		return;
	uint64_t now = heap_used();
	if (now == told || (file == -1 && writer == getpid()))
		return;
	if (file == -2 || writer != getpid())
		open_file();
	/* Of a constant width, so that a reader never sees a part of two numbers. */
	char line[64];
	int n = snprintf(line, sizeof(line), "%020llu %020llu\n", (unsigned long long)now, (unsigned long long)config_get()->memory);
	if (file >= 0 && pwrite(file, line, (size_t)n, 0) == n)
		told = now;
}
