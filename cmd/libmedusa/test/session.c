/*
 * session.c: an engine in C with one graph, which adds 1 to the elements of its input and then adds a saved vector to them. It
 * supports every kind of start that Medusa asks for. It prints "restored" or "captured" and the sum after three launches.
 *
 * SESSION_ENDS makes the engine do something before the third launch: "free" frees the allocation beside the input, to which the
 * graph refers; "invalidate" calls medusa_session_invalidate. SESSION_PANICS names a function to call in such a way that the
 * library panics: the start must then become a native one.
 */
#include "common.h"
#include "libmedusa.h"

enum { N = 64, BYTES = N * 4, BATCH = 3 };

static CUfunction add_one, add;
static CUstream stream;
static CUdeviceptr input, weight, bias;
static CUgraphExec captured;

static void enter(const char *phase)
{
	MARK(medusa_mark_phase, phase);
	medusa_session_phase(phase);
}

static void name(const char *text, CUdeviceptr at, uint32_t role)
{
	MARK(medusa_mark_tensor, &(struct medusa_tensor){.name = text, .addr = at, .size = BYTES, .role = role, .dtype = MEDUSA_I32,
		.ndim = 1, .shape = {N}, .hi = 9});
}

/* A restored start skips this. */
static void capture(void)
{
	static unsigned int n = N;
	CUgraph graph;
	int32_t vector[N];
	void *params[] = {&input, &n, &bias}, *weights[] = {&input, &n, &weight};
	bias = alloc(BYTES);
	for (int i = 0; i < N; i++)
		vector[i] = i;
	CHECK(cuMemcpyHtoD(bias, vector, sizeof vector));
	CHECK(cuCtxSynchronize()); /* our stream does not wait for the default one */
	name("bias", bias, MEDUSA_INPUT);
	enter("capture");
	MARK(medusa_mark_graph, "add", BATCH);
	MARK(medusa_mark_note, "adds", "once", 4);
	MARK(medusa_mark_note, "adds", "twice", 5);
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	launch_add_one(add_one, stream, input, n);
	CHECK(cuLaunchKernel(add, N / 32, 1, 1, 32, 1, 1, 0, stream, params, NULL));
	CHECK(cuLaunchKernel(add, N / 32, 1, 1, 32, 1, 1, 0, stream, weights, NULL));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&captured, graph, 0));
	CHECK(cuGraphUpload(captured, stream));
}

static void size_cache(void)
{
	struct medusa_kv_profile p = {.kv_bytes = 4 << 20, .utilization = 0.9, .profile_tokens = 1};
	uint64_t bytes;
	if (medusa_session_kv_bytes(&bytes) != 1) {
		CHECK(cuMemGetInfo((size_t *)&p.free_before, (size_t *)&p.total));
		p.free_after = p.free_before;
		MARK(medusa_mark_kv_profile, &p);
		bytes = p.kv_bytes;
	}
	CUdeviceptr cache = alloc(bytes);
	MARK(medusa_mark_tensor, &(struct medusa_tensor){.name = "cache", .addr = cache, .size = bytes, .role = MEDUSA_KV,
		.dtype = MEDUSA_U8, .ndim = 1, .shape = {(int64_t)bytes}, .hi = 9});
}

/* Says whether this start uses restored graphs or its own, and gives the CUgraphExec to launch. */
static const char *usable(uint64_t *exec)
{
	int rc = captured ? 0 : medusa_session_usable(0, exec);
	if (rc == 1)
		return "restored";
	if (rc < 0 && !captured)
		exit(5);
	if (!captured) {
		fprintf(stderr, "session: %s\n", medusa_session_error());
		weight = alloc(BYTES);
		CHECK(cuMemsetD8(weight, 0, BYTES));
		CHECK(cuCtxSynchronize());
		capture();
	}
	*exec = (uintptr_t)captured;
	return "captured";
}

static void end(const char *how)
{
	if (strcmp(how, "free") == 0)
		CHECK(cuMemFree(weight));
	if (strcmp(how, "invalidate") == 0)
		CHECK(medusa_session_invalidate("the engine sleeps"));
}

#define BAD ((void *)8) /* an address that is neither NULL nor memory */

