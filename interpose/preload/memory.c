/*
 * memory.c: the hooks of all calls that allocate or free memory that a kernel can access.
 *
 * An allocation is noted after the driver made it, and a free before. In between no other allocation can have the address, so in
 * the order of the trace every address has one owner.
 */
#include "capture.h"
#include "communicator.h"
#include "core.h"
#include "driver.h"
#include "exact.h"
#include "gaps.h"
#include "launch.h"
#include "maps.h"
#include "multicast.h"
#include "stack.h"
#include "medusa.h"

#define NONE UINT64_MAX

static void note_alloc(enum alloc_kind kind, uint64_t addr, uint64_t size, uint64_t flags)
{
	CUcontext ctx = NULL;
	char stack[512];
	bool trigger = launch_in_trigger() || communicator_at_work();
	stack[0] = 0;
	REAL(cuCtxGetCurrent)(&ctx);
	if (core_mode() == MODE_RECORD) {
		stack_text(stack, sizeof stack);
		core_note_device();
		core_seal_at_exit();
		capture_moment();
	}
	core_lock();
	maps_add(kind, addr, size, flags, trigger, ctx, stack);
	core_unlock();
}

/* Notes the free of the allocation at addr. The driver alone handles unknown addresses, including 0. */
static uint64_t note_free(uint64_t addr)
{
	uint64_t freed = NONE;
	struct alloc *a;
	capture_moment();
	core_lock();
	a = maps_at(addr);
	if (a)
		freed = maps_free(a);
	core_unlock();
	return freed;
}

static CUresult check_free(uint64_t freed, const char *call, CUresult rc)
{
	/* While the driver shuts down it refuses everything, but the memory is gone all the same. */
	if (freed == NONE || rc == CUDA_SUCCESS || rc == CUDA_ERROR_DEINITIALIZED)
		return rc;
	core_lock();
	maps_unfree(freed);
	core_unlock();
	core_fault(call, "result %d after its free was recorded", (int)rc);
	return rc;
}

/* In a recording with gaps: allocates again as long as the new memory touches a neighbour. */
#define MOVE_APART(from, ptr, bytes, again) \
	do { \
		if (core_mode() != MODE_RECORD) \
			break; \
		for (int tries = 0; tries < GAPS_TRIES && rc == CUDA_SUCCESS && gaps_keep(from, (uintptr_t)*(ptr), bytes); tries++) \
			if ((again) != CUDA_SUCCESS) { \
				*(ptr) = (__typeof__(*(ptr)))(uintptr_t)gaps_return(from); \
				break; \
			} \
		if (rc == CUDA_SUCCESS) \
			gaps_after(from, bytes); \
	} while (0)

static const struct gap_source plain = {.kind = GAP_DEVICE}, pinned = {.kind = GAP_HOST};

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMemAlloc_v2)(ptr, bytes);
	if (!exact_alloc(ptr, bytes, &rc)) {
		gaps_before(plain, bytes);
		rc = REAL(cuMemAlloc_v2)(ptr, bytes);
		MOVE_APART(plain, ptr, bytes, REAL(cuMemAlloc_v2)(ptr, bytes));
	}
	if (rc == CUDA_SUCCESS)
		note_alloc(ALLOC_DEVICE, *ptr, bytes, 0);
	hook_leave();
	return rc;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height, unsigned int elem_size)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMemAllocPitch_v2)(ptr, pitch, width, height, elem_size);
	if (!exact_alloc_pitch(ptr, pitch, width, height, elem_size, &rc)) {
		gaps_before(plain, width * height);
		rc = REAL(cuMemAllocPitch_v2)(ptr, pitch, width, height, elem_size);
		MOVE_APART(plain, ptr, *pitch * height, REAL(cuMemAllocPitch_v2)(ptr, pitch, width, height, elem_size));
	}
	if (rc == CUDA_SUCCESS)
		note_alloc(ALLOC_PITCH, *ptr, *pitch * height, 0);
	hook_leave();
	return rc;
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMemAllocManaged)(ptr, bytes, flags);
	gaps_before(plain, bytes);
	rc = REAL(cuMemAllocManaged)(ptr, bytes, flags);
	if (rc == CUDA_SUCCESS)
		note_alloc(ALLOC_MANAGED, *ptr, bytes, flags);
	hook_leave();
	return rc;
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	CUresult rc;
	uint64_t freed;
	if (!hook_enter())
		return REAL(cuMemFree_v2)(ptr);
	freed = note_free(ptr);
	if (!exact_free(ptr, &rc))
		rc = REAL(cuMemFree_v2)(ptr);
	check_free(freed, "cuMemFree", rc);
	hook_leave();
	return rc;
}

