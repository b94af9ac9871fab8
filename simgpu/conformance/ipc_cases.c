/*
 * ipc_cases.c: memory and events that two processes of a machine share (process.h).
 */
#include "process.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static int to_nothing(void) { return open("/dev/null", O_RDWR | O_CLOEXEC); }

/* Memory of this process, with a word in it, and its handle. */
static CUresult exported(CUdeviceptr *p, CUipcMemHandle *h, size_t bytes, unsigned word)
{
	CUresult r;
	if ((r = cu.cuMemAlloc_v2(p, bytes)) || (r = set(*p, word)))
		return r;
	return cu.cuIpcGetMemHandle(h, *p);
}

static const char *shared_both_ways(void)
{
	static const size_t sizes[] = {512, 1 << 20, (5 << 20) + 4};
	for (int i = 0; i < 3; i++) {
		CUdeviceptr before, p;
		CUipcMemHandle h;
		unsigned got = 0;
		OK(cu.cuMemAlloc_v2(&before, 512)); /* so that a small one does not begin a page */
		OK(exported(&p, &h, sizes[i], 0x11110000));
			OK(set(p + sizes[i] - 4, 0x22220000));
		peer_start();
		OK(ASK(OPEN, .memory = h, .flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
		CUdeviceptr there = answer.ptr;
		OK(ASK(READ, .ptr = there));
		CHECK(answer.value == 0x11110000);
		OK(ASK(READ, .ptr = there + sizes[i] - 4));
		CHECK(answer.value == 0x22220000);
		OK(ASK(RANGE, .ptr = there + 4));
		CHECK(answer.ptr == there && answer.size >= sizes[i]);
		OK(ASK(WRITE, .ptr = there, .value = 0x33330000));
		OK(cu.cuMemcpyDtoH_v2(&got, p, 4));
		CHECK(got == 0x33330000);
		OK(set(p, 0x44440000));
		OK(ASK(READ, .ptr = there));
		CHECK(answer.value == 0x44440000);
		OK(ASK(CLOSE, .ptr = there));
		OK(cu.cuMemFree_v2(p));
		OK(cu.cuMemFree_v2(before));
		peer_end();
	}
	return NULL;
}

static const char *kernels_of_both(void)
{
	CUdeviceptr p;
	CUipcMemHandle h;
	float got = 0;
	OK(exported(&p, &h, 64, 0));
	OK(add(NULL, p, 1, 1));
	OK(cu.cuCtxSynchronize());
	peer_start();
	OK(ASK(OPEN, .memory = h, .flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CUdeviceptr there = answer.ptr;
	OK(ASK(ADD, .ptr = there, .value = 2));
	OK(ASK(READ, .ptr = there)); /* waits for the kernel */
	OK(cu.cuMemcpyDtoH_v2(&got, p, 4));
	CHECK(got == 3);
	OK(ASK(CLOSE, .ptr = there));
	OK(cu.cuMemFree_v2(p));
	peer_end();
	return NULL;
}

static const char *exported_twice(void)
{
	CUdeviceptr p;
	CUipcMemHandle h, again;
	unsigned got = 0;
	OK(exported(&p, &h, 4096, 7));
	OK(cu.cuIpcGetMemHandle(&again, p));
	peer_start();
	OK(ASK(OPEN, .memory = again, .flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(ASK(WRITE, .ptr = answer.ptr, .value = 8));
	OK(cu.cuMemcpyDtoH_v2(&got, p, 4));
	CHECK(got == 8);
	peer_end();
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *opened_twice(void)
{
	CUdeviceptr p;
	CUipcMemHandle h;
	OK(exported(&p, &h, 3 << 20, 5));
	peer_start();
	OK(ASK(OPEN, .memory = h, .flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CUdeviceptr there = answer.ptr;
	OK(ASK(OPEN, .memory = h, .flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CHECK(answer.ptr == there);
	OK(ASK(CLOSE, .ptr = there));
	OK(ASK(READ, .ptr = there));
	CHECK(answer.value == 5);
	OK(ASK(CLOSE, .ptr = there));
	CHECK(ASK(CLOSE, .ptr = there) != CUDA_SUCCESS);
	CHECK(ASK(READ, .ptr = there) != CUDA_SUCCESS);
	peer_end();
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *close_leaves_the_original(void)
{
	CUdeviceptr p;
	CUipcMemHandle h;
	unsigned got = 0;
	OK(exported(&p, &h, 4096, 5));
	peer_start();
	OK(ASK(OPEN, .memory = h, .flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CUdeviceptr there = answer.ptr;
	OK(ASK(WRITE, .ptr = there, .value = 6));
	OK(ASK(CLOSE, .ptr = there));
	peer_end();
	OK(cu.cuMemcpyDtoH_v2(&got, p, 4));
	CHECK(got == 6);
	peer_start(); /* a handle may be opened by any number of processes */
	OK(ASK(OPEN, .memory = h, .flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(ASK(READ, .ptr = answer.ptr));
	CHECK(answer.value == 6);
	peer_end();
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *unique_handles(void)
{
	CUdeviceptr p, q;
	CUipcMemHandle h, next;
	OK(exported(&p, &h, 3 << 20, 5));
	OK(cu.cuMemFree_v2(p));
	OK(exported(&q, &next, 3 << 20, 6));
	CHECK(memcmp(&h, &next, sizeof(h)) != 0);
	peer_start();
	OK(ASK(OPEN, .memory = next, .flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(ASK(READ, .ptr = answer.ptr));
	CHECK(answer.value == 6);
	peer_end();
	OK(cu.cuMemFree_v2(q));
	return NULL;
}

static const char *memory_refused(void)
{
	CUdeviceptr p;
	CUipcMemHandle h;
	void *host;
	OK(exported(&p, &h, 4096, 5));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuIpcGetMemHandle(NULL, p));
	OK(cu.cuMemAllocHost_v2(&host, 64));
	CHECK(cu.cuIpcGetMemHandle(&h, (uintptr_t)host) != CUDA_SUCCESS);
	OK(cu.cuMemFreeHost(host));
	peer_start();
	WANT(CUDA_ERROR_INVALID_VALUE, ASK(OPEN, .memory = h, .flags = 0));
	CHECK(ASK(CLOSE, .ptr = 0x1000) != CUDA_SUCCESS);
	peer_end();
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *event_flags(void)
{
	CUevent e;
	CUipcEventHandle h;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuEventCreate(&e, CU_EVENT_INTERPROCESS));
	OK(cu.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	CHECK(cu.cuIpcGetEventHandle(&h, e) != CUDA_SUCCESS);
	OK(cu.cuEventDestroy_v2(e));
	return NULL;
}

static const char *event_of_exporter(void)
{
	CUdeviceptr p;
	CUipcMemHandle memory;
	CUipcEventHandle h;
	CUevent e;
	CUstream s;
	float got;
	OK(exported(&p, &memory, 64, 0));
	OK(cu.cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cu.cuIpcGetEventHandle(&h, e));
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	peer_start();
	OK(ASK(OPEN, .memory = memory, .flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CUdeviceptr there = answer.ptr;
	OK(ASK(EVENT_OPEN, .event_handle = h));
	CUevent imported = answer.event;
	OK(add(s, p, 1, 4));
	OK(cu.cuEventRecord(e, s));
	OK(ASK(EVENT_WAIT, .event = imported)); /* this process does not wait */
	OK(ASK(READ, .ptr = there));
	memcpy(&got, &answer.value, 4);
	CHECK(got == 4);
	OK(ASK(EVENT_SYNC, .event = imported));
	OK(ASK(EVENT_QUERY, .event = imported));
	WANT(CUDA_ERROR_INVALID_HANDLE, ASK(EVENT_TIME, .event = imported));
	OK(ASK(EVENT_DESTROY, .event = imported));
	OK(ASK(CLOSE, .ptr = there));
	peer_end();
	OK(cu.cuEventDestroy_v2(e));
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *event_of_importer(void)
{
	CUdeviceptr p;
	CUipcMemHandle memory;
	CUipcEventHandle h;
	CUevent e;
	CUstream s;
	float got = 0;
	OK(exported(&p, &memory, 64, 0));
	OK(cu.cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cu.cuIpcGetEventHandle(&h, e));
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	peer_start();
	OK(ASK(OPEN, .memory = memory, .flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	CUdeviceptr there = answer.ptr;
	OK(ASK(EVENT_OPEN, .event_handle = h));
	CUevent imported = answer.event;
	OK(ASK(ADD, .ptr = there, .value = 2));
	OK(ASK(EVENT_RECORD, .event = imported));
	OK(cu.cuStreamWaitEvent(s, e, 0));
	OK(add(s, p, 1, 5));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(&got, p, 4));
	CHECK(got == 7);
	peer_end();
	OK(cu.cuEventDestroy_v2(e));
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

/* Memory of this process with a word in it, and a descriptor for the other one, which inherits it. */
static CUresult shareable(CUdeviceptr *p, int *file, unsigned word)
{
	CUmemGenericAllocationHandle h;
	CUresult r;
	if ((r = cu.cuMemCreate(&h, PAGE, &exportable, 0)) || (r = map(h, PAGE, p)) || (r = set(*p, word)) ||
	    (r = cu.cuMemExportToShareableHandle(file, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)))
		return r;
	fcntl(*file, F_SETFD, 0);
	return cu.cuMemRelease(h);
}

static const char *file_shared_both_ways(void)
{
	CUdeviceptr p;
	int file = -1;
	unsigned got = 0;
	OK(shareable(&p, &file, 0x11110000));
	peer_start();
	close(file);
	OK(ASK(IMPORT, .file = file, .size = PAGE));
	CUdeviceptr there = answer.ptr;
	OK(ASK(READ, .ptr = there));
	CHECK(answer.value == 0x11110000);
	OK(ASK(WRITE, .ptr = there + PAGE - 4, .value = 0x22220000));
	OK(cu.cuMemcpyDtoH_v2(&got, p + PAGE - 4, 4));
	CHECK(got == 0x22220000);
	return NULL;
}

static const char *file_outlives_its_maker(void)
{
	CUdeviceptr p;
	int file = -1;
	OK(shareable(&p, &file, 0x11110000));
	peer_start();
	close(file);
	OK(ASK(IMPORT, .file = file, .size = PAGE));
	CUdeviceptr there = answer.ptr;
	OK(cu.cuMemUnmap(p, PAGE));
	OK(cu.cuMemAddressFree(p, PAGE));
	OK(ASK(READ, .ptr = there));
	CHECK(answer.value == 0x11110000);
	return NULL;
}

static const char *file_refused(void)
{
	CUmemAllocationProp plain = exportable;
	CUmemGenericAllocationHandle h, other;
	int file = -1;
	plain.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	OK(cu.cuMemCreate(&h, PAGE, &plain, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemExportToShareableHandle(&file, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cu.cuMemRelease(h));
	OK(cu.cuMemCreate(&h, PAGE, &exportable, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemExportToShareableHandle(&file, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
	OK(cu.cuMemRelease(h));
	CHECK(cu.cuMemImportFromShareableHandle(&other, (void *)(intptr_t)to_nothing(), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS);
	return NULL;
}

static const struct conformance_case cases[] = {
	{"ipc/memory", "cuIpcGetMemHandle: exports an allocation for use in another process; cuIpcOpenMemHandle maps it", shared_both_ways, ALONE},
	{"ipc/kernels", "cuIpcOpenMemHandle: maps the memory into the current device address space", kernels_of_both, ALONE},
	{"ipc/exported-twice", "cuIpcGetMemHandle: may be called multiple times on an allocation", exported_twice, ALONE},
	{"ipc/opened-twice", "cuIpcOpenMemHandle: a second open counts up and returns the same pointer; cuIpcCloseMemHandle unmaps at 0", opened_twice, ALONE},
	{"ipc/close", "cuIpcCloseMemHandle: the original and mappings in other processes are unaffected", close_leaves_the_original, ALONE},
	{"ipc/unique-handles", "cuIpcGetMemHandle: memory at the address of freed memory has a handle of its own", unique_handles, ALONE},
	{"ipc/refused", "cuIpcGetMemHandle: memory of cuMemAlloc only; cuIpcOpenMemHandle: the flag must be given", memory_refused, ALONE},
	{"ipc/event-flags", "cuIpcGetEventHandle: the event was created with INTERPROCESS and DISABLE_TIMING", event_flags, ALONE},
	{"ipc/event-exported", "cuIpcGetEventHandle: the opened event synchronises with work of this process; it has no time", event_of_exporter, ALONE},
	{"ipc/event-imported", "cuIpcGetEventHandle: the other process may record the event, too", event_of_importer, ALONE},
	{"ipc/file", "cuMemExportToShareableHandle: a file descriptor, with which another process imports the memory", file_shared_both_ways, ALONE},
	{"ipc/file-outlives", "cuMemRelease: memory lives until each process has released and unmapped it", file_outlives_its_maker, ALONE},
	{"ipc/file-refused", "cuMemExportToShareableHandle: the type was asked for at cuMemCreate, flags are 0; cuMemImportFromShareableHandle: a descriptor of memory", file_refused, ALONE},
};
GROUP(ipc_cases, cases);
