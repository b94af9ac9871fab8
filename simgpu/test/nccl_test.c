/*
 * nccl_test.c: the stand-in for NCCL among processes: each call computes, and so does a captured one. A replay that one rank makes alone, a
 * call that differs among ranks, a send without its receive, and a communicator whose memory was filled each end in an error within the deadline.
 */
#define CUDA_EXACT_SYMBOLS
#include "cuda.h"

#include "nccl/comm.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct { char internal[128]; } ncclUniqueId;
typedef struct comm *ncclComm_t;
int ncclGetUniqueId(ncclUniqueId *id);
int ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
int ncclCommDestroy(ncclComm_t comm);
int ncclCommAbort(ncclComm_t comm);
int ncclAllReduce(const void *, void *, size_t, int, int, ncclComm_t, CUstream);
int ncclAllGather(const void *, void *, size_t, int, ncclComm_t, CUstream);
int ncclReduceScatter(const void *, void *, size_t, int, int, ncclComm_t, CUstream);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclSend(const void *, size_t, int, int, ncclComm_t, CUstream);
int ncclRecv(void *, size_t, int, int, ncclComm_t, CUstream);
int ncclBroadcast(const void *, void *, size_t, int, int, ncclComm_t, CUstream);

enum { COUNT = 20000, PROBLEM = 9 }; /* more than a piece of 64 KiB */

#define MUST(call) must((int)(call), #call, __LINE__)
static void must(int r, const char *call, int line)
{
	if (r) {
		fprintf(stderr, "nccl_test: line %d: %s: %d\n", line, call, r);
		exit(1);
	}
}

static CUstream stream;
static ncclComm_t comm;
static CUdeviceptr in, out;
static float host[8 * COUNT];
static int rank, ranks;
static int ended[2]; /* a pipe, whose end rank 0 closes as it ends */

static float element(int r, int i) { return (float)(r * 3 + i % 11); }

static void put(void)
{
	for (int i = 0; i < ranks * COUNT; i++)
		host[i] = element(rank, i);
	MUST(cuMemcpyHtoD_v2(in, host, sizeof(float) * ranks * COUNT));
	MUST(cuMemsetD8_v2(out, 0xff, sizeof(float) * ranks * COUNT));
	MUST(cuCtxSynchronize()); /* the calls are on a stream that does not wait for the fill */
}

static void get(int count)
{
	MUST(cuStreamSynchronize(stream));
	MUST(cuMemcpyDtoH_v2(host, out, sizeof(float) * count));
}

static void expect(float want, int i)
{
	if (host[i] != want) {
		fprintf(stderr, "nccl_test: rank %d: element %d is %g, not %g\n", rank, i, host[i], want);
		exit(1);
	}
}

static float sum(int i)
{
	float s = 0;
	for (int r = 0; r < ranks; r++)
		s += element(r, i);
	return s;
}

static void *at(CUdeviceptr p) { return (void *)(uintptr_t)p; }

static void computes(void)
{
	put();
	MUST(ncclAllReduce(at(in), at(out), COUNT, NCCL_F32, NCCL_SUM, comm, stream));
	get(COUNT);
	for (int i = 0; i < COUNT; i++)
		expect(sum(i), i);
	put();
	MUST(ncclAllReduce(at(in), at(out), COUNT, NCCL_F32, NCCL_MAX, comm, stream));
	get(COUNT);
	for (int i = 0; i < COUNT; i++)
		expect(element(ranks - 1, i), i);
	put();
	MUST(ncclAllGather(at(in), at(out), COUNT, NCCL_F32, comm, stream));
	get(ranks * COUNT);
	for (int i = 0; i < ranks * COUNT; i++)
		expect(element(i / COUNT, i % COUNT), i);
	put();
	MUST(ncclReduceScatter(at(in), at(out), COUNT, NCCL_F32, NCCL_SUM, comm, stream));
	get(COUNT);
	for (int i = 0; i < COUNT; i++)
		expect(sum(rank * COUNT + i), i);
	put();
	MUST(ncclBroadcast(at(in), at(out), COUNT, NCCL_F32, ranks - 1, comm, stream));
	get(COUNT);
	for (int i = 0; i < COUNT; i++)
		expect(element(ranks - 1, i), i);
}

/* Each rank sends to the next and receives from the one before, in one group. */
static void ring(int count, int received)
{
	MUST(ncclGroupStart());
	MUST(ncclSend(at(in), count, NCCL_F32, (rank + 1) % ranks, comm, stream));
	MUST(ncclRecv(at(out), received, NCCL_F32, (rank + ranks - 1) % ranks, comm, stream));
	MUST(ncclGroupEnd());
}

static void exchanges(void)
{
	CUgraph graph;
	CUgraphExec exec;
	if (ranks == 1)
		return;
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	ring(COUNT, COUNT);
	MUST(cuStreamEndCapture(stream, &graph));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		put();
		if (i)
			MUST(cuGraphLaunch(exec, stream));
		else
			ring(COUNT, COUNT);
		get(COUNT);
		for (int k = 0; k < COUNT; k++)
			expect(element((rank + ranks - 1) % ranks, k), k);
	}
	put();
	if (rank == 0) /* one after the other, without a group */
		MUST(ncclSend(at(in), 100, NCCL_F32, ranks - 1, comm, stream));
	else if (rank == ranks - 1)
		MUST(ncclRecv(at(out), 100, NCCL_F32, 0, comm, stream));
	get(100);
	for (int i = 0; rank == ranks - 1 && i < 100; i++)
		expect(element(0, i), i);
}