CUresult cuMemAllocHost_v2(void **ptr, size_t bytes)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMemAllocHost_v2)(ptr, bytes);
	gaps_before(pinned, bytes);
	rc = REAL(cuMemAllocHost_v2)(ptr, bytes);
	MOVE_APART(pinned, ptr, bytes, REAL(cuMemAllocHost_v2)(ptr, bytes));
	if (rc == CUDA_SUCCESS)
		note_alloc(ALLOC_PINNED, (uintptr_t)*ptr, bytes, 0);
	hook_leave();
	return rc;
}

CUresult cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMemHostAlloc)(ptr, bytes, flags);
	gaps_before(pinned, bytes);
	rc = REAL(cuMemHostAlloc)(ptr, bytes, flags);
	MOVE_APART(pinned, ptr, bytes, REAL(cuMemHostAlloc)(ptr, bytes, flags));
	if (rc == CUDA_SUCCESS)
		note_alloc(ALLOC_PINNED, (uintptr_t)*ptr, bytes, flags);
	hook_leave();
	return rc;
}

CUresult cuMemFreeHost(void *ptr)
{
	CUresult rc;
	uint64_t freed;
	if (!hook_enter())
		return REAL(cuMemFreeHost)(ptr);
	freed = note_free((uintptr_t)ptr);
	rc = check_free(freed, "cuMemFreeHost", REAL(cuMemFreeHost)(ptr));
	hook_leave();
	return rc;
}

CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMemHostRegister_v2)(ptr, bytes, flags);
	rc = REAL(cuMemHostRegister_v2)(ptr, bytes, flags);
	if (rc == CUDA_SUCCESS)
		/* mutant: registered host memory */
		note_alloc(ALLOC_REGISTERED, (uintptr_t)ptr, bytes, flags);
	hook_leave();
	return rc;
}

CUresult cuMemHostUnregister(void *ptr)
{
	CUresult rc;
	uint64_t freed;
	if (!hook_enter())
		return REAL(cuMemHostUnregister)(ptr);
	freed = note_free((uintptr_t)ptr);
	rc = check_free(freed, "cuMemHostUnregister", REAL(cuMemHostUnregister)(ptr));
	hook_leave();
	return rc;
}

/* Host memory is known by its host address. If the device uses another address for it, kernels have addresses that no record
 * explains. */
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ptr, void *host, unsigned int flags)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMemHostGetDevicePointer_v2)(ptr, host, flags);
	rc = REAL(cuMemHostGetDevicePointer_v2)(ptr, host, flags);
	if (rc == CUDA_SUCCESS && *ptr != (uintptr_t)host)
		core_fault("cuMemHostGetDevicePointer", "host memory %p is mapped at another address, 0x%llx", host, *ptr);
	hook_leave();
	return rc;
}

/* The driver gives memory that is open already at the same address, and counts. It is one allocation until its last close. */
static bool reopened(CUdeviceptr ptr)
{
	bool is = false;
	core_lock();
	struct alloc *a = maps_at(ptr);
	/* mutant: memory of another process that is opened twice */
	if (a && a->kind == ALLOC_IPC) {
		a->reopened++;
		is = true;
	}
	core_unlock();
	return is;
}

