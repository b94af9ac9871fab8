/*
 * driver_order_test.c: work stays undone until a call waits for it, in an order that the seed decides.
 */
#include "driver_test.h"

#include <pthread.h>

/* Work that no call waits for is not done: a pinned buffer read too early still has its old contents. */
void undone(void)
{
	CUstream s = new_stream();
	float *h;
	CUdeviceptr p;
	OK(cuMemAllocHost((void **)&h, 4096));
	OK(cuMemAlloc(&p, 4096));
	h[0] = -1;
	OK(cuMemsetD32Async(p, 0, 1, s));
	OK(launch(add_kernel, s, p, 1, 5));
	OK(cuMemcpyDtoHAsync(h, p, 4, s));
	CHECK(h[0] == -1);
	OK(cuStreamSynchronize(s));
	CHECK(h[0] == 5);
}

/* Two streams without an event between them: over some seeds either goes first. */
void unordered(void)
{
	CUstream s = new_stream(), t = new_stream();
	CUdeviceptr p;
	CUfunction scale = load(HEADER KERNEL("scale", "mul.f32"), "scale");
	int first = 0, second = 0;
	OK(cuMemAlloc(&p, 4));
	for (int i = 0; i < 100; i++) {
		float v;
		OK(cuMemsetD32(p, 0, 1));
		OK(cuCtxSynchronize());
		OK(launch(add_kernel, s, p, 1, 3));
		OK(launch(scale, t, p, 1, 2));
		OK(cuCtxSynchronize());
		OK(cuMemcpyDtoH(&v, p, 4));
		CHECK(v == 6 || v == 3);
		first += v == 6;
		second += v == 3;
	}
	CHECK(first > 5 && second > 5);
}

/* The same for nodes of a graph without an edge. */
void missing_edge(void)
{
	CUstream s = new_stream();
	CUgraph g;
	CUgraphExec x;
	CUdeviceptr p;
	CUfunction scale = load(HEADER KERNEL("scale", "mul.f32"), "scale");
	int first = 0, second = 0;
	OK(cuMemAlloc(&p, 4));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(launch(add_kernel, s, p, 1, 3));
	OK(cuStreamUpdateCaptureDependencies(s, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	OK(launch(scale, s, p, 1, 2));
	OK(cuStreamEndCapture(s, &g));
	OK(cuGraphInstantiate(&x, g, 0));
	for (int i = 0; i < 100; i++) {
		float v;
		OK(cuMemsetD32Async(p, 0, 1, s));
		OK(cuGraphLaunch(x, s));
		OK(cuStreamSynchronize(s));
		OK(cuMemcpyDtoH(&v, p, 4));
		first += v == 6;
		second += v == 3;
	}
	CHECK(first + second == 100 && first > 5 && second > 5);
}

static int entered, released;

/* Waits inside the stream for another thread that itself needs the driver. */
static void rendezvous(void *unused)
{
	(void)unused;
	__atomic_store_n(&entered, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&released, __ATOMIC_SEQ_CST))
		usleep(100);
}

static void *other_thread(void *arg)
{
	CUdeviceptr p;
	float v = 0;
	CUstream s;
	OK(cuCtxSetCurrent(arg));
	while (!__atomic_load_n(&entered, __ATOMIC_SEQ_CST))
		usleep(100);
	s = new_stream();
	OK(cuMemAllocAsync(&p, 4, s));
	OK(cuMemsetD32Async(p, 0, 1, s));
	OK(launch(add_kernel, s, p, 1, 4));
	OK(cuMemcpyDtoHAsync(&v, p, 4, s));
	OK(cuStreamSynchronize(s));
	CHECK(v == 4);
	__atomic_store_n(&released, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

void host_function_waits(void)
{
	CUcontext ctx;
	CUstream s = new_stream();
	pthread_t t;
	OK(cuCtxGetCurrent(&ctx));
	OK(cuLaunchHostFunc(s, rendezvous, NULL));
	CHECK(pthread_create(&t, NULL, other_thread, ctx) == 0);
	OK(cuStreamSynchronize(s));
	CHECK(released == 1);
	pthread_join(t, NULL);
}

static void *hammer(void *arg)
{
	OK(cuCtxSetCurrent(arg));
	CUstream s = new_stream();
	for (int i = 0; i < 200; i++) {
		CUdeviceptr p;
		CUgraph g;
		CUgraphExec x;
		float v = 0;
		OK(cuMemAlloc(&p, (size_t)(i % 7 + 1) * 300000));
		OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
		OK(cuMemsetD32Async(p, 0, 1, s));
		OK(launch(add_kernel, s, p, 1, 4));
		OK(cuStreamEndCapture(s, &g));
		OK(cuGraphInstantiate(&x, g, 0));
		OK(cuGraphLaunch(x, s));
		OK(cuGraphDestroy(g));
		OK(cuMemcpyDtoHAsync(&v, p, 4, s));
		CHECK(v == 4);
		OK(cuGraphExecDestroy(x));
		OK(cuMemFree(p));
	}
	OK(cuStreamDestroy(s));
	return NULL;
}

void threads(void)
{
	CUcontext ctx;
	pthread_t t[4];
	OK(cuCtxGetCurrent(&ctx));
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, hammer, ctx) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* A graph of a large model's size is captured, instantiated and launched. */
void large_graph(void)
{
	CUstream s = new_stream();
	CUgraph g;
	CUgraphExec x;
	CUdeviceptr p;
	float v;
	OK(cuMemAlloc(&p, 4));
	OK(cuMemsetD32(p, 0, 1));
	OK(cuCtxSynchronize());
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (int i = 0; i < 20000; i++)
		OK(launch(add_kernel, s, p, 1, 1));
	OK(cuStreamEndCapture(s, &g));
	OK(cuGraphInstantiate(&x, g, 0));
	OK(cuGraphLaunch(x, s));
	OK(cuMemcpyDtoHAsync(&v, p, 4, s));
	CHECK(v == 20000);
}
