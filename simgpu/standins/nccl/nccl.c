/*
 * nccl.c: communicators of processes on one machine, with NCCL's calls.
 *
 * In: the library's public calls. Out: launches of collective.cu on the caller's stream, which a capture takes as kernel nodes that point to
 * the communicator's memory. Fails: calls return NCCL's results; ncclGetLastError says which call of the driver it was. A kernel that
 * waits for another rank in vain traps after NCCL_STANDIN_SECONDS (20), which the driver answers as a sticky error.
 *
 * Device memory is the communicator's alone. As in NCCL, a thread of the library's own allocates it, part of it at the first call of each kind, also if
 * a stream captures that. The sends and receives of a group are one kernel, at its end; other calls are a kernel each, in a group as well. Not provided: several devices of one process, groups over several communicators or streams,
 * registered buffers, splits.
 */
#include "../launch.h"
#include "../stub.h"
#include "bootstrap.h"
#include "comm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { OK, UNHANDLED_CUDA, SYSTEM, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE, REMOTE, IN_PROGRESS };

#define BUFFER ((size_t)1 << 20) /* bytes for calls of a kind, which the kernels here have no use for */
#define VERSION 22705 /* 2.27.5, whose calls these are */

typedef struct { char internal[128]; } ncclUniqueId;
struct comm { int rank, ranks; CUdeviceptr own, opened[NCCL_RANKS], buffers[NCCL_KINDS]; CUcontext ctx; struct place *place; };

extern const char nccl_image[];
static struct image image = {nccl_image, NULL};
static _Thread_local char last_error[160];
static _Thread_local int group;
static _Thread_local struct { struct nccl_pairs pairs; struct comm *comm; CUstream stream; } waiting; /* of the group */

static struct {
	__typeof__(&cuMemAlloc_v2) cuMemAlloc;
	__typeof__(&cuMemFree_v2) cuMemFree;
	__typeof__(&cuMemcpyHtoD_v2) cuMemcpyHtoD;
	__typeof__(&cuCtxSynchronize) cuCtxSynchronize;
	__typeof__(&cuIpcGetMemHandle) cuIpcGetMemHandle;
	__typeof__(&cuIpcOpenMemHandle_v2) cuIpcOpenMemHandle;
	__typeof__(&cuIpcCloseMemHandle) cuIpcCloseMemHandle;
	__typeof__(&cuCtxGetDevice) cuCtxGetDevice;
	__typeof__(&cuCtxGetCurrent) cuCtxGetCurrent;
	__typeof__(&cuCtxSetCurrent) cuCtxSetCurrent;
	__typeof__(&cuThreadExchangeStreamCaptureMode) cuThreadExchangeStreamCaptureMode;
} driver;

static int fail(int result, const char *what)
{
	snprintf(last_error, sizeof(last_error), "%s", what);
	return result;
}

static int cuda(CUresult r, const char *call)
{
	if (r)
		snprintf(last_error, sizeof(last_error), "%s: driver error %d", call, (int)r);
	return r ? UNHANDLED_CUDA : OK;
}

/* As NCCL, which calls the runtime first: a thread that has only chosen a device gets its context. Programs without a runtime have made theirs. */
static void runtime_context(void)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *lib = dlopen(names[i], RTLD_NOW | RTLD_NOLOAD);
		int (*release)(void *) = NULL;
		if (lib)
			*(void **)&release = dlsym(lib, "cudaFree");
		if (release)
			release(NULL);
		if (lib)
			dlclose(lib);
	}
}

