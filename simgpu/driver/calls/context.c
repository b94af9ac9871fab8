/*
 * context.c: the calls of contexts: retained, created, made current, emptied.
 *
 * In: the context calls. Out: the state that core/context.c keeps. Fails: as the driver documents; a context
 * with a sticky error answers that error until it is reset or destroyed.
 */
#include "calls/calls.h"

#include <stdlib.h>
#include <string.h>

static uint64_t next_context_id = 1;

static void context_start(struct context *ctx)
{
	ctx->active = true;
	overhead_context(ctx->device, true);
	ctx->sticky = CUDA_SUCCESS;
	ctx->id = next_context_id++;
	ctx->legacy = stream_new(ctx, CU_STREAM_DEFAULT, 0);
	ctx->legacy->is_legacy = true;
	ctx->limits[CU_LIMIT_STACK_SIZE] = 1024;
	ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = MIB;
	ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 * MIB;
}

CUresult context_resolve(CUcontext handle, struct context **out)
{
	if (!object_live(handle, OBJECT_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = (struct context *)handle;
	return (*out)->active ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static void clear_event(void *handle, void *arg)
{
	struct event *e = handle;
	if (e->ctx == arg)
		event_end(e);
}

static void clear_exec(void *handle, void *arg)
{
	struct exec *e = handle;
	if (e->ctx == arg)
		exec_end(e);
}

static void clear_module(void *handle, void *arg)
{
	struct module *m = handle;
	if (m->ctx == arg)
		module_unload(m);
}

static void clear_peer(void *handle, void *arg)
{
	peer_forget(handle, arg);
}

static bool host_function_runs(const struct context *ctx)
{
	for (size_t i = 0; i < all_stream_count; i++)
		if (all_streams[i]->ctx == ctx && all_streams[i]->head && all_streams[i]->head->running)
			return true;
	return false;
}

void context_clear(struct context *ctx)
{
	while (host_function_runs(ctx)) /* it comes back to its stream */
		driver_wait();
	captures_end(ctx);
	for (size_t i = 0; i < all_stream_count; i++)
		if (all_streams[i]->ctx == ctx)
			queue_drop(all_streams[i]);
	object_each(OBJECT_EXEC, clear_exec, ctx);
	object_each(OBJECT_EVENT, clear_event, ctx);
	for (size_t i = all_stream_count; i-- > 0;)
		if (all_streams[i]->ctx == ctx)
			stream_end(all_streams[i]);
	object_each(OBJECT_MODULE, clear_module, ctx);
	object_each(OBJECT_CONTEXT, clear_peer, ctx);
	ctx->peer_count = 0;
	allocations_end(ctx);
	free(ctx->per_thread);
	ctx->per_thread = NULL;
	ctx->per_thread_cap = 0;
	ctx->legacy = NULL;
	ctx->active = false;
	overhead_context(ctx->device, false);
	ctx->sticky = CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxRetain(struct call *c, CUcontext *ctx, CUdevice dev)
{
	(void)c;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (device_check(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	struct context *p = context_primary(dev);
	if (!p->active)
		context_start(p);
	p->retained++;
	*ctx = (CUcontext)p;
	return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(struct call *c, CUdevice dev)
{
	(void)c;
	if (device_check(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	struct context *p = context_primary(dev);
	if (!p->retained)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--p->retained == 0 && p->active) {
		queue_run_all(p);
		context_clear(p);
	}
	return CUDA_SUCCESS;
}

/* The context stays retained, and current on its threads, but works again only once it is retained again (driver 580.159). */
CUresult sim_cuDevicePrimaryCtxReset_v2(struct call *c, CUdevice dev)
{
	(void)c;
	if (device_check(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	struct context *p = context_primary(dev);
	if (p->active)
		context_clear(p);
	return CUDA_SUCCESS;
}

/* The first form is the same for a process alone with its device. */
CUresult sim_cuDevicePrimaryCtxReset(struct call *c, CUdevice dev)
{
	return sim_cuDevicePrimaryCtxReset_v2(c, dev);
}

CUresult sim_cuDevicePrimaryCtxSetFlags_v2(struct call *c, CUdevice dev, unsigned int flags)
{
	(void)c;
	if (device_check(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	context_primary(dev)->flags = flags;
	return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxGetState(struct call *c, CUdevice dev, unsigned int *flags, int *active)
{
	(void)c;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (device_check(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = context_primary(dev)->flags;
	*active = context_primary(dev)->active;
	return CUDA_SUCCESS;
}

static CUresult push(struct context *ctx)
{
	struct thread_state *state = thread_state();
	if (state->depth == ARRAY_LEN(state->stack))
		return CUDA_ERROR_OUT_OF_MEMORY;
	state->stack[state->depth++] = ctx;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxCreate_v2(struct call *c, CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	(void)c;
	if (!ctx || flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	if (device_check(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	struct context *n = xalloc(sizeof(*n));
	CUresult r = push(n);
	if (r) {
		free(n);
		return r;
	}
	n->flags = flags;
	n->device = dev;
	object_add(n, OBJECT_CONTEXT);
	context_start(n);
	*ctx = (CUcontext)n;
	return CUDA_SUCCESS;
}

/* Execution affinity and graphics contexts are not simulated; without them the later forms are the earlier one. */
CUresult sim_cuCtxCreate_v3(struct call *c, CUcontext *ctx, void *params_array, int num_params, unsigned int flags, CUdevice dev)
{
	(void)params_array;
	return num_params ? call_unsupported_part(c, "execution affinity") : sim_cuCtxCreate_v2(c, ctx, flags, dev);
}

CUresult sim_cuCtxCreate_v4(struct call *c, CUcontext *ctx, void *ctx_create_params, unsigned int flags, CUdevice dev)
{
	return ctx_create_params ? call_unsupported_part(c, "creation parameters") : sim_cuCtxCreate_v2(c, ctx, flags, dev);
}

CUresult sim_cuCtxDestroy_v2(struct call *c, CUcontext handle)
{
	(void)c;
	struct context *ctx;
	CUresult r = context_resolve(handle, &ctx);
	if (r)
		return r;
	if (ctx->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx->sticky)
		queue_run_all(ctx);
	context_clear(ctx);
	/* The object itself stays: other threads may still have it current, and must be told that it is gone. */
	if (context_current() == ctx)
		thread_state()->depth--;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxDestroy(struct call *c, CUcontext handle)
{
	return sim_cuCtxDestroy_v2(c, handle);
}

CUresult sim_cuCtxPushCurrent_v2(struct call *c, CUcontext handle)
{
	(void)c;
	struct context *ctx;
	CUresult r = context_resolve(handle, &ctx);
	return r ? r : push(ctx);
}

CUresult sim_cuCtxPopCurrent_v2(struct call *c, CUcontext *ctx)
{
	(void)c;
	if (!thread_state()->depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct context *top = thread_state()->stack[--thread_state()->depth];
	if (ctx)
		*ctx = (CUcontext)top;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCurrent(struct call *c, CUcontext handle)
{
	(void)c;
	if (!handle) {
		if (thread_state()->depth)
			thread_state()->depth--;
		return CUDA_SUCCESS;
	}
	struct context *ctx;
	CUresult r = context_resolve(handle, &ctx);
	if (r)
		return r;
	if (!thread_state()->depth)
		return push(ctx);
	thread_state()->stack[thread_state()->depth - 1] = ctx;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCurrent(struct call *c, CUcontext *ctx)
{
	(void)c;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = (CUcontext)context_current();
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice(struct call *c, CUdevice *device)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = c->ctx->device;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetFlags(struct call *c, unsigned int *flags)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = c->ctx->flags;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetId(struct call *c, CUcontext handle, uint64_t *ctx_id)
{
	if (!ctx_id)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *ctx;
	CUresult r = handle ? context_resolve(handle, &ctx) : call_context(c);
	if (!r)
		*ctx_id = handle ? ctx->id : c->ctx->id;
	return r;
}

CUresult sim_cuCtxGetApiVersion(struct call *c, CUcontext handle, unsigned int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *ctx;
	CUresult r = handle ? context_resolve(handle, &ctx) : call_context(c);
	if (!r)
		*version = 3020;
	return r;
}

CUresult sim_cuCtxSynchronize(struct call *c)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (capture_invalidate_all(c->ctx)) /* the context's handle covers the capturing streams */
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return queue_run_all(c->ctx);
}

CUresult sim_cuCtxGetStreamPriorityRange(struct call *c, int *least_priority, int *greatest_priority)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (least_priority)
		*least_priority = 0;
	if (greatest_priority)
		*greatest_priority = -5;
	return CUDA_SUCCESS;
}

static bool limit_known(CUlimit limit)
{
	return limit == CU_LIMIT_STACK_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE;
}

CUresult sim_cuCtxSetLimit(struct call *c, CUlimit limit, size_t value)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!limit_known(limit))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	c->ctx->limits[limit] = value;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetLimit(struct call *c, size_t *value, CUlimit limit)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!limit_known(limit))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*value = c->ctx->limits[limit];
	return CUDA_SUCCESS;
}

/* Advice about caches that are not simulated: the setting is accepted and the default reported back, as the driver does
 * on devices on which it has no effect. */
CUresult sim_cuCtxSetCacheConfig(struct call *c, int config)
{
	CUresult r = call_context(c);
	return r ? r : config >= 0 && config <= 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuCtxGetCacheConfig(struct call *c, int *config)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = 0;
	return CUDA_SUCCESS;
}
