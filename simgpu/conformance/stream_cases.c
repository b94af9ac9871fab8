/*
 * stream_cases.c: streams, events, host functions and the legacy default stream.
 */
#include "conformance.h"

#include <string.h>

static const char *flags(void)
{
	CUstream s;
	unsigned f = 9;
	int prio = 9, least, greatest;
	CUcontext ctx = NULL;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuStreamCreate(&s, 4));
	OK(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
	OK(cu.cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, greatest));
	OK(cu.cuStreamGetFlags(s, &f));
	OK(cu.cuStreamGetPriority(s, &prio));
	OK(cu.cuStreamGetCtx(s, &ctx));
	OK(cu.cuStreamDestroy_v2(s));
	CHECK(f == CU_STREAM_NON_BLOCKING && prio == greatest && ctx == context);
	return NULL;
}

static const char *priority_clamped(void)
{
	CUstream s;
	int prio = 9, least, greatest;
	OK(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
	OK(cu.cuStreamCreateWithPriority(&s, 0, greatest - 100));
	OK(cu.cuStreamGetPriority(s, &prio));
	OK(cu.cuStreamDestroy_v2(s));
	CHECK(prio == greatest);
	return NULL;
}

static const char *idle(void)
{
	CUstream s;
	OK(cu.cuStreamCreate(&s, 0));
	OK(cu.cuStreamQuery(s));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuStreamDestroy_v2(s));
	return NULL;
}

static const char *polling_ends(void)
{
	CUstream s;
	CUdeviceptr p;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuMemAlloc_v2(&p, 4));
	for (int i = 0; i < 10; i++)
		OK(add(s, p, 1, 1));
	CUresult r;
	do
		r = cu.cuStreamQuery(s);
	while (r == CUDA_ERROR_NOT_READY);
	OK(r);
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *event_unrecorded(void)
{
	CUevent e;
	OK(cu.cuEventCreate(&e, 0));
	OK(cu.cuEventQuery(e));
	OK(cu.cuEventSynchronize(e));
	OK(cu.cuStreamWaitEvent(NULL, e, 0));
	OK(cu.cuEventDestroy_v2(e));
	return NULL;
}

static const char *event_flags(void)
{
	CUevent e;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuEventCreate(&e, 64));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuEventCreate(&e, CU_EVENT_INTERPROCESS));
	return NULL;
}

static const char *elapsed(void)
{
	CUevent a, b, untimed;
	CUdeviceptr p;
	float ms = -1;
	OK(cu.cuEventCreate(&a, 0));
	OK(cu.cuEventCreate(&b, 0));
	OK(cu.cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	WANT(CUDA_ERROR_INVALID_HANDLE, cu.cuEventElapsedTime(&ms, a, b));
	OK(cu.cuEventRecord(a, NULL));
	OK(cu.cuEventRecord(b, NULL));
	OK(cu.cuEventRecord(untimed, NULL));
	OK(cu.cuEventSynchronize(b));
	OK(cu.cuEventElapsedTime(&ms, a, b));
	CHECK(ms >= 0);
	OK(cu.cuMemAlloc_v2(&p, 4));
	for (int i = 0; i < 100; i++) { /* work takes time: programs divide by it */
		OK(cu.cuEventRecord(a, NULL));
		OK(add(NULL, p, 1, 5));
		OK(cu.cuEventRecord(b, NULL));
		OK(cu.cuEventSynchronize(b));
		OK(cu.cuEventElapsedTime(&ms, a, b));
		CHECK(ms > 0);
	}
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuEventSynchronize(untimed));
	WANT(CUDA_ERROR_INVALID_HANDLE, cu.cuEventElapsedTime(&ms, a, untimed));
	OK(cu.cuEventDestroy_v2(a));
	OK(cu.cuEventDestroy_v2(b));
	OK(cu.cuEventDestroy_v2(untimed));
	return NULL;
}

static const char *wait_orders(void)
{
	CUstream s, t;
	CUevent e;
	CUdeviceptr p;
	float v = 0;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cu.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	OK(cu.cuMemAlloc_v2(&p, 4));
	for (int i = 0; i < 20; i++) {
		OK(cu.cuMemsetD32Async(p, 0, 1, s));
		OK(add(s, p, 1, 5));
		OK(cu.cuEventRecord(e, s));
		OK(cu.cuStreamWaitEvent(t, e, 0));
		OK(add(t, p, 1, 2));
		OK(cu.cuStreamSynchronize(t));
		OK(cu.cuMemcpyDtoH_v2(&v, p, 4));
		CHECK(v == 7);
	}
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuEventDestroy_v2(e));
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuStreamDestroy_v2(t));
	return NULL;
}

static const char *wait_captures_record(void)
{
	CUstream s, t;
	CUevent e;
	CUdeviceptr p;
	float v = 0;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cu.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	OK(cu.cuMemAlloc_v2(&p, 4));
	OK(cu.cuMemsetD32Async(p, 0, 1, s));
	OK(cu.cuEventRecord(e, s));
	OK(cu.cuStreamWaitEvent(t, e, 0));
	OK(cu.cuEventRecord(e, t)); /* must not change the event for which t waits */
	OK(cu.cuEventDestroy_v2(e)); /* nor does this */
	OK(add(t, p, 1, 3));
	OK(cu.cuStreamSynchronize(t));
	OK(cu.cuMemcpyDtoH_v2(&v, p, 4));
	CHECK(v == 3);
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuStreamDestroy_v2(t));
	return NULL;
}

