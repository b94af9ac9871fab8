/*
 * engine.c: an engine of several worker processes, tensor parallel, for whole-process tests.
 *
 * The model is that of runners/example with its weights split: each rank looks up its part, all ranks add the parts up, and each mixes the sum
 * into its cache. A second call of the communicator has the ranks agree on the tokens. A worker prints how it came by its graphs, and
 * the tokens. RANKS_WORKERS says how many workers there are, each with a device of its own, and RANKS_LAYERS how many layers a graph
 * has (1), each with weights and a cache of its own; with RANKS_KINDS=1 the sum is a reduce-scatter and an all-gather, and a layer reads a table that the last rank
 * broadcasts; with RANKS_KEPT=1 the engine has broadcast this table once, to memory of the capture phase; with RANKS_RECEIVED=1 it has received unnamed memory, which no graph
 * reads; with RANKS_LARGE=1 there is a graph for each of 35 batch sizes, up to 256, as in a large engine. RANKS_COST=1 prints the processor time of a start until ready. RANKS_TRUTH names the files of the device's own account
 * of each worker: rank 0's is NAME.0, and NAME.0.places says where the worker has its tensors and graphs. With RANKS_SLOW=N the first rank becomes ready N seconds after the
 * others, and if a worker has ended, the parent ends all others a second later, as vLLM's does after nine.
 *
 * RANKS_BREAK makes rank 1, or RANKS_RANK, misbehave in a restored start, to see that it is noticed:
 *   peer       its communicator has the memory of another process at hand, which is no peer
 *   leave-out  it captures another operation in place of a call, the first or RANKS_CALL
 *   exchange   it makes the calls of a graph in each other's place
 *   add        it captures one operation more after the last call of a graph, which changes the results of no other rank
 *   memory     memory that stays unchanged holds another byte
 *   level      its checks before ready are fewer than the other ranks'
 *   crowded    RANKS_FREE bytes of its device are free when it states its identity
 *   no-call, no-mark  ranks that are recorded alone: it puts nothing in place of a call, or does not even mark it
 *   error, death, silence  while it makes a call, the first or RANKS_CALL; KIND-STAGE: at that stage, see worker()
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda.h"
#include "libmedusa.h"
#include "medusa.h"
#include "model.h" /* the two kernels as PTX */

typedef struct { char internal[128]; } ncclUniqueId;
typedef struct comm *ncclComm_t;
int ncclGetUniqueId(ncclUniqueId *id);
int ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
int ncclCommDestroy(ncclComm_t comm);
int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, ncclComm_t comm, CUstream stream);
int ncclAllGather(const void *send, void *recv, size_t count, int type, ncclComm_t comm, CUstream stream);
int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op, ncclComm_t comm, CUstream stream);
int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root, ncclComm_t comm, CUstream stream);

enum { TOKENS = 64, SEQUENCES = 256, PRINTED = 8, MOST = 8, MOST_GRAPHS = 35, INT32 = 2, SUM = 0, MAX = 2 };
enum { ALL_REDUCE = 1, ALL_GATHER, REDUCE_SCATTER, BROADCAST };
static int n_batches = 3, batches[MOST_GRAPHS] = {1, 4, PRINTED}, largest = PRINTED, layers = 1, kinds, kept;

static CUstream stream;
static CUdeviceptr tokens, weights, cache, hidden, constants, part, table;
static CUgraphExec graphs[MOST_GRAPHS];
static ncclComm_t comm, other;
static int rank, workers, calls, connected, alone;

/* ends the process unless a driver call or the session succeeded. */
#define MUST(call) must((int)(call), #call)
static void must(int result, const char *call)
{
	if (result == 0)
		return;
	fprintf(stderr, "engine: rank %d: %s: %d\n", rank, call, result);
	medusa_session_failed(result); /* does not return if a restart helps */
	exit(1);
}

#define MARK(name, ...) \
	do { \
		__typeof__(&name) mark = (__typeof__(&name))dlsym(RTLD_DEFAULT, #name); \
		if (mark) \
			mark(__VA_ARGS__); \
	} while (0)

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);
	return text ? atoi(text) : otherwise;
}

