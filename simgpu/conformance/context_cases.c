/*
 * context_cases.c: contexts, and the current context of a thread.
 */
#include "conformance.h"

struct outcome { CUresult r; CUcontext ctx; };

static void alloc_without_context(void *arg)
{
	CUdeviceptr p;
	((struct outcome *)arg)->r = cu.cuMemAlloc_v2(&p, 64);
}

static const char *none_current(void)
{
	struct outcome o = {CUDA_SUCCESS, NULL};
	on_thread(alloc_without_context, &o);
	WANT(CUDA_ERROR_INVALID_CONTEXT, o.r);
	return NULL;
}

static void get_current(void *arg)
{
	struct outcome *o = arg;
	o->r = cu.cuCtxGetCurrent(&o->ctx);
}

static const char *current_per_thread(void)
{
	struct outcome o = {CUDA_SUCCESS, context};
	on_thread(get_current, &o);
	OK(o.r);
	CHECK(o.ctx == NULL);
	return NULL;
}

static const char *primary_same(void)
{
	CUcontext again;
	unsigned flags;
	int active = 0;
	OK(cu.cuDevicePrimaryCtxRetain(&again, 0));
	CHECK(again == context);
	OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(active == 1);
	OK(cu.cuDevicePrimaryCtxRelease_v2(0));
	return NULL;
}

static const char *push_pop(void)
{
	CUcontext top = NULL, now = NULL;
	OK(cu.cuCtxPushCurrent_v2(context));
	OK(cu.cuCtxPopCurrent_v2(&top));
	CHECK(top == context);
	OK(cu.cuCtxGetCurrent(&now));
	CHECK(now == context);
	return NULL;
}

static void pop_empty(void *arg)
{
	struct outcome *o = arg;
	o->r = cu.cuCtxPopCurrent_v2(&o->ctx);
}

static const char *pop_nothing(void)
{
	struct outcome o = {CUDA_SUCCESS, NULL};
	on_thread(pop_empty, &o);
	WANT(CUDA_ERROR_INVALID_CONTEXT, o.r);
	return NULL;
}

static const char *set_null(void)
{
	CUcontext now = context;
	CUdevice d;
	OK(cu.cuCtxSetCurrent(NULL));
	CUresult get = cu.cuCtxGetCurrent(&now), dev = cu.cuCtxGetDevice(&d);
	OK(cu.cuCtxSetCurrent(context));
	OK(get);
	CHECK(now == NULL);
	WANT(CUDA_ERROR_INVALID_CONTEXT, dev);
	return NULL;
}

static const char *created_is_current(void)
{
	CUcontext other = NULL, now = NULL;
	CUdeviceptr p = 0;
	OK(cu.cuCtxCreate_v2(&other, 0, 0));
	CHECK(other != context);
	OK(cu.cuCtxGetCurrent(&now));
	CHECK(now == other);
	OK(cu.cuMemAlloc_v2(&p, 64));
	OK(cu.cuCtxDestroy_v2(other));
	OK(cu.cuCtxGetCurrent(&now));
	CHECK(now == context);
	return NULL;
}

static const char *release_unretained(void)
{
	OK(cu.cuDevicePrimaryCtxRelease_v2(0));
	WANT(CUDA_ERROR_INVALID_CONTEXT, cu.cuDevicePrimaryCtxRelease_v2(0));
	return NULL;
}

static const char *reset_clears(void)
{
	CUdeviceptr p = 0, q = 0;
	OK(cu.cuMemAlloc_v2(&p, 1 << 20));
	OK(cu.cuDevicePrimaryCtxReset_v2(0));
	WANT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cu.cuMemAlloc_v2(&q, 64));
	CUcontext again;
	OK(cu.cuDevicePrimaryCtxRetain(&again, 0));
	OK(cu.cuCtxSetCurrent(again));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree_v2(p));
	OK(cu.cuMemAlloc_v2(&q, 64));
	return NULL;
}

static const char *priority_range(void)
{
	int least = -100, greatest = 100;
	OK(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
	CHECK(greatest <= least);
	OK(cu.cuCtxGetStreamPriorityRange(NULL, NULL));
	return NULL;
}

static const char *limits(void)
{
	size_t v = 0;
	OK(cu.cuCtxGetLimit(&v, CU_LIMIT_STACK_SIZE));
	CHECK(v > 0);
	OK(cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, v));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
	return NULL;
}

static const struct conformance_case cases[] = {
	{"context/none", "cuMemAlloc: INVALID_CONTEXT if no context is current", none_current, SHARED},
	{"context/per_thread", "cuCtxGetCurrent: NULL on a thread without a context", current_per_thread, SHARED},
	{"context/primary", "cuDevicePrimaryCtxRetain: the same context each time; GetState: active", primary_same, SHARED},
	{"context/push_pop", "cuCtxPushCurrent, cuCtxPopCurrent: a stack per thread", push_pop, SHARED},
	{"context/pop_nothing", "cuCtxPopCurrent: INVALID_CONTEXT on an empty stack", pop_nothing, SHARED},
	{"context/set_null", "cuCtxSetCurrent: NULL pops, cuCtxGetDevice then fails with INVALID_CONTEXT", set_null, SHARED},
	{"context/create", "cuCtxCreate: pushed on the stack; cuCtxDestroy: popped", created_is_current, SHARED},
	{"context/release", "cuDevicePrimaryCtxRelease: INVALID_CONTEXT if it is not retained", release_unretained, ALONE},
	{"context/reset", "cuDevicePrimaryCtxReset: destroys all allocations", reset_clears, ALONE},
	{"context/priorities", "cuCtxGetStreamPriorityRange: lower numbers are greater; NULL is allowed", priority_range, SHARED},
	{"context/limits", "cuCtxGetLimit, cuCtxSetLimit", limits, SHARED},
};
GROUP(context_cases, cases);
