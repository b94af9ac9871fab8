/*
 * device.c: the properties of devices, and calls that concern a device as a whole.
 *
 * In: ordinals. Out: the driver's attributes in the runtime's struct; an attribute that the driver does not know is 0. Fails: driver calls, with the driver's result; the profiler, with NOT_SUPPORTED.
 */
#include "cudart.h"

#include <string.h>

EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
	NEED_DRIVER();
	return CALL(cuDeviceGetCount, count);
}

static cudaError_t ordinal(int dev, CUdevice *d)
{
	cudaError_t r = driver_ready();
	return r ? r : (cudaError_t)driver.cuDeviceGet(d, dev);
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, CUdevice_attribute attr, int dev)
{
	CUdevice d;
	cudaError_t r = ordinal(dev, &d);
	return r ? result(r) : CALL(cuDeviceGetAttribute, value, attr, d);
}

EXPORT cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int dev)
{
	CUdevice d;
	cudaError_t r = ordinal(dev, &d);
	return r ? result(r) : CALL(cuDeviceGetPCIBusId, id, len, d);
}

EXPORT cudaError_t cudaDeviceGetDefaultMemPool(CUmemoryPool *pool, int dev)
{
	CUdevice d;
	cudaError_t r = ordinal(dev, &d);
	return r ? result(r) : CALL(cuDeviceGetDefaultMemPool, pool, d);
}

EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int dev, int peer)
{
	CUdevice a, b;
	cudaError_t r = ordinal(dev, &a);
	if (!r)
		r = ordinal(peer, &b);
	return r ? result(r) : CALL(cuDeviceCanAccessPeer, can, a, b);
}

EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	NEED_CONTEXT();
	CUcontext ctx;
	cudaError_t r = context_of(peer, &ctx);
	return r ? result(r) : CALL(cuCtxEnablePeerAccess, ctx, flags);
}

EXPORT cudaError_t cudaDeviceSynchronize(void)
{
	NEED_CONTEXT();
	return CALL(cuCtxSynchronize);
}

/* The next call that needs a context makes one. */
EXPORT cudaError_t cudaDeviceReset(void)
{
	CUdevice d;
	CUcontext ctx;
	cudaError_t r = ordinal(device_current(), &d);
	if (!r)
		r = CALL(cuDevicePrimaryCtxReset, d);
	if (!r) /* the context works again once it is retained again; one of the two is enough to keep it */
		r = CALL(cuDevicePrimaryCtxRetain, &ctx, d);
	return r ? result(r) : CALL(cuDevicePrimaryCtxRelease, d);
}

EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	NEED_CONTEXT();
	return CALL(cuCtxGetStreamPriorityRange, least, greatest);
}

/* Sets the flags of the thread's current device, whether or not its context exists already. */
EXPORT cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	CUdevice d;
	cudaError_t r = ordinal(device_current(), &d);
	return r ? result(r) : CALL(cuDevicePrimaryCtxSetFlags, d, flags);
}

EXPORT cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	CUdevice d;
	int active;
	cudaError_t r = ordinal(device_current(), &d);
	return r ? result(r) : CALL(cuDevicePrimaryCtxGetState, d, flags, &active);
}

EXPORT cudaError_t cudaProfilerStart(void) { return result(cudaErrorNotSupported); }
EXPORT cudaError_t cudaProfilerStop(void) { return result(cudaErrorNotSupported); }

/* cudaDeviceProp of CUDA 12; 13 lacks the fields that ONLY_12 marks. Sizes of textures and surfaces stay 0, because the
 * simulated device has none. */
#if CUDART_VERSION < 13000
#define ONLY_12(...) __VA_ARGS__
#else
#define ONLY_12(...)
#endif
struct properties {
	char name[256];
	CUuuid uuid;
	char luid[8];
	unsigned int luid_mask;
	size_t total_memory, shared_per_block;
	int registers_per_block, warp_size;
	size_t pitch;
	int max_threads, max_block[3], max_grid[3] ONLY_12(, clock);
	size_t constant;
	int major, minor;
	size_t texture_alignment, texture_pitch_alignment;
	int ONLY_12(overlap,) multiprocessors ONLY_12(, timeout), integrated, map_host ONLY_12(, compute_mode);
	int textures_and_surfaces[39 ONLY_12(+ 1)];
	size_t surface_alignment;
	int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, async_engines, unified ONLY_12(, memory_clock), bus_width,
	    l2_size, l2_persisting, threads_per_sm, priorities, l1_global, l1_local;
	size_t shared_per_sm;
	int registers_per_sm, managed, multi_gpu, multi_gpu_group, host_atomics ONLY_12(, double_ratio), pageable, concurrent_managed,
	    preemption, registered_host_pointer, cooperative ONLY_12(, cooperative_multi);
	size_t shared_optin;
	int host_page_tables, direct_managed, blocks_per_sm, policy_window;
	size_t shared_reserved;
	int host_register, sparse, register_read_only, timeline, pools, rdma;
	unsigned int rdma_flush;
	int rdma_order;
	unsigned int pool_handles;
	int deferred, ipc_event, cluster, function_pointers;
	int reserved[63];
};
#if CUDART_VERSION < 13000
_Static_assert(offsetof(struct properties, surface_alignment) == 568, "cudaDeviceProp.surfaceAlignment");
_Static_assert(offsetof(struct properties, shared_per_sm) == 640, "cudaDeviceProp.sharedMemPerMultiprocessor");
_Static_assert(offsetof(struct properties, shared_optin) == 696, "cudaDeviceProp.sharedMemPerBlockOptin");
_Static_assert(sizeof(struct properties) == 1032, "cudaDeviceProp");
#else
_Static_assert(offsetof(struct properties, surface_alignment) == 552, "cudaDeviceProp.surfaceAlignment");
_Static_assert(offsetof(struct properties, shared_per_sm) == 624, "cudaDeviceProp.sharedMemPerMultiprocessor");
_Static_assert(offsetof(struct properties, shared_optin) == 672, "cudaDeviceProp.sharedMemPerBlockOptin");
_Static_assert(sizeof(struct properties) == 1008, "cudaDeviceProp");
#endif