static int asked_to(const char *how)
{
	const char *asked = getenv("RANKS_BREAK");
	return asked && !strcmp(asked, how) && rank == number("RANKS_RANK", 1);
}

static int broken(const char *how) { return asked_to(how) && medusa_session_restoring() == 1; }

static int misbehaves(const char *when)
{
	char how[32];
	snprintf(how, sizeof how, "death%s", when);
	if (broken(how))
		_exit(9);
	snprintf(how, sizeof how, "silence%s", when);
	if (broken(how))
		sleep(1000);
	snprintf(how, sizeof how, "error%s", when);
	return broken(how);
}

/* A stage at which a rank may fail. */
static void stage(const char *when)
{
	if (misbehaves(when))
		exit(1);
}

/* The addresses of tensors and graphs, for the account of the device. */
static void write_places(void)
{
	char name[4096];
	const char *truth = getenv("RANKS_TRUTH");
	if (!truth)
		return;
	snprintf(name, sizeof name, "%s.%d.places", truth, rank);
	FILE *f = fopen(name, "w");
	if (!f)
		exit(1);
	const struct { const char *name; CUdeviceptr at; } tensors[] = {{"tokens", tokens}, {"weights", weights}, {"cache", cache}, {"constants", constants}};
	for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
		fprintf(f, "tensor %s 0x%llx\n", tensors[i].name, tensors[i].at);
	for (int i = 0; i < n_batches; i++)
		fprintf(f, "graph decode-%d %p\n", batches[i], (void *)graphs[i]);
	fclose(f);
}

static void enter(const char *phase)
{
	MARK(medusa_mark_phase, phase);
	MUST(medusa_session_phase(phase));
}

static CUdeviceptr allocate(const char *name, uint32_t role, int64_t count)
{
	CUdeviceptr p;
	MUST(cuMemAlloc(&p, count * 4));
	struct medusa_tensor t = {.name = name, .addr = p, .size = count * 4, .role = role, .dtype = MEDUSA_I32, .ndim = 1, .shape = {count}, .hi = TOKENS};
	if (role)
		MARK(medusa_mark_tensor, &t);
	return p;
}

static CUfunction kernel(const char *name)
{
	static CUmodule module;
	CUfunction f;
	if (!module)
		MUST(cuModuleLoadData(&module, model_ptx));
	MUST(cuModuleGetFunction(&f, module, name));
	return f;
}

/* As vLLM's batch sizes: 1, 2, 4, and multiples of 8. */
static void choose_shape(void)
{
	layers = number("RANKS_LAYERS", 1);
	kinds = number("RANKS_KINDS", 0);
	kept = number("RANKS_KEPT", 0);
	if (!number("RANKS_LARGE", 0))
		return;
	for (n_batches = 0; n_batches < MOST_GRAPHS; n_batches++)
		batches[n_batches] = n_batches < 3 ? 1 << n_batches : 8 * (n_batches - 2);
	largest = batches[n_batches - 1];
}

/* A rank without peers has no communicator. */
static int communicate(const struct medusa_collective *c, CUstream s)
{
	if (alone)
		return medusa_session_stand_in(c, (uintptr_t)s);
	const void *send = (const void *)(uintptr_t)c->send;
	void *recv = (void *)(uintptr_t)c->recv;
	switch (c->operation) {
	case ALL_REDUCE: return ncclAllReduce(send, recv, c->count, (int)c->dtype, (int)c->reduce, comm, s);
	case ALL_GATHER: return ncclAllGather(send, recv, c->count, (int)c->dtype, comm, s);
	case REDUCE_SCATTER: return ncclReduceScatter(send, recv, c->count, (int)c->dtype, (int)c->reduce, comm, s);
	case BROADCAST: return ncclBroadcast(send, recv, c->count, (int)c->dtype, (int)c->root, comm, s);
	}
	return 1;
}

