/*
 * driver_shared_test.c: two processes take the memory of one device. Both are this program again; each does one thing for each byte that it
 * reads, and answers with one.
 */
#include "driver_test.h"

#include <signal.h>
#include <sys/wait.h>

#define PIECE ((size_t)8 << 20)

/* t: takes a piece. g: gives the last one back. m, v: the same with virtual memory, without a mapping. f: free pieces. o: goes to the other device. */
static void take_and_give(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr p = 0;
	size_t free_bytes, total;
	int version;
	CUcontext other;
	char command, answer;
	/* as programs do that put a title in place of their environment (setproctitle) */
	OK(cuDriverGetVersion(&version));
	memset(getenv("SIMGPU_SHARED"), 0, strlen(getenv("SIMGPU_SHARED")));
	while (read(0, &command, 1) == 1) {
		switch (command) {
		case 't':
			answer = (char)cuMemAlloc(&p, PIECE);
			break;
		case 'g':
			answer = (char)cuMemFree(p);
			break;
		case 'm':
			answer = (char)cuMemCreate(&handle, PIECE, &prop, 0);
			break;
		case 'v':
			answer = (char)cuMemRelease(handle);
			break;
		case 'o':
			OK(cuDevicePrimaryCtxRetain(&other, 1));
			answer = (char)cuCtxSetCurrent(other);
			break;
		default:
			OK(cuMemGetInfo(&free_bytes, &total));
			answer = (char)(free_bytes / PIECE);
		}
		CHECK(write(3, &answer, 1) == 1);
	}
	_exit(0);
}

struct process { pid_t pid; int commands, answers; };

static struct process start_process(void)
{
	int in[2], out[2];
	CHECK(pipe(in) == 0 && pipe(out) == 0);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 3);
		for (int fd = 4; fd < 64; fd++)
			close(fd);
		execl("/proc/self/exe", "driver_test", "shared_device", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	return (struct process){pid, in[1], out[0]};
}

static int tell(const struct process *p, char command)
{
	signed char answer;
	CHECK(write(p->commands, &command, 1) == 1 && read(p->answers, &answer, 1) == 1);
	return answer;
}

void shared_device(void)
{
	int status;
	if (getenv("SIMGPU_SHARED"))
		take_and_give();
	char path[64];
	snprintf(path, sizeof(path), "/tmp/simgpu-shared-%d", getpid());
	setenv("SIMGPU_SHARED", path, 1);
	setenv("SIMGPU_MEMORY", "64M", 1);
	setenv("SIMGPU_DEVICES", "2", 1);
	struct process a = start_process(), b = start_process();
	int all = tell(&a, 'f');
	CHECK(all == 8);
	CHECK(tell(&a, 't') == 0 && tell(&a, 'm') == 0);
	CHECK(tell(&a, 'f') == all - 2 && tell(&b, 'f') == all - 2);
	for (int i = 2; i < all; i++)
		CHECK(tell(&b, 't') == 0);
	CHECK(tell(&b, 't') == CUDA_ERROR_OUT_OF_MEMORY && tell(&a, 'm') == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(tell(&a, 'g') == 0 && tell(&b, 'm') == 0);
	CHECK(tell(&a, 'v') == 0 && tell(&a, 't') == 0);
	CHECK(tell(&a, 'f') == 0);
	/* the memory of a killed process is free */
	kill(b.pid, SIGKILL);
	CHECK(waitpid(b.pid, &status, 0) == b.pid);
	CHECK(tell(&a, 'f') == all - 1);
	b = start_process();
	CHECK(tell(&b, 'f') == all - 1);
	/* the other device is shared as well, and counted by itself */
	CHECK(tell(&a, 'o') == 0 && tell(&a, 'f') == all && tell(&a, 't') == 0 && tell(&a, 't') == 0);
	CHECK(tell(&b, 'f') == all - 1 && tell(&b, 't') == 0);
	CHECK(tell(&b, 'o') == 0 && tell(&b, 'f') == all - 2);
	close(a.commands);
	close(b.commands);
	CHECK(waitpid(a.pid, &status, 0) == a.pid && status == 0);
	CHECK(waitpid(b.pid, &status, 0) == b.pid && status == 0);
	unlink(path);
}
