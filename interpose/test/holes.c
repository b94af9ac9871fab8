/*
 * holes.c: captures this graph with three calls of a communicator, which kernels and fills stand for, and prints two addresses:
 *
 *     add_one(a) -- call 0 -+- add_one(b) -+- call 2 -- add(b, c)
 *                           +--- call 1 ---+
 *
 * Calls 0 and 1 add two nodes in a line, call 2 a fork and its join. An argument names a mistake of the marks, or "data": an edge with data leads into call 1.
 */
#include "common.h"

#include <pthread.h>

enum { N = 64, BYTES = N * 4 };

static CUstream main_stream, side;
static CUfunction add_one, add;
static CUdeviceptr a, b, c;
static CUevent events[4];

static const struct medusa_collective calls[] = {
	{.operation = 1, .dtype = 2, .reduce = 3, .root = 4, .count = N, .send = 0x100, .send_bytes = BYTES, .recv = 0x200, .recv_bytes = 2 * BYTES},
	{.operation = 5, .count = 1},
	{.operation = 6, .count = 2},
};

static void begin(int call, CUstream s) { MARK(medusa_mark_collective, &calls[call], (uintptr_t)s); }
static void end(CUstream s) { MARK(medusa_mark_collective_end, (uintptr_t)s); }

/* to waits for all work of from. */
static void follow(CUstream from, CUstream to)
{
	static int used;
	CUevent e = events[used++];
	CHECK(cuEventRecord(e, from));
	CHECK(cuStreamWaitEvent(to, e, 0));
}

static void fill(CUdeviceptr p, CUstream s) { CHECK(cuMemsetD32Async(p, 0, N, s)); }

/* As its stream's attribute allows it to, the kernel may start before the work before it has ended. */
static void launch_early(CUdeviceptr p, CUstream s)
{
	unsigned int n = N;
	void *params[] = {&p, &n};
	CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.programmaticStreamSerializationAllowed = 1};
	CUlaunchConfig how = {.gridDimX = 2, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1, .hStream = s, .attrs = &early, .numAttrs = 1};
	CHECK(cuLaunchKernelEx(&how, add_one, params, NULL));
}

static void graph(const char *mistake)
{
	unsigned int n = N;
	void *params[] = {&b, &n, &c};
	MARK(medusa_mark_graph, "decode", 4);
	CHECK(cuStreamBeginCapture(main_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch_add_one(add_one, main_stream, a, N);
	begin(0, main_stream);
	if (!strcmp(mistake, "no end"))
		begin(0, main_stream);
	if (!strcmp(mistake, "nothing"))
		end(main_stream);
	launch_add_one(add_one, main_stream, a, N);
	fill(b, main_stream);
	end(strcmp(mistake, "another stream") ? main_stream : side);
	follow(main_stream, side);
	launch_add_one(add_one, main_stream, b, N);
	if (!strcmp(mistake, "data")) {
		begin(1, main_stream);
		launch_early(b, main_stream);
		end(main_stream);
	} else {
		begin(1, side);
		launch_add_one(add_one, side, c, N);
		fill(c, side);
		end(side);
	}
	follow(side, main_stream);
	begin(2, main_stream);
	fill(a, main_stream);
	follow(main_stream, side);
	launch_add_one(add_one, side, b, N);
	launch_add_one(add_one, main_stream, c, N);
	follow(side, main_stream);
	launch_add_one(add_one, main_stream, c, N);
	end(main_stream);
	CHECK(cuLaunchKernel(add, 2, 1, 1, 32, 1, 1, 0, main_stream, params, NULL));
}

static void *allocate_in(void *ctx)
{
	CHECK(cuCtxSetCurrent(ctx));
	alloc(BYTES);
	return NULL;
}

int main(int argc, char **argv)
{
	CUmodule module;
	CUgraph g;
	CUgraphExec exec;
	CUdeviceptr own;
	CUcontext ctx;
	pthread_t proxy;
	start();
	CHECK(cuModuleLoadData(&module, module_ptx));
	CHECK(cuModuleGetFunction(&add_one, module, "add_one"));
	CHECK(cuModuleGetFunction(&add, module, "add"));
	CHECK(cuStreamCreate(&main_stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
	for (size_t i = 0; i < sizeof events / sizeof *events; i++)
		CHECK(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
	a = alloc(BYTES);
	MARK(medusa_mark_communicator, 1);
	own = alloc(BYTES);
	MARK(medusa_mark_communicator, 0);
	b = alloc(BYTES);
	c = alloc(BYTES);
	CHECK(cuCtxGetCurrent(&ctx));
	begin(0, main_stream); /* without a capture, the call is no hole; a library may allocate in it on a thread of its own */
	launch_add_one(add_one, main_stream, a, N);
	if (pthread_create(&proxy, NULL, allocate_in, ctx) || pthread_join(proxy, NULL))
		return 1;
	end(main_stream);
	CHECK(cuStreamSynchronize(main_stream));
	graph(argc > 1 ? argv[1] : "");
	CHECK(cuStreamEndCapture(main_stream, &g));
	CHECK(cuGraphInstantiateWithFlags(&exec, g, 0));
	CHECK(cuGraphDestroy(g));
	CHECK(cuMemFree(own));
	PRINT("a", a);
	PRINT("b", b);
	return 0;
}