static bool stays_open(CUdeviceptr ptr)
{
	bool does = false;
	core_lock();
	struct alloc *a = maps_at(ptr);
	if (a && a->kind == ALLOC_IPC && a->reopened > 0) {
		a->reopened--;
		does = true;
	}
	core_unlock();
	return does;
}

#define IPC_OPEN(suffix) \
	CUresult cuIpcOpenMemHandle##suffix(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags) \
	{ \
		CUresult rc; \
		size_t size = 0; \
		CUdeviceptr base; \
		if (!hook_enter()) \
			return REAL(cuIpcOpenMemHandle##suffix)(ptr, handle, flags); \
		rc = REAL(cuIpcOpenMemHandle##suffix)(ptr, handle, flags); \
		if (rc == CUDA_SUCCESS && !reopened(*ptr)) { \
			REAL(cuMemGetAddressRange_v2)(&base, &size, *ptr); \
			note_alloc(ALLOC_IPC, *ptr, size, flags); \
		} \
		hook_leave(); \
		return rc; \
	}
IPC_OPEN()
IPC_OPEN(_v2)

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	CUresult rc;
	uint64_t freed;
	if (!hook_enter())
		return REAL(cuIpcCloseMemHandle)(ptr);
	freed = stays_open(ptr) ? NONE : note_free(ptr);
	rc = check_free(freed, "cuIpcCloseMemHandle", REAL(cuIpcCloseMemHandle)(ptr));
	hook_leave();
	return rc;
}

/* The stream-ordered calls, each in its legacy and its per-thread form. */
#define STREAM_ORDERED(suffix) \
	CUresult cuMemAllocAsync##suffix(CUdeviceptr *ptr, size_t bytes, CUstream stream) \
	{ \
		CUresult rc; \
		if (!hook_enter()) \
			return REAL(cuMemAllocAsync##suffix)(ptr, bytes, stream); \
		const struct gap_source from = {.kind = GAP_STREAM, .stream = stream}; \
		gaps_before(from, bytes); \
		rc = REAL(cuMemAllocAsync##suffix)(ptr, bytes, stream); \
		MOVE_APART(from, ptr, bytes, REAL(cuMemAllocAsync##suffix)(ptr, bytes, stream)); \
		if (rc == CUDA_SUCCESS) \
			/* mutant: stream-ordered memory */ \
			note_alloc(ALLOC_ASYNC, *ptr, bytes, 0); \
		hook_leave(); \
		return rc; \
	} \
	CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream) \
	{ \
		CUresult rc; \
		if (!hook_enter()) \
			return REAL(cuMemAllocFromPoolAsync##suffix)(ptr, bytes, pool, stream); \
		const struct gap_source from = {.kind = GAP_POOL, .pool = pool, .stream = stream}; \
		gaps_before(from, bytes); \
		rc = REAL(cuMemAllocFromPoolAsync##suffix)(ptr, bytes, pool, stream); \
		MOVE_APART(from, ptr, bytes, REAL(cuMemAllocFromPoolAsync##suffix)(ptr, bytes, pool, stream)); \
		if (rc == CUDA_SUCCESS) \
			/* mutant: pool memory */ \
			note_alloc(ALLOC_POOL, *ptr, bytes, 0); \
		hook_leave(); \
		return rc; \
	} \
	CUresult cuMemFreeAsync##suffix(CUdeviceptr ptr, CUstream stream) \
	{ \
		CUresult rc; \
		uint64_t freed; \
		if (!hook_enter()) \
			return REAL(cuMemFreeAsync##suffix)(ptr, stream); \
		freed = note_free(ptr); \
		rc = check_free(freed, "cuMemFreeAsync", REAL(cuMemFreeAsync##suffix)(ptr, stream)); \
		hook_leave(); \
		return rc; \
	}
STREAM_ORDERED()
STREAM_ORDERED(_ptsz)

/* Reserved addresses hold no memory yet, so a gap in them uses none. In a region they have gaps already. */
CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, uint64_t flags)
{
	CUresult rc = CUDA_SUCCESS;
	CUdeviceptr own;
	if (!hook_enter())
		return REAL(cuMemAddressReserve)(ptr, size, alignment, addr, flags);
	/* mutant: small reservations in the region */
	own = !ptr || addr || flags ? 0 : exact_reserve(size, alignment);
	if (own) {
		*ptr = own;
	} else {
		gaps_before_reserve();
		rc = REAL(cuMemAddressReserve)(ptr, size, alignment, addr, flags);
	}
	hook_leave();
	return rc;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, uint64_t flags)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMemMap)(ptr, size, offset, handle, flags);
	rc = REAL(cuMemMap)(ptr, size, offset, handle, flags);
	if (rc == CUDA_SUCCESS) {
		note_alloc(ALLOC_VMM, ptr, size, flags);
		multicast_mapped(handle, ptr, size);
	}
	hook_leave();
	return rc;
}

/* One call may unmap several neighbouring mappings. */
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMemUnmap)(ptr, size);
	capture_moment();
	core_lock();
	for (CUdeviceptr p = ptr; p < ptr + size;) {
		struct alloc *a = maps_at(p);
		if (!a || a->kind != ALLOC_VMM)
			break;
		p += a->size;
		maps_unmap(a);
	}
	core_unlock();
	rc = REAL(cuMemUnmap)(ptr, size);
	if (rc != CUDA_SUCCESS && rc != CUDA_ERROR_DEINITIALIZED)
		core_fault("cuMemUnmap", "result %d after its frees were recorded", (int)rc);
	hook_leave();
	return rc;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMemAddressFree)(ptr, size);
	core_lock();
	maps_unreserve(ptr, size);
	core_unlock();
	rc = exact_unreserve(ptr, size) ? CUDA_SUCCESS : REAL(cuMemAddressFree)(ptr, size);
	hook_leave();
	return rc;
}

/* The restorer uses this to put capture-phase memory at its recorded addresses. */
int medusa_exact_place(uint64_t addr, uint64_t size)
{
	CUresult rc;
	if (!hook_enter())
		return CUDA_ERROR_NOT_SUPPORTED;
	rc = exact_place(addr, size);
	if (rc == CUDA_SUCCESS)
		note_alloc(ALLOC_DEVICE, addr, size, 0);
	hook_leave();
	return rc;
}

static void note_context_gone(CUcontext ctx)
{
	core_lock();
	maps_free_context(ctx);
	core_unlock();
}

/* The driver does not free memory of the region with its context. It is freed after the work that may use it. */
static CUresult context_went(CUresult rc, CUcontext ctx)
{
	if (rc == CUDA_SUCCESS && ctx && hook_enter()) {
		exact_context_gone(ctx);
		hook_leave();
	}
	return rc;
}

/* Returns the context that is about to be reset. */
static CUcontext note_primary_gone(CUdevice dev)
{
	CUcontext ctx = NULL;
	if (hook_enter()) {
		if (REAL(cuDevicePrimaryCtxRetain)(&ctx, dev) == CUDA_SUCCESS) {
			REAL(cuDevicePrimaryCtxRelease_v2)(dev);
			note_context_gone(ctx);
		}
		hook_leave();
	}
	return ctx;
}

#define CONTEXT(suffix) \
	CUresult cuCtxDestroy##suffix(CUcontext ctx) \
	{ \
		if (hook_enter()) { \
			note_context_gone(ctx); \
			hook_leave(); \
		} \
		return context_went(REAL(cuCtxDestroy##suffix)(ctx), ctx); \
	} \
	CUresult cuDevicePrimaryCtxReset##suffix(CUdevice dev) \
	{ \
		CUcontext ctx = note_primary_gone(dev); \
		return context_went(REAL(cuDevicePrimaryCtxReset##suffix)(dev), ctx); \
	}
CONTEXT()
CONTEXT(_v2)