/* The session asks for a call of a graph. */
static int make_call(void *arg, const struct medusa_collective *c, uint64_t s)
{
	(void)arg;
	struct medusa_collective asked = *c;
	int call = calls++;
	if (call == number("RANKS_CALL", 0) && misbehaves(""))
		return 1;
	if (call == number("RANKS_CALL", 0) && broken("leave-out"))
		return cuMemsetD8Async(c->recv, 0, c->recv_bytes, (CUstream)(uintptr_t)s);
	if (broken("exchange"))
		asked.reduce = c->reduce == SUM ? MAX : SUM;
	int failed = communicate(&asked, (CUstream)(uintptr_t)s);
	return failed || c->reduce != MAX || !broken("add") ? failed : (int)cuMemsetD8Async(c->recv, 1, c->recv_bytes, (CUstream)(uintptr_t)s);
}

/* The session takes this step on all ranks when all calls are made. */
static int connect_calls(void *arg)
{
	(void)arg;
	if (misbehaves("-connect"))
		return 1;
	connected = calls > 0;
	return 0;
}

/* sent and received: how many numbers the buffers hold. */
static void collective(uint32_t kind, int op, int root, int64_t count, CUdeviceptr send, int64_t sent, CUdeviceptr recv, int64_t received)
{
	struct medusa_collective c = {kind, INT32, (uint32_t)op, (uint32_t)root, (uint64_t)count, send, (uint64_t)sent * 4, recv, (uint64_t)received * 4};
	int left_out = alone && op == MAX && asked_to("no-call");
	if (alone && op == MAX && asked_to("no-mark"))
		return;
	MARK(medusa_mark_collective, &c, (uintptr_t)stream);
	if (!left_out)
		MUST(communicate(&c, stream));
	MARK(medusa_mark_collective_end, (uintptr_t)stream);
}

static void launch(const char *name, int batch, CUdeviceptr first, CUdeviceptr second, CUdeviceptr third)
{
	void *arguments[] = {&first, &second, &third};
	MUST(cuLaunchKernel(kernel(name), 1, 1, 1, batch, 1, 1, 0, stream, arguments, NULL));
}

static void broadcast_table(void)
{
	collective(BROADCAST, 0, workers - 1, TOKENS, constants, TOKENS, table, TOKENS);
}

/* Each rank adds up a share of the numbers, and all ranks collect the shares. The last rank's constants are the table of all. */
static void layer_of_all_kinds(int batch, CUdeviceptr own_weights, CUdeviceptr own_cache)
{
	int share = (batch + workers - 1) / workers;
	MUST(cuMemsetD32Async(hidden, 0, largest, stream));
	launch("look_up", batch, tokens, own_weights, hidden);
	collective(REDUCE_SCATTER, SUM, 0, share, hidden, share * workers, part, share);
	collective(ALL_GATHER, 0, 0, share, part, share, hidden, share * workers);
	launch("mix", batch, hidden, own_cache, tokens);
	if (!kept)
		broadcast_table();
	launch("look_up", batch, tokens, table, hidden);
	launch("mix", batch, hidden, own_cache, tokens);
	collective(ALL_REDUCE, MAX, 0, batch, tokens, batch, tokens, batch);
}

static void forward(int batch)
{
	for (int i = 0; i < layers; i++) {
		CUdeviceptr own_weights = weights + (CUdeviceptr)i * TOKENS * 4, own_cache = cache + (CUdeviceptr)(i * largest) * 4;
		if (kinds) {
			layer_of_all_kinds(batch, own_weights, own_cache);
			continue;
		}
		launch("look_up", batch, tokens, own_weights, hidden);
		collective(ALL_REDUCE, SUM, 0, batch, hidden, batch, hidden, batch);
		launch("mix", batch, hidden, own_cache, tokens);
		collective(ALL_REDUCE, MAX, 0, batch, tokens, batch, tokens, batch);
	}
}

/*
 * The memory that only a step uses. With all kinds of calls it is set first: the heap may give hidden the place of an earlier step's table, whose bytes are
 * others' data; and if remains of an earlier step were equal to received data, the memory would count as unchanged.
 */
