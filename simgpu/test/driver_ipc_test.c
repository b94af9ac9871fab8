/*
 * driver_ipc_test.c: memory and events of another process, more strictly than the documentation promises. The other process is this
 * program again; it does one thing for each byte that it reads.
 */
#include "driver_test.h"

#include <sys/wait.h>

struct exports {
	CUipcMemHandle small, large, other;
	CUipcEventHandle event;
};

static int commands, answers;
static pid_t owner;

static void own(void)
{
	struct exports e;
	CUdeviceptr before, small, large, other;
	CUevent event;
	char command;
	OK(cuMemAlloc(&before, 512));
	OK(cuMemAlloc(&small, 512));
	OK(cuMemAlloc(&large, 4 << 20));
	OK(cuMemAlloc(&other, 512));
	OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuIpcGetMemHandle(&e.small, small));
	OK(cuIpcGetMemHandle(&e.large, large));
	OK(cuIpcGetMemHandle(&e.other, other));
	OK(cuIpcGetEventHandle(&e.event, event));
	CHECK(write(3, &e, sizeof(e)) == sizeof(e));
	while (read(0, &command, 1) == 1) {
		if (command == 'f') {
			OK(cuMemFree(large));
			OK(cuEventDestroy(event));
		}
		CHECK(write(3, &command, 1) == 1);
	}
	_exit(0);
}

static void start_owner(struct exports *e)
{
	int in[2], out[2];
	CHECK(pipe(in) == 0 && pipe(out) == 0);
	fflush(stdout);
	owner = fork();
	if (owner == 0) {
		dup2(in[0], 0);
		dup2(out[1], 3);
		for (int fd = 4; fd < 64; fd++)
			close(fd);
		putenv("IPC_OWNER=1");
		execl("/proc/self/exe", "driver_test", "between_processes", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	commands = in[1];
	answers = out[0];
	CHECK(read(answers, e, sizeof(*e)) == sizeof(*e));
}

static void command(char c)
{
	char done;
	CHECK(write(commands, &c, 1) == 1 && read(answers, &done, 1) == 1 && done == c);
}

static CUresult open_memory(CUdeviceptr *p, CUipcMemHandle h)
{
	return cuIpcOpenMemHandle(p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

/* Exports of this process, allowed and refused ones. */
static void exports_of_this_process(void)
{
	CUdeviceptr p, pitched, global;
	size_t size;
	int capable = -1;
	CUipcMemHandle h;
	CUipcEventHandle eh;
	CUevent e, opened;
	CUmodule m;
	OK(cuMemAlloc(&p, 4096));
	OK(cuIpcGetMemHandle(&h, p));
	WANT(CUDA_ERROR_INVALID_CONTEXT, open_memory(&global, h));
	WANT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, p + 512));
	OK(cuMemAllocPitch(&pitched, &size, 64, 2, 4));
	WANT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, pitched));
	OK(cuModuleLoadData(&m, HEADER ".visible .global .align 4 .u32 word;\n"));
	OK(cuModuleGetGlobal(&global, &size, m, "word"));
	WANT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, global));
	OK(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
	CHECK(capable == 1);
	OK(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pitched));
	CHECK(capable == 0);
	OK(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuIpcGetEventHandle(&eh, e));
	WANT(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenEventHandle(&opened, eh));
	memset(&h, 0, sizeof(h));
	memset(&eh, 0x5a, sizeof(eh));
	WANT(CUDA_ERROR_INVALID_HANDLE, open_memory(&global, h));
	WANT(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenEventHandle(&opened, eh));
}

void between_processes(void)
{
	struct exports e;
	CUdeviceptr p, q;
	CUcontext first, second;
	CUevent event;
	int status;
	if (getenv("IPC_OWNER"))
		own();
	exports_of_this_process();
	start_owner(&e);
	OK(open_memory(&p, e.large));
	OK(launch(add_kernel, NULL, p, 16, 1));
	OK(cuCtxSynchronize());
	WANT(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	WANT(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(p + 512));
	WANT(CUDA_ERROR_INVALID_HANDLE, cuIpcOpenEventHandle(&event, *(CUipcEventHandle *)&e.large));
	/* one context of a process opens the handles of another process */
	OK(cuCtxGetCurrent(&first));
	OK(cuCtxCreate(&second, 0, 0));
	WANT(CUDA_ERROR_INVALID_CONTEXT, open_memory(&q, e.small));
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(first));
	/* two allocations of one page are apart, and a kernel reaches neither from the other */
	OK(open_memory(&q, e.small));
	OK(launch(add_kernel, NULL, q, 128, 1));
	OK(cuCtxSynchronize());
	OK(cuIpcOpenEventHandle(&event, e.event));
	OK(cuEventQuery(event));
	command('f');
	WANT(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
	WANT(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(NULL, event, 0));
	OK(cuEventDestroy(event));
	OK(launch(add_kernel, NULL, p, 16, 1)); /* the memory that its owner has freed */
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	OK(cuDevicePrimaryCtxReset(0));
	OK(cuDevicePrimaryCtxRetain(&first, 0));
	WANT(CUDA_ERROR_INVALID_HANDLE, open_memory(&p, e.large));
	OK(open_memory(&q, e.other));
	OK(cuIpcCloseMemHandle(q));
	close(commands); /* the owner ends */
	CHECK(waitpid(owner, &status, 0) == owner && status == 0);
	WANT(CUDA_ERROR_INVALID_HANDLE, open_memory(&q, e.other));
}

/* A process sees both devices of the machine, and has its context on the first. */
void other_device(void)
{
	CUdevice device;
	CUcontext ctx, second, created;
	CUuuid own, other;
	CUmemoryPool pool, second_pool;
	CUdeviceptr p;
	unsigned int flags;
	int count = 0, active = -1;
	OK(cuDeviceGetCount(&count));
	OK(cuDeviceGet(&device, 1));
	CHECK(count == 2 && device == 1);
	WANT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 2));
	OK(cuDeviceGetUuid(&own, 0));
	OK(cuDeviceGetUuid(&other, 1));
	CHECK(memcmp(&own, &other, sizeof(own)) != 0);
	OK(cuCtxGetDevice(&device));
	CHECK(device == 0);
	OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
	CHECK(active == 0);
	OK(cuCtxGetCurrent(&ctx));
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	CHECK(second != ctx);
	OK(cuCtxCreate(&created, 0, 1));
	OK(cuCtxGetDevice(&device));
	CHECK(device == 1);
	OK(cuCtxDestroy(created));
	/* memory of a pool is its device's alone, whatever the contexts may reach */
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuDeviceGetDefaultMemPool(&second_pool, 1));
	CHECK(pool != second_pool);
	WANT(CUDA_ERROR_NOT_SUPPORTED, cuMemAllocFromPoolAsync(&p, 64, second_pool, NULL));
	OK(cuCtxEnablePeerAccess(second, 0));
	OK(cuCtxPushCurrent(second));
	OK(cuMemAllocAsync(&p, 64, NULL));
	OK(cuCtxPopCurrent(NULL));
	WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpyPeer(p, ctx, p, second, 64));
	OK(launch(add_kernel, NULL, p, 1, 1));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	/* the other device is not affected, but its memory goes with its context, and with that the access */
	OK(cuCtxPushCurrent(second));
	OK(cuCtxSynchronize());
	OK(cuDevicePrimaryCtxReset(1));
	OK(cuDevicePrimaryCtxReset(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxSetCurrent(ctx));
	WANT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(second));
}
