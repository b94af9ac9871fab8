/*
 * exact_query.c: calls whose answers differ for mapped memory (exact.h).
 *
 * The extent and the identity of an allocation are emulated. Operations that mapped memory does not support are refused. A
 * recording notes the refusal, and the engine is recorded again with memory of the driver.
 */
#include <stddef.h>

#include "communicator.h"
#include "core.h"
#include "exact.h"

#define BUFFER_ID_BASE (UINT64_C(1) << 48) /* above any number that the driver gives out itself */

static void note_limit(const char *reason)
{
	struct trace_writer *w;
	if (core_mode() != MODE_RECORD)
		return;
	core_lock();
	w = core_trace();
	if (w)
		trace_exact_limit(w, reason);
	core_unlock();
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	struct piece p;
	bool ours = false;
	if (hook_enter()) {
		ours = exact_find(ptr, &p);
		hook_leave();
	}
	if (!ours)
		return REAL(cuMemGetAddressRange_v2)(base, size, ptr);
	if (base)
		*base = p.addr;
	if (size)
		*size = p.size;
	return CUDA_SUCCESS;
}

static bool answer(const struct piece *p, void *data, CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)data = p->owner; return true;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(uint64_t *)data = BUFFER_ID_BASE + p->id; return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)data = p->addr; return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = p->size; return true;
	default: return false;
	}
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct piece p;
	bool ours = false;
	if (data && hook_enter()) {
		ours = exact_find(ptr, &p) && answer(&p, data, attribute);
		hook_leave();
	}
	return ours ? CUDA_SUCCESS : REAL(cuPointerGetAttribute)(data, attribute, ptr);
}

CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	CUresult rc = REAL(cuPointerGetAttributes)(n, attributes, data, ptr);
	struct piece p;
	if (rc == CUDA_SUCCESS && hook_enter()) {
		if (exact_find(ptr, &p))
			for (unsigned int i = 0; i < n; i++)
				answer(&p, data[i], attributes[i]);
		hook_leave();
	}
	return rc;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	struct piece p;
	bool ours = false;
	if (hook_enter()) {
		ours = exact_find((uintptr_t)addr, &p);
		hook_leave();
	}
	return ours ? CUDA_ERROR_INVALID_VALUE : REAL(cuMemRetainAllocationHandle)(handle, addr);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct piece p;
	bool ours = false;
	if (hook_enter()) {
		ours = exact_find(ptr, &p);
		if (ours)
			note_limit("cuIpcGetMemHandle: mapped memory has no IPC handle");
		hook_leave();
	}
	return ours ? CUDA_ERROR_NOT_SUPPORTED : REAL(cuIpcGetMemHandle)(handle, ptr);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	if (hook_enter()) {
		if (!communicator_at_work())
			note_limit("cuCtxEnablePeerAccess: it does not cover mapped memory");
		hook_leave();
	}
	return REAL(cuCtxEnablePeerAccess)(peer, flags);
}