static const char *legacy_orders(void)
{
	CUstream s, t;
	CUdeviceptr p;
	float v = 0;
	OK(cu.cuStreamCreate(&s, CU_STREAM_DEFAULT));
	OK(cu.cuStreamCreate(&t, CU_STREAM_DEFAULT));
	OK(cu.cuMemAlloc_v2(&p, 4));
	for (int i = 0; i < 20; i++) {
		OK(cu.cuMemsetD32Async(p, 0, 1, s));
		OK(add(s, p, 1, 1));
		OK(add(NULL, p, 1, 10)); /* after s */
		OK(add(t, p, 1, 100));   /* after the legacy stream */
		OK(cu.cuMemcpyDtoHAsync_v2(&v, p, 4, t));
		OK(cu.cuStreamSynchronize(t));
		CHECK(v == 111);
	}
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuStreamDestroy_v2(t));
	return NULL;
}

static const char *destroy_keeps_work(void)
{
	CUstream s;
	CUdeviceptr p;
	float v = 0;
	OK(cu.cuMemAlloc_v2(&p, 4));
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuMemsetD32Async(p, 0, 1, s));
	OK(add(s, p, 1, 8));
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuMemcpyDtoH_v2(&v, p, 4));
	OK(cu.cuMemFree_v2(p));
	CHECK(v == 8);
	return NULL;
}

static void set_flag(void *p)
{
	*(int *)p = 1;
}

static const char *host_function(void)
{
	CUstream s;
	int called = 0;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuLaunchHostFunc(s, set_flag, &called));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuStreamDestroy_v2(s));
	CHECK(called == 1);
	return NULL;
}

static void call_driver(void *p)
{
	int n;
	*(CUresult *)p = cu.cuDeviceGetCount(&n);
}

static const char *host_function_calls(void)
{
	CUstream s;
	CUresult inside = CUDA_SUCCESS;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuLaunchHostFunc(s, call_driver, &inside));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuStreamDestroy_v2(s));
	CHECK(inside == CUDA_ERROR_NOT_PERMITTED || inside == CUDA_SUCCESS);
	return NULL;
}

static const char *per_thread_stream(void)
{
	CUdeviceptr p;
	unsigned n = 1;
	float by = 3, v = 0;
	void *params[] = {&p, &n, &by};
	OK(cu.cuMemAlloc_v2(&p, 4));
	OK(cu.cuMemsetD32_v2(p, 0, 1));
	OK(cu.cuLaunchKernel_ptsz(add_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	OK(cu.cuLaunchKernel(add_kernel, 1, 1, 1, 32, 1, 1, 0, CU_STREAM_PER_THREAD, params, NULL));
	OK(cu.cuStreamSynchronize(CU_STREAM_PER_THREAD));
	OK(cu.cuMemcpyDtoH_v2(&v, p, 4));
	OK(cu.cuMemFree_v2(p));
	CHECK(v == 6);
	return NULL;
}

static const struct conformance_case cases[] = {
	{"stream/flags", "cuStreamCreateWithPriority, cuStreamGetFlags, cuStreamGetPriority, cuStreamGetCtx", flags, SHARED},
	{"stream/priority", "cuStreamCreateWithPriority: priorities are clamped to the range", priority_clamped, SHARED},
	{"stream/idle", "cuStreamQuery, cuStreamSynchronize: SUCCESS if all work is done", idle, SHARED},
	{"stream/polling", "cuStreamQuery: NOT_READY until the work is done", polling_ends, SHARED},
	{"stream/destroy", "cuStreamDestroy: returns at once, the work still completes", destroy_keeps_work, SHARED},
	{"stream/legacy", "Stream synchronization behaviour: the legacy stream and blocking streams wait for each other", legacy_orders, SHARED},
	{"stream/per_thread", "Stream synchronization behaviour: CU_STREAM_PER_THREAD; _ptsz", per_thread_stream, SHARED},
	{"event/unrecorded", "cuEventQuery, cuEventSynchronize, cuStreamWaitEvent: SUCCESS before the first record", event_unrecorded, SHARED},
	{"event/flags", "cuEventCreate: INVALID_VALUE; INTERPROCESS needs DISABLE_TIMING", event_flags, SHARED},
	{"event/elapsed", "cuEventElapsedTime: INVALID_HANDLE for unrecorded and untimed events, more than 0 for a kernel", elapsed, SHARED},
	{"event/wait", "cuStreamWaitEvent: later work of the stream waits", wait_orders, SHARED},
	{"event/wait_snapshot", "cuStreamWaitEvent: the most recent record counts, later ones and destruction do not", wait_captures_record, SHARED},
	{"host/function", "cuLaunchHostFunc: runs after preceding work", host_function, SHARED},
	{"host/function_calls", "cuLaunchHostFunc: CUDA functions inside may fail with NOT_PERMITTED, and not otherwise", host_function_calls, SHARED},
};
GROUP(stream_cases, cases);