static CUgraphExec captured(void)
{
	CUgraph graph;
	CUgraphExec exec;
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	MUST(ncclAllReduce(at(in), at(out), 64, NCCL_F32, NCCL_SUM, comm, stream));
	MUST(ncclAllReduce(at(out), at(out), 64, NCCL_F32, NCCL_SUM, comm, stream));
	MUST(cuStreamEndCapture(stream, &graph));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	MUST(cuGraphDestroy(graph));
	return exec;
}

/* Returns PROBLEM if the driver reports one, as it has to in all cases but the first. */
static void *on_another_thread(void *arg)
{
	(void)arg;
	MUST(ncclCommAbort(comm));
	return NULL;
}

/* On the last device that there is, by a thread that has used none. */
static void aborts(void)
{
	pthread_t thread;
	MUST(pthread_create(&thread, NULL, on_another_thread, NULL));
	MUST(pthread_join(thread, NULL));
}

static int as_rank(const char *what, ncclUniqueId id)
{
	CUcontext ctx;
	int devices;
	MUST(cuInit(0));
	MUST(cuDeviceGetCount(&devices));
	MUST(cuDevicePrimaryCtxRetain(&ctx, rank % devices));
	MUST(cuCtxSetCurrent(ctx));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuMemAlloc_v2(&in, sizeof(host)));
	MUST(cuMemAlloc_v2(&out, sizeof(host)));
	MUST(ncclCommInitRank(&comm, ranks, id, rank));
	CUgraphExec exec = captured();
	put();
	if (!strcmp(what, "computes")) {
		for (int i = 0; i < 3; i++)
			MUST(cuGraphLaunch(exec, stream));
		get(64);
		for (int i = 0; i < 64; i++)
			expect(sum(i) * ranks, i);
		computes();
		exchanges();
		MUST(cuCtxSynchronize());
		MUST(ncclCommDestroy(comm));
		return 0;
	}
	if (!strcmp(what, "aborts")) {
		MUST(cuCtxSynchronize());
		aborts();
		return 0;
	}
	if (!strcmp(what, "alone") && rank > 0) {
		char byte;
		close(ended[1]);
		return read(ended[0], &byte, 1) ? 1 : PROBLEM; /* it does not end before the other gives up */
	}
	if (!strcmp(what, "filled"))
		MUST(cuMemsetD8_v2(*(CUdeviceptr *)((char *)comm + 8), 0x5a, 64)); /* the first address that it holds: its own memory */
	MUST(cuCtxSynchronize());
	if (!strcmp(what, "unequal"))
		ring(64, 64 + rank);
	else if (!strcmp(what, "both send"))
		MUST(ncclSend(at(in), 64, NCCL_F32, 1 - rank, comm, stream));
	else if (!strcmp(what, "other"))
		MUST(ncclAllReduce(at(in), at(out), 64 + rank, NCCL_F32, NCCL_SUM, comm, stream));
	else
		MUST(cuGraphLaunch(exec, stream));
	return cuStreamSynchronize(stream) == CUDA_ERROR_LAUNCH_FAILED ? PROBLEM : 1;
}

static bool run(const char *what, int n, int want)
{
	ncclUniqueId id;
	pid_t pids[8];
	bool ok = true;
	ranks = n;
	MUST(ncclGetUniqueId(&id));
	MUST(pipe(ended));
	for (rank = 0; rank < n; rank++)
		if ((pids[rank] = fork()) == 0)
			_exit(as_rank(what, id));
	close(ended[0]);
	close(ended[1]);
	for (int r = 0; r < n; r++) {
		int status;
		waitpid(pids[r], &status, 0);
		ok &= WIFEXITED(status) && WEXITSTATUS(status) == want;
	}
	if (!ok)
		fprintf(stderr, "nccl_test: %s with %d ranks failed\n", what, n);
	return ok;
}

int main(void)
{
	setenv("NCCL_STANDIN_SECONDS", "1", 1);
	setenv("SIMGPU_LOG", "/dev/null", 0);
	setenv("SIMGPU_DEVICES", "2", 1); /* ranks take turns */
	bool alone = run("alone", 2, PROBLEM), other = run("other", 2, PROBLEM), filled = run("filled", 2, PROBLEM);
	bool paired = run("unequal", 2, PROBLEM) & run("both send", 2, PROBLEM);
	setenv("NCCL_STANDIN_SECONDS", "60", 1); /* a loaded machine */
	bool ok = run("computes", 1, 0) & run("computes", 2, 0) & run("computes", 4, 0) & run("aborts", 2, 0);
	ok &= alone && other && filled && paired;
	printf("nccl: %s\n", ok ? "ok" : "FAILED");
	return !ok;
}
