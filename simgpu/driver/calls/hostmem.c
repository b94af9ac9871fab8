/*
 * hostmem.c: pinned and registered host memory, and questions about addresses.
 *
 * In: the cuMemHost calls and the pointer queries. Out: host addresses, which are device addresses too (unified
 * addressing). Fails: as documented, e.g. HOST_MEMORY_ALREADY_REGISTERED.
 */
#include "calls/calls.h"

static CUresult host_alloc(struct call *c, void **ptr, size_t bytes, unsigned flags)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!ptr || !bytes || flags & ~7u)
		return CUDA_ERROR_INVALID_VALUE;
	if ((r = capture_unsafe(c)))
		return r;
	struct allocation *a;
	if ((r = allocation_new(c->ctx, ALLOC_PINNED, bytes, flags, &a)))
		return r;
	*ptr = (void *)(uintptr_t)a->base;
	call_detail(c, "addr=0x%llx\tbytes=%zu\tindex=%llu", (unsigned long long)a->base, bytes, (unsigned long long)a->index);
	return CUDA_SUCCESS;
}

CUresult sim_cuMemAllocHost_v2(struct call *c, void **ptr, size_t bytes)
{
	return host_alloc(c, ptr, bytes, 0);
}

CUresult sim_cuMemHostAlloc(struct call *c, void **ptr, size_t bytes, unsigned int flags)
{
	return host_alloc(c, ptr, bytes, flags);
}

static CUresult host_end(struct call *c, void *ptr, enum alloc_kind kind, CUresult otherwise)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	call_detail(c, "addr=0x%llx", (unsigned long long)(uintptr_t)ptr);
	struct allocation *a = allocation_at((uintptr_t)ptr);
	if (!a || a->base != (uintptr_t)ptr || a->kind != kind)
		return otherwise;
	if ((r = capture_unsafe(c)) || (r = queue_run_all(c->ctx)))
		return r;
	allocation_end(a);
	return CUDA_SUCCESS;
}

CUresult sim_cuMemFreeHost(struct call *c, void *ptr)
{
	return host_end(c, ptr, ALLOC_PINNED, CUDA_ERROR_INVALID_VALUE);
}

CUresult sim_cuMemHostRegister_v2(struct call *c, void *ptr, size_t bytes, unsigned int flags)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!ptr || !bytes || flags & ~15u || !range_host((uintptr_t)ptr))
		return CUDA_ERROR_INVALID_VALUE;
	if ((r = capture_unsafe(c)))
		return r;
	struct allocation at = {.base = (uintptr_t)ptr}, *a = &at;
	call_detail(c, "addr=0x%llx\tbytes=%zu", (unsigned long long)at.base, bytes);
	return allocation_new(c->ctx, ALLOC_REGISTERED, bytes, flags, &a);
}

CUresult sim_cuMemHostUnregister(struct call *c, void *ptr)
{
	return host_end(c, ptr, ALLOC_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult sim_cuMemHostGetDevicePointer_v2(struct call *c, CUdeviceptr *ptr, void *host, unsigned int flags)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	const struct allocation *a = allocation_at((uintptr_t)host);
	if (!ptr || flags || !a || (a->kind != ALLOC_PINNED && a->kind != ALLOC_REGISTERED))
		return CUDA_ERROR_INVALID_VALUE;
	*ptr = (uintptr_t)host;
	return CUDA_SUCCESS;
}

CUresult sim_cuMemHostGetFlags(struct call *c, unsigned int *flags, void *ptr)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	const struct allocation *a = allocation_at((uintptr_t)ptr);
	if (!flags || !a || a->kind != ALLOC_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = a->flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAddressRange_v2(struct call *c, CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	const struct allocation *a = allocation_at(ptr);
	if (!a)
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = a->base;
	if (size)
		*size = a->size;
	return CUDA_SUCCESS;
}

static CUresult pointer_attribute(const struct allocation *a, void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	bool host = a->kind == ALLOC_PINNED || a->kind == ALLOC_REGISTERED;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = (CUcontext)a->ctx; break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE; break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)data = ptr; break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!host && a->kind != ALLOC_MANAGED)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)(uintptr_t)ptr;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(uint64_t *)data = a->index + 1; break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(int *)data = a->kind == ALLOC_MANAGED; break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = a->device; break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)data = a->base; break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = a->size; break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: *(int *)data = a->kind == ALLOC_DEVICE; break;
	case CU_POINTER_ATTRIBUTE_MAPPED: *(int *)data = 1; break;
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_SUCCESS;
}

CUresult sim_cuPointerGetAttribute(struct call *c, void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	const struct allocation *a = allocation_at(ptr);
	if (!data || !a)
		return CUDA_ERROR_INVALID_VALUE;
	r = pointer_attribute(a, data, attribute, ptr);
	return r == CUDA_ERROR_NOT_SUPPORTED ? call_unsupported_part(c, "this attribute") : r;
}

/* Unlike the single query this one answers an unknown address with nulls. */
CUresult sim_cuPointerGetAttributes(struct call *c, unsigned int num_attributes, CUpointer_attribute *attributes, void **data,
                                    CUdeviceptr ptr)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!num_attributes || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	const struct allocation *a = allocation_at(ptr);
	for (unsigned i = 0; i < num_attributes; i++) {
		CUpointer_attribute attr = attributes[i];
		r = a ? pointer_attribute(a, data[i], attr, ptr) : CUDA_SUCCESS;
		if (r == CUDA_ERROR_NOT_SUPPORTED)
			return call_unsupported_part(c, "one of these attributes");
		if (a && !r)
			continue;
		if (attr == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			*(int *)data[i] = -2;
		else if (attr == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || attr == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
		         attr == CU_POINTER_ATTRIBUTE_MAPPED)
			*(int *)data[i] = 0;
		else
			*(uint64_t *)data[i] = 0;
	}
	return CUDA_SUCCESS;
}