static int attribute(CUdevice d, int id)
{
	int v = 0;
	return driver.cuDeviceGetAttribute(&v, (CUdevice_attribute)id, d) ? 0 : v;
}

#if CUDART_VERSION >= 13000
#define cudaGetDeviceProperties_v2 cudaGetDeviceProperties
#endif
EXPORT cudaError_t cudaGetDeviceProperties_v2(struct properties *p, int dev)
{
	CUdevice d;
	cudaError_t r = ordinal(dev, &d);
	if (r)
		return result(r);
	if (!p)
		return result(cudaErrorInvalidValue);
	memset(p, 0, sizeof(*p));
	if ((r = CALL(cuDeviceGetName, p->name, sizeof(p->name), d)) || (r = CALL(cuDeviceGetUuid, &p->uuid, d)) ||
	    (r = CALL(cuDeviceTotalMem, &p->total_memory, d)))
		return r;
#define GET(field, id) p->field = (__typeof__(p->field))attribute(d, CU_DEVICE_ATTRIBUTE_##id)
	GET(shared_per_block, MAX_SHARED_MEMORY_PER_BLOCK);
	GET(registers_per_block, MAX_REGISTERS_PER_BLOCK);
	GET(warp_size, WARP_SIZE);
	GET(pitch, MAX_PITCH);
	GET(max_threads, MAX_THREADS_PER_BLOCK);
	GET(max_block[0], MAX_BLOCK_DIM_X);
	GET(max_block[1], MAX_BLOCK_DIM_Y);
	GET(max_block[2], MAX_BLOCK_DIM_Z);
	GET(max_grid[0], MAX_GRID_DIM_X);
	GET(max_grid[1], MAX_GRID_DIM_Y);
	GET(max_grid[2], MAX_GRID_DIM_Z);
	ONLY_12(GET(clock, CLOCK_RATE);)
	GET(constant, TOTAL_CONSTANT_MEMORY);
	GET(major, COMPUTE_CAPABILITY_MAJOR);
	GET(minor, COMPUTE_CAPABILITY_MINOR);
	GET(texture_alignment, TEXTURE_ALIGNMENT);
	ONLY_12(GET(overlap, GPU_OVERLAP);)
	GET(multiprocessors, MULTIPROCESSOR_COUNT);
	ONLY_12(GET(timeout, KERNEL_EXEC_TIMEOUT);)
	GET(integrated, INTEGRATED);
	GET(map_host, CAN_MAP_HOST_MEMORY);
	ONLY_12(GET(compute_mode, COMPUTE_MODE);)
	GET(concurrent_kernels, CONCURRENT_KERNELS);
	GET(ecc, ECC_ENABLED);
	GET(pci_bus, PCI_BUS_ID);
	GET(pci_device, PCI_DEVICE_ID);
	GET(pci_domain, PCI_DOMAIN_ID);
	GET(tcc, TCC_DRIVER);
	GET(async_engines, ASYNC_ENGINE_COUNT);
	GET(unified, UNIFIED_ADDRESSING);
	ONLY_12(GET(memory_clock, MEMORY_CLOCK_RATE);)
	GET(bus_width, GLOBAL_MEMORY_BUS_WIDTH);
	GET(l2_size, L2_CACHE_SIZE);
	GET(threads_per_sm, MAX_THREADS_PER_MULTIPROCESSOR);
	GET(priorities, STREAM_PRIORITIES_SUPPORTED);
	GET(l1_global, GLOBAL_L1_CACHE_SUPPORTED);
	GET(l1_local, LOCAL_L1_CACHE_SUPPORTED);
	GET(shared_per_sm, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
	GET(registers_per_sm, MAX_REGISTERS_PER_MULTIPROCESSOR);
	GET(managed, MANAGED_MEMORY);
	GET(multi_gpu, MULTI_GPU_BOARD);
	GET(pageable, PAGEABLE_MEMORY_ACCESS);
	GET(concurrent_managed, CONCURRENT_MANAGED_ACCESS);
	GET(preemption, COMPUTE_PREEMPTION_SUPPORTED);
	GET(registered_host_pointer, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);
	GET(cooperative, COOPERATIVE_LAUNCH);
	GET(shared_optin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	GET(blocks_per_sm, MAX_BLOCKS_PER_MULTIPROCESSOR);
	GET(shared_reserved, RESERVED_SHARED_MEMORY_PER_BLOCK);
	GET(host_register, HOST_REGISTER_SUPPORTED);
	GET(pools, MEMORY_POOLS_SUPPORTED);
	GET(ipc_event, IPC_EVENT_SUPPORTED);
	GET(cluster, CLUSTER_LAUNCH);
	GET(function_pointers, UNIFIED_FUNCTION_POINTERS);
#undef GET
	return cudaSuccess;
}