static int ready(void)
{
	runtime_context();
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	__typeof__(&cuGetProcAddress_v2) get = NULL;
	CUdriverProcAddressQueryResult status;
	if (launch_ready() || !lib)
		return fail(UNHANDLED_CUDA, "no driver, or no context");
	*(void **)&get = dlsym(lib, "cuGetProcAddress_v2");
	int bad = 0;
#define GET(name, version) bad |= get(#name, (void **)&driver.name, version, 0, &status) || !driver.name
	GET(cuMemAlloc, 3020);
	GET(cuMemFree, 3020);
	GET(cuMemcpyHtoD, 3020);
	GET(cuCtxSynchronize, 2000);
	GET(cuIpcGetMemHandle, 4010);
	GET(cuIpcOpenMemHandle, 11000);
	GET(cuIpcCloseMemHandle, 4010);
	GET(cuCtxGetDevice, 2000);
	GET(cuCtxGetCurrent, 4000);
	GET(cuCtxSetCurrent, 4000);
	GET(cuThreadExchangeStreamCaptureMode, 10010);
#undef GET
	return bad ? fail(UNHANDLED_CUDA, "a driver without memory of other processes") : OK;
}

EXPORT int ncclGetVersion(int *version)
{
	if (!version)
		return INVALID_ARGUMENT;
	*version = VERSION;
	return OK;
}

EXPORT int ncclGetUniqueId(ncclUniqueId *id)
{
	if (!id)
		return INVALID_ARGUMENT;
	memset(id, 0, sizeof(*id));
	return bootstrap_create(id->internal, sizeof(id->internal)) ? OK : fail(SYSTEM, "memfd_create");
}

/* Any thread may end it, also one that has used no device, or another one. */
static int destroy(struct comm *c)
{
	CUcontext before = NULL;
	int r = cuda(driver.cuCtxGetCurrent(&before), "cuCtxGetCurrent") | cuda(driver.cuCtxSetCurrent(c->ctx), "cuCtxSetCurrent");
	for (int i = 0; i < c->ranks; i++)
		if (c->opened[i])
			r |= cuda(driver.cuIpcCloseMemHandle(c->opened[i]), "cuIpcCloseMemHandle");
	for (int i = 0; i < NCCL_KINDS; i++)
		if (c->buffers[i])
			r |= cuda(driver.cuMemFree(c->buffers[i]), "cuMemFree");
	if (c->own)
		r |= cuda(driver.cuMemFree(c->own), "cuMemFree");
	r |= cuda(driver.cuCtxSetCurrent(before), "cuCtxSetCurrent");
	bootstrap_leave(c->place);
	free(c);
	return r;
}

struct request { CUcontext ctx; CUdeviceptr at; size_t size; CUresult result; };

static void *serve(void *arg)
{
	struct request *q = arg;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	q->result = driver.cuThreadExchangeStreamCaptureMode(&mode);
	if (!q->result)
		q->result = driver.cuCtxSetCurrent(q->ctx);
	if (!q->result)
		q->result = driver.cuMemAlloc(&q->at, q->size);
	return NULL;
}

/* Memory that a thread of the library's own allocates, as NCCL's proxy does. */
static int by_proxy(struct comm *c, CUdeviceptr *at, size_t size)
{
	struct request q = {c->ctx, 0, size, CUDA_SUCCESS};
	pthread_t thread;
	if (pthread_create(&thread, NULL, serve, &q) || pthread_join(thread, NULL))
		return fail(SYSTEM, "pthread_create");
	*at = q.at;
	return cuda(q.result, "cuMemAlloc");
}

/* The first call of a kind connects ranks for it. */
static int connected(struct comm *c, int kind) { return c->buffers[kind] ? OK : by_proxy(c, &c->buffers[kind], BUFFER); }

/* The memory of this rank, filled in but for the others' addresses. */
static int allocate(struct comm *c, struct nccl_device *d)
{
	int r = by_proxy(c, &c->own, sizeof(*d));
	d->magic = NCCL_MAGIC;
	d->rank = c->rank;
	d->ranks = c->ranks;
	d->self = c->own;
	d->deadline = bootstrap_seconds() * 1000000000ull;
	return r ? r : cuda(driver.cuMemcpyHtoD(c->own, d, sizeof(*d)), "cuMemcpyHtoD");
}