static void allocate_scratch(void)
{
	hidden = allocate("hidden", 0, largest);
	if (kinds) {
		part = allocate("part", 0, largest);
		table = allocate("table", 0, TOKENS);
		MUST(cuMemsetD8Async(hidden, 0x55, largest * 4, stream));
		MUST(cuMemsetD8Async(part, 0x55, largest * 4, stream));
		MUST(cuMemsetD8Async(table, 0x55, TOKENS * 4, stream));
		MUST(cuStreamSynchronize(stream));
	}
	if (kept)
		broadcast_table();
}

static int run_once(void *batch)
{
	allocate_scratch();
	forward(*(const int *)batch);
	MUST(cuStreamSynchronize(stream));
	MUST(cuMemFree(hidden));
	if (kinds) {
		MUST(cuMemFree(part));
		MUST(cuMemFree(table));
	}
	return 0;
}

static void size_cache(void)
{
	struct medusa_kv_profile p = {.utilization = 0.9, .profile_tokens = largest};
	size_t available, total;
	uint64_t bytes;
	if (medusa_session_kv_bytes(&bytes) != 1) {
		MUST(cuMemGetInfo(&available, &total));
		bytes = 16 << 20; /* the communicator takes 2 MiB that no profile sees */
		p.kv_bytes = bytes;
		p.total = total;
		p.free_before = p.free_after = available;
		MARK(medusa_mark_kv_profile, &p);
	}
	cache = allocate("cache", MEDUSA_KV, bytes / 4);
}

static void run_triggers(void)
{
	int64_t sizes[MOST_GRAPHS];
	int n = medusa_session_triggers(sizes, MOST_GRAPHS);
	for (int i = 0; i < n; i++) {
		int batch = (int)sizes[i];
		medusa_session_trigger(run_once, &batch);
	}
}

static void capture(void)
{
	char label[32];
	CUgraph graph;
	allocate_scratch();
	enter("capture");
	for (int i = 0; i < n_batches; i++) {
		snprintf(label, sizeof label, "decode-%d", batches[i]);
		MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
		forward(batches[i]);
		MARK(medusa_mark_graph, label, batches[i]);
		MUST(cuStreamEndCapture(stream, &graph));
		MUST(cuGraphInstantiateWithFlags(&graphs[i], graph, 0));
		MUST(cuGraphDestroy(graph));
	}
}

static int make_graphs(void)
{
	struct medusa_session_graph restored[MOST_GRAPHS];
	if (medusa_session_restoring() == 1) {
		enter("capture");
		stage("-graphs");
		MUST(medusa_session_collectives(make_call, NULL));
		MUST(medusa_session_connect(connect_calls, NULL));
		if (medusa_session_graphs(restored, n_batches) == n_batches) {
			for (int i = 0; i < n_batches; i++)
				graphs[i] = (CUgraphExec)(uintptr_t)restored[i].exec;
			stage("-built");
			return 1;
		}
	}
	for (int i = 0; i < n_batches; i++) {
		int batch = batches[i];
		run_once(&batch);
	}
	capture();
	return 0;
}

static void decode(int i, int restored)
{
	uint64_t exec = (uintptr_t)graphs[i];
	if (restored && (!connected || medusa_session_usable(i, &exec) != 1)) {
		fprintf(stderr, "engine: %s\n", medusa_session_error());
		exit(1);
	}
	MUST(cuGraphLaunch((CUgraphExec)(uintptr_t)exec, stream));
	MUST(cuStreamSynchronize(stream));
}

/* The communicator, and a place for it in an order that all ranks share. */
static void connect_ranks(void)
{
	ncclUniqueId id = {{0}};
	const char *place = getenv("RANKS_PLACE");
	if (alone)
		return;
	snprintf(id.internal, sizeof id.internal, "%s", place ? place : "");
	MARK(medusa_mark_communicator, 1);
	MUST(ncclCommInitRank(&comm, workers, id, rank));
	MARK(medusa_mark_communicator, 0);
	if (broken("peer")) { /* the last peer's address becomes one of another allocation */
		CUdeviceptr own, wrong;
		MARK(medusa_mark_communicator, 1);
		MUST(cuMemAlloc(&wrong, 1 << 20));
		MUST(cuMemsetD8(wrong, 0, 1 << 20));
		MARK(medusa_mark_communicator, 0);
		memcpy(&own, (char *)comm + 8, sizeof own);
		MUST(cuMemcpyHtoD(own + 32 + 8 * (size_t)(rank ? 0 : 1), &wrong, sizeof wrong));
		MUST(cuCtxSynchronize());
	}
}

