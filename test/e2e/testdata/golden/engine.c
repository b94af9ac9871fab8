/*
 * engine.c: the smallest engine that Medusa can serve. docs/engines.md explains it step by step.
 *
 * The model has one layer: a token's weight is looked up, mixed into the state that a sequence has in the cache, and the state gives the
 * next token. It is decoded with one CUDA graph for each batch size. A start prints how it came by the graphs, and the tokens.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda.h"
#include "libmedusa.h"
#include "medusa.h"
#include "model.h" /* the two kernels as PTX */

enum { TOKENS = 64, BATCHES = 3, LARGEST = 8 };
static const int batches[BATCHES] = {1, 4, LARGEST};

static CUstream stream;
static CUdeviceptr tokens, weights, cache, hidden;
static CUgraphExec graphs[BATCHES];

/* ends the process unless a driver call or the session succeeded. */
#define MUST(call) must((int)(call), #call)
static void must(int result, const char *call)
{
	if (result == 0)
		return;
	fprintf(stderr, "engine: %s: %d\n", call, result);
	exit(1);
}

/* A mark reaches the interposer if there is one. Without Medusa the engine runs unchanged. */
#define MARK(name, ...) \
	do { \
		__typeof__(&name) mark = (__typeof__(&name))dlsym(RTLD_DEFAULT, #name); \
		if (mark) \
			mark(__VA_ARGS__); \
	} while (0)

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

/* Loads the kernels when one is first needed, as BLAS libraries do. */
static CUfunction kernel(const char *name)
{
	static CUmodule module;
	CUfunction f;
	if (!module)
		MUST(cuModuleLoadData(&module, model_ptx));
	MUST(cuModuleGetFunction(&f, module, name));
	return f;
}

/* The layer. Everything a graph does is enqueued here: nothing is allocated, and nothing waits. */
static void layer(int batch)
{
	void *look_up[] = {&tokens, &weights, &hidden}, *mix[] = {&hidden, &cache, &tokens};
	MUST(cuLaunchKernel(kernel("look_up"), 1, 1, 1, batch, 1, 1, 0, stream, look_up, NULL));
	MUST(cuLaunchKernel(kernel("mix"), 1, 1, 1, batch, 1, 1, 0, stream, mix, NULL));
}

/* Runs the layer once, with memory that goes away again. */
static int run_once(void *batch)
{
	hidden = allocate("hidden", 0, LARGEST);
	layer(*(const int *)batch);
	MUST(cuStreamSynchronize(stream));
	MUST(cuMemFree(hidden));
	return 0;
}

static void size_cache(void)
{
	struct medusa_kv_profile p = {.utilization = 0.9, .profile_tokens = LARGEST};
	size_t available, total;
	uint64_t bytes;
	if (medusa_session_kv_bytes(&bytes) != 1) {
		MUST(cuMemGetInfo(&available, &total));
		bytes = available / 64; /* a real engine runs its largest forward first */
		p.kv_bytes = bytes;
		p.total = total;
		p.free_before = p.free_after = available;
		MARK(medusa_mark_kv_profile, &p);
	}
	cache = allocate("cache", MEDUSA_KV, bytes / 4);
}

static void run_triggers(void)
{
	int64_t sizes[BATCHES];
	int n = medusa_session_triggers(sizes, BATCHES);
	for (int i = 0; i < n; i++) {
		int batch = (int)sizes[i];
		medusa_session_trigger(run_once, &batch);
	}
}

static void capture(void)
{
	char label[32];
	CUgraph graph;
	hidden = allocate("hidden", 0, LARGEST);
	enter("capture");
	for (int i = 0; i < BATCHES; i++) {
		snprintf(label, sizeof label, "decode-%d", batches[i]);
		MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
		layer(batches[i]);
		MARK(medusa_mark_graph, label, batches[i]);
		MUST(cuStreamEndCapture(stream, &graph));
		MUST(cuGraphInstantiateWithFlags(&graphs[i], graph, 0));
		MUST(cuGraphDestroy(graph));
	}
}

/* Takes the restored graphs, or warms up and captures. Returns whether they were restored. */
static int make_graphs(void)
{
	struct medusa_session_graph restored[BATCHES];
	if (medusa_session_restoring() == 1) {
		enter("capture");
		if (medusa_session_graphs(restored, BATCHES) == BATCHES)
			return 1;
	}
	for (int i = 0; i < BATCHES; i++) {
		int batch = batches[i];
		run_once(&batch);
	}
	capture();
	return 0;
}

/* One step of the i-th batch size. */
static void decode(int i, int restored)
{
	uint64_t exec = (uintptr_t)graphs[i];
	if (restored && medusa_session_usable(i, &exec) != 1) {
		fprintf(stderr, "engine: %s\n", medusa_session_error());
		exit(1); /* a server captures its graphs now */
	}
	MUST(cuGraphLaunch((CUgraphExec)(uintptr_t)exec, stream));
	MUST(cuStreamSynchronize(stream));
}

int main(void)
{
	static const char *keys[] = {"engine.name", "engine.version", "model.checkpoint"}, *values[] = {"example", "1", "weights-7"};
	int32_t host[TOKENS] = {0};
	CUdevice device;
	CUcontext context;
	if (medusa_session_open() < 0)
		return 1;
	MUST(cuInit(0));
	MUST(cuDeviceGet(&device, 0));
	MUST(cuDevicePrimaryCtxRetain(&context, device));
	MUST(cuCtxSetCurrent(context));
	medusa_session_identify(keys, values, 3);

	enter("structure");
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	weights = allocate("weights", MEDUSA_WEIGHT, TOKENS);
	tokens = allocate("tokens", MEDUSA_INPUT, LARGEST);
	enter("kv_cache");
	size_cache();
	enter("weights");
	for (int i = 0; i < TOKENS; i++)
		host[i] = i * 7 + 3;
	MUST(cuMemcpyHtoD(weights, host, sizeof host));
	MUST(cuMemsetD8(tokens, 0, LARGEST * 4));
	MUST(cuCtxSynchronize()); /* our stream does not wait for the default one, which writes these */
	run_triggers();
	enter("warmup");
	int restored = make_graphs();
	enter("ready");
	MUST(medusa_session_ready(NULL, NULL));

	printf("%s", restored ? "restored" : "captured");
	MUST(cuMemsetD8(cache, 0, LARGEST * 4)); /* the warm-up wrote there */
	for (int i = 0; i < LARGEST; i++)
		host[i] = 9 * i + 1;
	MUST(cuMemcpyHtoD(tokens, host, LARGEST * 4));
	MUST(cuCtxSynchronize());
	for (int step = 0; step < 9; step++) {
		decode(step % BATCHES, restored);
		MUST(cuMemcpyDtoH(host, tokens, LARGEST * 4));
		for (int i = 0; i < LARGEST; i++)
			printf(" %d", host[i]);
	}
	printf("\n");
	return medusa_session_close() == 0 ? 0 : 1;
}