static int connect_ranks(struct comm *c, struct nccl_device *d, const char *place)
{
	CUipcMemHandle own, all[NCCL_RANKS];
	_Static_assert(sizeof(own) == BOOTSTRAP_ITEM, "what ranks tell each other is a handle");
	int r = cuda(driver.cuIpcGetMemHandle(&own, c->own), "cuIpcGetMemHandle");
	if (r)
		return r;
	if (!(c->place = bootstrap_enter(place, c->rank, c->ranks, &own, all)))
		return fail(REMOTE, "a rank did not come, or came twice");
	for (int i = 0; i < c->ranks && !r; i++) {
		if (i != c->rank)
			r = cuda(driver.cuIpcOpenMemHandle(&c->opened[i], all[i], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), "cuIpcOpenMemHandle");
		d->peers[i] = (i == c->rank ? c->own : c->opened[i]) + offsetof(struct nccl_device, block);
	}
	if (!r)
		r = cuda(driver.cuMemcpyHtoD(c->own, d, offsetof(struct nccl_device, block)), "cuMemcpyHtoD");
	if (!r)
		r = cuda(driver.cuCtxSynchronize(), "cuCtxSynchronize"); /* before other ranks, or streams, look there */
	return r ? r : bootstrap_meet(c->place) ? OK : fail(REMOTE, "a rank did not come");
}

EXPORT int ncclCommInitRank(struct comm **comm, int ranks, ncclUniqueId id, int rank)
{
	if (!comm || ranks < 1 || ranks > NCCL_RANKS || rank < 0 || rank >= ranks || !memchr(id.internal, 0, sizeof(id.internal)))
		return fail(INVALID_ARGUMENT, "ranks");
	int r = ready();
	if (r)
		return r;
	struct comm *c = calloc(1, sizeof(*c));
	struct nccl_device *d = calloc(1, sizeof(*d));
	if (!c || !d) {
		free(c);
		free(d);
		return fail(SYSTEM, "out of memory");
	}
	c->rank = rank;
	c->ranks = ranks;
	r = cuda(driver.cuCtxGetCurrent(&c->ctx), "cuCtxGetCurrent");
	if (!r && !(r = allocate(c, d)))
		r = connect_ranks(c, d, id.internal);
	free(d);
	if (r)
		destroy(c);
	else
		*comm = c;
	return r;
}

EXPORT int ncclCommInitRankConfig(struct comm **comm, int ranks, ncclUniqueId id, int rank, void *config)
{
	(void)config; /* blocking, and with as many threads as there are */
	return ncclCommInitRank(comm, ranks, id, rank);
}

/* All ranks destroy it: none frees memory from which another still reads. */
EXPORT int ncclCommDestroy(struct comm *c)
{
	if (!c)
		return OK;
	bool met = bootstrap_meet(c->place);
	int r = destroy(c);
	return r ? r : met ? OK : fail(REMOTE, "a rank did not destroy the communicator");
}

EXPORT int ncclCommFinalize(struct comm *c) { return c ? OK : INVALID_ARGUMENT; }

EXPORT int ncclCommAbort(struct comm *c) { return c ? destroy(c) : OK; }

EXPORT int ncclCommCount(const struct comm *c, int *count)
{
	if (!c || !count)
		return INVALID_ARGUMENT;
	*count = c->ranks;
	return OK;
}

EXPORT int ncclCommUserRank(const struct comm *c, int *rank)
{
	if (!c || !rank)
		return INVALID_ARGUMENT;
	*rank = c->rank;
	return OK;
}

EXPORT int ncclCommCuDevice(const struct comm *c, int *device)
{
	return c && device ? cuda(driver.cuCtxGetDevice(device), "cuCtxGetDevice") : INVALID_ARGUMENT;
}

EXPORT int ncclCommGetAsyncError(struct comm *c, int *error)
{
	if (!c || !error)
		return INVALID_ARGUMENT;
	*error = OK;
	return OK;
}

EXPORT const char *ncclGetErrorString(int result)
{
	static const char *const texts[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage",
	                                    "remote process exited or there was a network error", "operation in progress"};
	return result >= 0 && result < (int)(sizeof(texts) / sizeof(*texts)) ? texts[result] : "unknown result code";
}

