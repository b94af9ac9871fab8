/*
 * memory.c: allocating and freeing device memory.
 *
 * In: the cuMemAlloc family and the stream-ordered one. Out: addresses. Fails: INVALID_VALUE for size 0, a bad pointer or
 * a second free; OUT_OF_MEMORY; STREAM_CAPTURE_UNSUPPORTED if a capture forbids it.
 */
#include "calls/calls.h"

#include <string.h>

static CUresult allocate(struct call *c, enum alloc_kind kind, uint64_t size, unsigned flags, uint64_t *addr)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!addr || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if ((r = capture_unsafe(c)))
		return r;
	struct allocation *a;
	if ((r = allocation_new(c->ctx, kind, size, flags, &a)))
		return r;
	*addr = a->base;
	call_detail(c, "addr=0x%llx\tbytes=%llu\tindex=%llu", (unsigned long long)a->base, (unsigned long long)size,
	            (unsigned long long)a->index);
	return CUDA_SUCCESS;
}

CUresult sim_cuMemAlloc_v2(struct call *c, CUdeviceptr *ptr, size_t bytes)
{
	uint64_t addr;
	CUresult r = ptr ? allocate(c, ALLOC_DEVICE, bytes, 0, &addr) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*ptr = addr;
	return r;
}

CUresult sim_cuMemAllocPitch_v2(struct call *c, CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
                                unsigned int elem_size)
{
	if (!ptr || !pitch || !width || !height || width > SIZE_MAX / 2 ||
	    (elem_size != 4 && elem_size != 8 && elem_size != 16))
		return CUDA_ERROR_INVALID_VALUE;
	size_t row = (width + 511) / 512 * 512;
	if (row > SIZE_MAX / height)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t addr;
	CUresult r = allocate(c, ALLOC_PITCH, row * height, 0, &addr);
	if (r)
		return r;
	*ptr = addr;
	*pitch = row;
	return CUDA_SUCCESS;
}

CUresult sim_cuMemAllocManaged(struct call *c, CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
	if (!ptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t addr;
	CUresult r = allocate(c, ALLOC_MANAGED, bytes, flags, &addr);
	if (!r)
		*ptr = addr;
	return r;
}

static bool freeable(const struct allocation *a, CUdeviceptr ptr)
{
	return a && a->base == ptr && a->block && a->kind != ALLOC_GLOBAL && !a->free_queued;
}

CUresult sim_cuMemFree_v2(struct call *c, CUdeviceptr ptr)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	call_detail(c, "addr=0x%llx", (unsigned long long)ptr);
	if (!ptr)
		return CUDA_SUCCESS;
	struct allocation *a = allocation_at(ptr);
	if (!freeable(a, ptr))
		return CUDA_ERROR_INVALID_VALUE;
	if ((r = capture_unsafe(c)))
		return r;
	/* The driver waits for work that may still use the memory. */
	if ((r = queue_run_all(c->ctx)) || (a->ctx != c->ctx && (r = queue_run_all(a->ctx))))
		return r;
	call_detail(c, "index=%llu", (unsigned long long)a->index);
	allocation_end(a);
	return CUDA_SUCCESS;
}

CUresult sim_cuMemGetInfo_v2(struct call *c, size_t *free, size_t *total)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!free || !total)
		return CUDA_ERROR_INVALID_VALUE;
	*total = config_get()->memory;
	*free = heap_free(c->ctx->device);
	call_detail(c, "free=%zu\ttotal=%zu", *free, *total);
	return CUDA_SUCCESS;
}

/* ---- stream-ordered -------------------------------------------------------------------------------------------- */

static struct pool default_pools[MOST_DEVICES];

struct pool *pool_default(CUdevice dev)
{
	struct pool *pool = &default_pools[dev];
	if (!object_live(pool, OBJECT_POOL)) {
		object_add(pool, OBJECT_POOL);
		*pool = (struct pool){.device = dev, .reuse = {1, 1, 1}};
	}
	return pool;
}

