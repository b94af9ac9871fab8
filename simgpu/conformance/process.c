/*
 * process.c: see process.h.
 */
#include "process.h"

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the other process ------------------------------------------------------------------------------------------ */

/* A fill of device memory may be under way when the call returns. */
CUresult set(CUdeviceptr p, unsigned word)
{
	CUresult r = cu.cuMemsetD32_v2(p, word, 1);
	return r ? r : cu.cuCtxSynchronize();
}

const CUmemAllocationProp exportable = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};

CUresult map(CUmemGenericAllocationHandle h, size_t size, CUdeviceptr *p)
{
	const CUmemAccessDesc read_write = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUresult r;
	if ((r = cu.cuMemAddressReserve(p, size, 0, 0, 0)) || (r = cu.cuMemMap(*p, size, 0, h, 0)))
		return r;
	return cu.cuMemSetAccess(*p, size, &read_write, 1);
}

static CUresult import(int file, size_t size, CUdeviceptr *p)
{
	CUmemGenericAllocationHandle h;
	CUresult r = cu.cuMemImportFromShareableHandle(&h, (void *)(intptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	close(file);
	return r || (r = map(h, size, p)) ? r : cu.cuMemRelease(h);
}

static CUresult serve(const struct request *q, struct reply *a)
{
	float ms;
	switch (q->call) {
	case OPEN: return cu.cuIpcOpenMemHandle_v2(&a->ptr, q->memory, q->flags);
	case CLOSE: return cu.cuIpcCloseMemHandle(q->ptr);
	case READ: return cu.cuMemcpyDtoH_v2(&a->value, q->ptr, 4);
	case WRITE: return set(q->ptr, q->value);
	case ADD: return add(NULL, q->ptr, 1, (float)q->value);
	case RANGE: return cu.cuMemGetAddressRange_v2(&a->ptr, &a->size, q->ptr);
	case EVENT_OPEN: return cu.cuIpcOpenEventHandle(&a->event, q->event_handle);
	case EVENT_QUERY: return cu.cuEventQuery(q->event);
	case EVENT_SYNC: return cu.cuEventSynchronize(q->event);
	case EVENT_WAIT: return cu.cuStreamWaitEvent(NULL, q->event, 0);
	case EVENT_RECORD: return cu.cuEventRecord(q->event, NULL);
	case EVENT_TIME: return cu.cuEventElapsedTime(&ms, q->event, q->event);
	case EVENT_DESTROY: return cu.cuEventDestroy_v2(q->event);
	case IMPORT: return import(q->file, q->size, &a->ptr);
	case TEAM_IMPORT: return team_import(q->file);
	case TEAM_BIND: return team_bind(q->size, &a->ptr);
	case TEAM_MAP: return team_map(q->size, &a->ptr);
	case STORE_ALL: return multimem("store_all", q->ptr, q->value);
	case ADD_ALL: return multimem("add_all", q->ptr, q->value);
	}
	return CUDA_ERROR_UNKNOWN;
}

int ipc_peer(void)
{
	struct request q;
	CUresult r = fixture_open();
	while (read(0, &q, sizeof(q)) == sizeof(q)) {
		struct reply a;
		memset(&a, 0, sizeof(a));
		a.result = r ? r : serve(&q, &a);
		if (write(1, &a, sizeof(a)) != sizeof(a))
			return 1;
	}
	return 0;
}

/* ---- this process ----------------------------------------------------------------------------------------------- */

static int to_peer, from_peer;
static pid_t peer;
struct reply answer;

void peer_end(void)
{
	if (!peer)
		return;
	close(to_peer);
	close(from_peer);
	waitpid(peer, NULL, 0);
	peer = 0;
}

void peer_start(void)
{
	int in[2], out[2];
	peer_end();
	if (pipe(in) || pipe(out))
		return;
	fflush(stdout);
	peer = fork();
	if (peer == 0) {
		int devices = 1;
		if (!cu.cuDeviceGetCount(&devices) && devices > 1)
			setenv("CUDA_VISIBLE_DEVICES", "1", 1); /* memory and events of another device, if there is one */
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[0]);
		close(in[1]);
		close(out[0]);
		close(out[1]);
		execl("/proc/self/exe", "conformance", "-peer", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	to_peer = in[1];
	from_peer = out[0];
}

bool peer_tell(struct request q) { return write(to_peer, &q, sizeof(q)) == sizeof(q); }

CUresult peer_answer(void) { return read(from_peer, &answer, sizeof(answer)) == sizeof(answer) ? answer.result : CUDA_ERROR_UNKNOWN; }

bool peer_silent(int ms)
{
	struct pollfd p = {.fd = from_peer, .events = POLLIN};
	return poll(&p, 1, ms) == 0;
}

CUresult ask(struct request q) { return peer_tell(q) ? peer_answer() : CUDA_ERROR_UNKNOWN; }