EXPORT const char *ncclGetLastError(struct comm *c)
{
	(void)c;
	return last_error;
}

/* Makes the sends and receives that wait. */
static int exchange(void)
{
	const uint32_t grid[] = {1, 1, 1};
	if (!waiting.pairs.count)
		return OK;
	void *params[] = {&waiting.comm->own, &waiting.pairs};
	int r = connected(waiting.comm, NCCL_EXCHANGE);
	if (!r)
		r = cuda(launch_kernel(&image, "nccl_exchange", grid, NCCL_THREADS, waiting.stream, params), "cuLaunchKernel");
	waiting.pairs.count = 0;
	return r;
}

EXPORT int ncclGroupStart(void)
{
	group++;
	return OK;
}

EXPORT int ncclGroupEnd(void)
{
	if (!group)
		return fail(INVALID_USAGE, "ncclGroupEnd without ncclGroupStart");
	return --group ? OK : exchange();
}

static const unsigned char sizes[NCCL_TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

static int step(int call, const void *send, void *recv, size_t count, int type, int op, int root, struct comm *c, CUstream stream)
{
	if (!c || type < 0 || type >= NCCL_TYPES || op < 0 || op >= NCCL_OPS || root < 0 || root >= c->ranks || (count && (!send || !recv)))
		return fail(INVALID_ARGUMENT, "a call's arguments");
	if (!count)
		return OK;
	uint64_t bytes = count * sizes[type];
	const uint32_t grid[] = {1, 1, 1};
	void *params[] = {&c->own, &send, &recv, &bytes, &call, &type, &op, &root};
	int r = connected(c, call);
	return r ? r : cuda(launch_kernel(&image, "nccl_step", grid, NCCL_THREADS, stream, params), "cuLaunchKernel");
}

EXPORT int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, struct comm *c, CUstream s)
{
	return step(NCCL_ALL_REDUCE, send, recv, count, type, op, 0, c, s);
}

EXPORT int ncclAllGather(const void *send, void *recv, size_t count, int type, struct comm *c, CUstream s)
{
	return step(NCCL_ALL_GATHER, send, recv, count, type, 0, 0, c, s);
}

EXPORT int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op, struct comm *c, CUstream s)
{
	return step(NCCL_REDUCE_SCATTER, send, recv, count, type, op, 0, c, s);
}

EXPORT int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root, struct comm *c, CUstream s)
{
	return step(NCCL_BROADCAST, c && c->rank != root ? recv : send, recv, count, type, 0, root, c, s);
}

static int pair(const void *buffer, size_t count, int type, int peer, bool receives, struct comm *c, CUstream s)
{
	struct nccl_pairs *p = &waiting.pairs;
	if (!c || type < 0 || type >= NCCL_TYPES || peer < 0 || peer >= c->ranks || peer == c->rank || (count && !buffer))
		return fail(INVALID_ARGUMENT, "a call's arguments");
	if (p->count == NCCL_PAIRS || (p->count && (waiting.comm != c || waiting.stream != s)))
		return fail(INVALID_USAGE, "a group of more than 16 sends and receives, or over several communicators or streams");
	if (!count)
		return OK;
	p->list[p->count++] = (struct nccl_pair){(uintptr_t)buffer, count * sizes[type], peer, receives};
	waiting.comm = c;
	waiting.stream = s;
	return group ? OK : exchange();
}

EXPORT int ncclSend(const void *send, size_t count, int type, int peer, struct comm *c, CUstream s)
{
	return pair(send, count, type, peer, false, c, s);
}

EXPORT int ncclRecv(void *recv, size_t count, int type, int peer, struct comm *c, CUstream s)
{
	return pair(recv, count, type, peer, true, c, s);
}

EXPORT int ncclBcast(void *buffer, size_t count, int type, int root, struct comm *c, CUstream s)
{
	return ncclBroadcast(buffer, buffer, count, type, root, c, s);
}