static void provoke(const char *at)
{
	const char *wanted = getenv("SESSION_PANICS");
	int rc = 0;
	if (!wanted || strcmp(wanted, at) != 0 || medusa_session_restoring() != 1)
		return;
	if (strcmp(at, "kv_bytes") == 0)
		rc = medusa_session_kv_bytes(BAD);
	if (strcmp(at, "workspace") == 0)
		rc = medusa_session_workspace(BAD);
	if (strcmp(at, "graphs") == 0)
		rc = medusa_session_graphs(BAD, 1);
	if (strcmp(at, "note") == 0)
		rc = medusa_session_note("adds", BAD, 1);
	if (strcmp(at, "tensor") == 0)
		rc = medusa_session_tensor("bias", BAD);
	if (strcmp(at, "kernels") == 0)
		rc = medusa_session_kernels(BAD, 1);
	if (strcmp(at, "usable") == 0)
		rc = medusa_session_usable(0, BAD);
	fprintf(stderr, "session: %s: %d %s\n", at, rc, medusa_session_error());
	if (rc != MEDUSA_FALLBACK)
		exit(10);
}

/* Runs inside of medusa_session_ready, which a refusal or a close would leave without its session. */
static int64_t self_test(void *arg, void *out, size_t capacity)
{
	if (arg || capacity < 6 || medusa_session_refuse("too late") != MEDUSA_MISUSE || medusa_session_close() != MEDUSA_MISUSE)
		return -1;
	memcpy(out, "tokens", 6);
	return 6;
}

int main(void)
{
	static const char *keys[] = {"engine.name"}, *values[] = {"session"};
	const char *ends = getenv("SESSION_ENDS"), *how = "";
	struct medusa_session_graph graph = {0};
	CUmodule module;
	uint64_t at = 0, exec = 0;
	char note[8];
	int32_t host[N], sum = 0;
	int run = medusa_session_open();
	if (run < 0)
		return 4;
	enter("structure");
	start();
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuModuleLoadData(&module, module_ptx));
	CHECK(cuModuleGetFunction(&add_one, module, "add_one"));
	CHECK(cuModuleGetFunction(&add, module, "add"));
	medusa_session_identify(keys, values, 1);
	input = alloc(BYTES);
	weight = alloc(BYTES);
	name("input", input, MEDUSA_INPUT);
	enter("kv_cache");
	provoke("kv_bytes");
	provoke("workspace");
	size_cache();
	enter("weights");
	CHECK(cuMemsetD8(input, 0, BYTES));
	CHECK(cuMemsetD8(weight, 0, BYTES));
	CHECK(cuCtxSynchronize());
	enter("warmup");
	provoke("graphs");
	if (medusa_session_restoring() != 1 || medusa_session_graphs(&graph, 1) != 1)
		capture();
	else if (medusa_session_note("adds", note, sizeof note) != 5 || memcmp(note, "twice", 5) != 0 || medusa_session_note("nobody", note, 0) >= 0)
		return 9;
	else if (graph.batch != BATCH || strcmp(graph.label, "add") != 0 || medusa_session_tensor("bias", &at) != 1 || at == 0)
		return 6;
	provoke("note");
	provoke("tensor");
	provoke("kernels");
	if (run == MEDUSA_RESTORE && !captured && medusa_session_restoring() != 1)
		capture();
	enter("ready");
	if (medusa_session_ready(self_test, NULL) != 0)
		return 7;
	if (!captured && (medusa_session_usable(1, &exec) >= 0 || medusa_session_usable(SIZE_MAX, &exec) >= 0 || medusa_session_tensor("nobody", &at) != 0))
		return 8;
	for (int i = 0; i < 3; i++) {
		if (i == 2 && ends)
			end(ends);
		if (i == 2)
			provoke("usable");
		how = usable(&exec);
		CHECK(cuGraphLaunch((CUgraphExec)(uintptr_t)exec, stream));
		CHECK(cuStreamSynchronize(stream));
	}
	CHECK(cuMemcpyDtoH(host, input, sizeof host));
	for (int i = 0; i < N; i++)
		sum += host[i];
	printf("%s %d %d\n", how, sum, graph.exec != 0);
	return medusa_session_close() == 0 ? 0 : 9;
}