CUresult sim_cuDeviceGetDefaultMemPool(struct call *c, CUmemoryPool *pool, CUdevice dev)
{
	(void)c;
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (device_check(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*pool = (CUmemoryPool)pool_default(dev);
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetMemPool(struct call *c, CUmemoryPool *pool, CUdevice dev)
{
	return sim_cuDeviceGetDefaultMemPool(c, pool, dev);
}

/* pool NULL: the default one of the context's device */
static CUresult allocate_async(struct call *c, CUdeviceptr *ptr, size_t bytes, struct pool *pool, enum alloc_kind kind,
                               CUstream handle)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct stream *s;
	bool capturing;
	if ((r = stream_resolve(c, handle, &s)) || (r = capture_check(c, s, &capturing)))
		return r;
	if (!ptr || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (capturing) {
		capture_invalidate(s->capture);
		return call_unsupported_part(c, "memory allocation nodes");
	}
	if (!pool)
		pool = pool_default(c->ctx->device);
	if (pool->device != c->ctx->device)
		return call_unsupported_part(c, "a pool of another device than the current context's");
	struct allocation *a;
	r = allocation_new(c->ctx, kind, bytes, 0, &a);
	if (r == CUDA_ERROR_OUT_OF_MEMORY) { /* frees that are queued may make room */
		if ((r = queue_run_all(c->ctx)))
			return r;
		r = allocation_new(c->ctx, kind, bytes, 0, &a);
	}
	if (r)
		return r;
	a->pool = pool;
	pool->used += bytes;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	*ptr = a->base;
	call_detail(c, "addr=0x%llx\tbytes=%zu\tindex=%llu", (unsigned long long)a->base, bytes, (unsigned long long)a->index);
	return CUDA_SUCCESS;
}

CUresult sim_cuMemAllocAsync(struct call *c, CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	return allocate_async(c, ptr, bytes, NULL, ALLOC_ASYNC, stream);
}

CUresult sim_cuMemAllocFromPoolAsync(struct call *c, CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	if (!object_live(pool, OBJECT_POOL))
		return CUDA_ERROR_INVALID_VALUE;
	return allocate_async(c, ptr, bytes, (struct pool *)pool, ALLOC_POOL, stream);
}

CUresult sim_cuMemFreeAsync(struct call *c, CUdeviceptr ptr, CUstream handle)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct stream *s;
	bool capturing;
	if ((r = stream_resolve(c, handle, &s)) || (r = capture_check(c, s, &capturing)))
		return r;
	call_detail(c, "addr=0x%llx", (unsigned long long)ptr);
	if (capturing) {
		capture_invalidate(s->capture);
		return call_unsupported_part(c, "memory free nodes");
	}
	struct allocation *a = allocation_at(ptr);
	if (!freeable(a, ptr))
		return CUDA_ERROR_INVALID_VALUE;
	a->free_queued = true;
	struct op *op = op_new(OP_FREE);
	op->freed = a;
	queue_add(s, op);
	return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolTrimTo(struct call *c, CUmemoryPool pool, size_t min_bytes_to_keep)
{
	(void)min_bytes_to_keep; /* a freed block is never held back here */
	CUresult r = call_context(c);
	return r ? r : object_live(pool, OBJECT_POOL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemPoolSetAttribute(struct call *c, CUmemoryPool handle, int attr, void *value)
{
	(void)c;
	if (!object_live(handle, OBJECT_POOL) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	struct pool *pool = (struct pool *)handle;
	if (attr >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES && attr <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
		pool->reuse[attr - 1] = *(const int *)value;
	else if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		pool->threshold = *(const uint64_t *)value;
	else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH && *(const uint64_t *)value == 0)
		pool->used_high = pool->used;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolGetAttribute(struct call *c, CUmemoryPool handle, int attr, void *value)
{
	(void)c;
	if (!object_live(handle, OBJECT_POOL) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	const struct pool *pool = (const struct pool *)handle;
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: *(int *)value = pool->reuse[attr - 1]; break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(uint64_t *)value = pool->threshold; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(uint64_t *)value = pool->used; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(uint64_t *)value = pool->used_high; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}