/* A framework may have communicators of its own, of which the engine tells nothing (torch's process groups). */
static void talk_otherwise(void)
{
	ncclUniqueId id = {{0}};
	const char *place = getenv("RANKS_OTHER_PLACE");
	CUdeviceptr buffer;
	MUST(cuMemAlloc(&buffer, TOKENS * 4));
	if (!alone) {
		snprintf(id.internal, sizeof id.internal, "%s", place ? place : "");
		MUST(ncclCommInitRank(&other, workers, id, rank));
		MUST(ncclAllReduce((void *)(uintptr_t)buffer, (void *)(uintptr_t)buffer, TOKENS, INT32, SUM, other, stream));
		MUST(cuStreamSynchronize(stream));
	}
	MUST(cuMemFree(buffer));
}

/* In one write: several workers share standard error. */
static void print_cost(void)
{
	char line[64];
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	int n = snprintf(line, sizeof line, "cost of rank %d: %lld us\n", rank, t.tv_sec * 1000000ll + t.tv_nsec / 1000);
	if (write(2, line, (size_t)n) != n)
		exit(1);
}

/* Takes all but RANKS_FREE bytes, as another process could; 0: it takes none. */
static CUdeviceptr crowd_device(void)
{
	size_t available, total, left = (size_t)number("RANKS_FREE", 0);
	CUdeviceptr taken = 0;
	MUST(cuMemGetInfo(&available, &total));
	if (!broken("crowded") || available <= left)
		return 0;
	MARK(medusa_trigger_begin);
	MUST(cuMemAlloc(&taken, available - left));
	MARK(medusa_trigger_end);
	return taken;
}

static void give_back(CUdeviceptr taken)
{
	if (taken)
		MUST(cuMemFree(taken));
}

static int worker(void)
{
	static const char *keys[] = {"engine.name", "engine.version", "model.checkpoint"}, *values[] = {"ranks", "1", "weights-7"};
	int32_t host[SEQUENCES] = {0};
	char line[1024];
	CUdevice device;
	CUcontext context;
	const char *asked = getenv("RANKS_BREAK");
	if (asked && !strcmp(asked, "level") && rank == 1)
		setenv("MEDUSA_CHECK", "none", 1);
	if (medusa_session_open() < 0)
		return 1;
	alone = medusa_session_alone() == 1;
	MUST(cuInit(0));
	MUST(cuDeviceGet(&device, 0));
	MUST(cuDevicePrimaryCtxRetain(&context, device));
	MUST(cuCtxSetCurrent(context));
	stage("-early");
	CUdeviceptr crowd = crowd_device();
	medusa_session_identify(keys, values, 3);
	give_back(crowd);
	stage("-identified");

	enter("structure");
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	stage("-structure");
	connect_ranks();
	talk_otherwise();
	stage("-connected");
	weights = allocate("weights", MEDUSA_WEIGHT, layers * TOKENS);
	tokens = allocate("tokens", MEDUSA_INPUT, largest);
	constants = allocate("constants", 0, TOKENS);
	MUST(cuMemsetD8(constants, (unsigned char)(16 * rank + broken("memory")), TOKENS * 4)); /* each rank has its own */
	MUST(cuCtxSynchronize());
	if (number("RANKS_RECEIVED", 0)) {
		CUdeviceptr received = allocate("received", 0, TOKENS);
		collective(BROADCAST, 0, workers - 1, TOKENS, constants, TOKENS, received, TOKENS);
		MUST(cuStreamSynchronize(stream));
	}
	enter("kv_cache");
	stage("-cache");
	size_cache();
	enter("weights");
	stage("-weights");
	for (int i = 0; i < TOKENS; i++)
		host[i] = (i * 7 + 3) * (rank + 1);
	for (int i = 0; i < layers; i++)
		MUST(cuMemcpyHtoD(weights + (CUdeviceptr)i * TOKENS * 4, host, TOKENS * 4));
	MUST(cuMemsetD8(tokens, 0, largest * 4));
	MUST(cuMemsetD8(cache, 0, (size_t)layers * largest * 4));
	MUST(cuCtxSynchronize());
	run_triggers();
	enter("warmup");
	stage("-warmup");
	int restored = make_graphs();
	run_triggers(); /* in a native start that checks */
	stage("-late");
	if (rank == 0)
		sleep((unsigned)number("RANKS_SLOW", 0));
	enter("ready");
	MUST(medusa_session_ready(NULL, NULL));
	write_places();

	if (number("RANKS_COST", 0))
		print_cost();
	size_t n = (size_t)snprintf(line, sizeof line, "rank %d: %s", rank, restored ? "restored" : "captured");
	MUST(cuMemsetD8(cache, 0, (size_t)layers * largest * 4)); /* the warm-up wrote there */
	for (int i = 0; i < largest; i++)
		host[i] = 9 * i + 1;
	MUST(cuMemcpyHtoD(tokens, host, largest * 4));
	MUST(cuCtxSynchronize());
	for (int step = 0; step < 9; step++) {
		decode(step % n_batches, restored);
		MUST(cuMemcpyDtoH(host, tokens, largest * 4));
		for (int i = 0; i < PRINTED; i++)
			n += (size_t)snprintf(line + n, sizeof line - n, " %d", host[i]);
	}
	line[n++] = '\n';
	if (write(1, line, n) != (ssize_t)n)
		return 1;
	if (!alone) {
		MUST(ncclCommDestroy(other));
		MUST(ncclCommDestroy(comm));
	}
	return medusa_session_close() == 0 ? 0 : 1;
}

static void set(const char *name, int value)
{
	char text[16];
	snprintf(text, sizeof text, "%d", value);
	setenv(name, text, 1);
}

static pid_t pids[MOST]; /* 0: none */

static void end_workers(int signal)
{
	(void)signal;
	for (int r = 0; r < workers; r++)
		if (pids[r])
			kill(pids[r], SIGTERM);
}

/* The parent uses no device. It fails as the first worker that failed. */
int main(int argc, char **argv)
{
	(void)argc;
	const char *n = getenv("RANKS_WORKERS"), *own = getenv("RANKS_WORKER"), *truth = getenv("RANKS_TRUTH");
	char file[4096];
	ncclUniqueId id, another;
	workers = n ? atoi(n) : 2;
	choose_shape();
	if (getenv(MEDUSA_ENV_PEERS)) /* the other ranks are not to run */
		own = getenv(MEDUSA_ENV_RANK);
	if (own) {
		rank = atoi(own);
		return worker();
	}
	if (workers < 1 || workers > MOST || ncclGetUniqueId(&id) || ncclGetUniqueId(&another))
		return 1;
	setenv("RANKS_PLACE", id.internal, 1);
	setenv("RANKS_OTHER_PLACE", another.internal, 1);
	set("SIMGPU_DEVICES", workers);
	set("MEDUSA_WORLD_SIZE", workers);
	signal(SIGALRM, end_workers);
	for (int r = 0; r < workers; r++) {
		set("MEDUSA_RANK", r);
		set("RANKS_WORKER", r);
		set("CUDA_VISIBLE_DEVICES", r);
		if (truth) {
			snprintf(file, sizeof file, "%s.%d", truth, r);
			setenv("SIMGPU_TRUTH", file, 1);
		}
		if ((pids[r] = fork()) == 0) {
			execv("/proc/self/exe", argv);
			_exit(127);
		}
	}
	int failed = 0;
	for (int left = workers; left > 0; left--) {
		int status;
		pid_t pid = wait(&status);
		int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		for (int r = 0; r < workers; r++)
			if (pids[r] == pid)
				pids[r] = 0;
		if (number("RANKS_SLOW", 0))
			alarm(1);
		if (code && !failed) {
			failed = code;
			end_workers(0); /* an engine ends as a whole */
		}
	}
	return failed;
}
