/*
 * peer_cases.c: contexts of one process on two devices, and who may touch whose memory.
 *
 * A case that needs two devices which reach each other is skipped if the machine has none.
 */
#include "conformance.h"

#define PAGE ((size_t)2 << 20)

/* The second device's context, and the kernel of a module loaded there. The first one's context stays current. */
static CUcontext second;
static CUfunction second_add;

static CUresult open_second(void)
{
	CUmodule m;
	CUresult r, back;
	if (second)
		return CUDA_SUCCESS;
	if ((r = cu.cuDevicePrimaryCtxRetain(&second, 1)) || (r = cu.cuCtxSetCurrent(second)))
		return r;
	if (!(r = cu.cuModuleLoadData(&m, fixture_ptx)))
		r = cu.cuModuleGetFunction(&second_add, m, "add");
	return (back = cu.cuCtxSetCurrent(context)) ? back : r;
}

/* NULL if there are two devices that reach each other both ways, and the second is open. */
static const char *two(void)
{
	int count = 0, to = 0, back = 0;
	OK(cu.cuDeviceGetCount(&count));
	if (count < 2)
		return skip("one device");
	OK(cu.cuDeviceCanAccessPeer(&to, 0, 1));
	OK(cu.cuDeviceCanAccessPeer(&back, 1, 0));
	if (!to || !back)
		return skip("devices 0 and 1 do not reach each other");
	OK(open_second());
	return NULL;
}
#define TWO()                            \
	do {                                 \
		const char *without = two();     \
		if (without)                     \
			return without;              \
	} while (0)

static CUresult alloc_on(CUcontext ctx, CUdeviceptr *p, size_t bytes)
{
	CUresult r, back;
	if ((r = cu.cuCtxSetCurrent(ctx)))
		return r;
	if (!(r = cu.cuMemAlloc_v2(p, bytes)) && !(r = cu.cuMemsetD8_v2(*p, 0, bytes)))
		r = cu.cuCtxSynchronize();
	return (back = cu.cuCtxSetCurrent(context)) ? back : r;
}

static CUresult launch(CUfunction f, CUdeviceptr buf, float value)
{
	unsigned n = 1;
	void *params[] = {&buf, &n, &value};
	return cu.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
}

static const char *p2p_attributes(void)
{
	int v = -1, can = -1, count = 0;
	WANT(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
	OK(cu.cuDeviceGetCount(&count));
	WANT(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, count));
	if (count < 2)
		return NULL;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuDeviceGetP2PAttribute(NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuDeviceGetP2PAttribute(&v, 9999, 0, 1));
	OK(cu.cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
	OK(cu.cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK(v == can);
	return NULL;
}

static const char *own_context(void)
{
	WANT(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxEnablePeerAccess(context, 0));
	CHECK(cu.cuCtxDisablePeerAccess(context) != CUDA_SUCCESS);
	return NULL;
}

static const char *two_contexts(void)
{
	CUdevice dev = -1;
	CUdeviceptr p;
	size_t first_before, first_after, before, after, total;
	int ordinal = -1;
	CUcontext owner = NULL;
	TWO();
	CHECK(second != context);
	OK(cu.cuCtxGetDevice(&dev));
	CHECK(dev == 0);
	OK(cu.cuMemGetInfo_v2(&first_before, &total));
	OK(cu.cuCtxPushCurrent_v2(second));
	OK(cu.cuCtxGetDevice(&dev));
	CHECK(dev == 1);
	OK(cu.cuMemGetInfo_v2(&before, &total));
	OK(cu.cuMemAlloc_v2(&p, 32 * PAGE));
	OK(cu.cuMemGetInfo_v2(&after, &total));
	CHECK(before - after >= 32 * PAGE);
	WANT(CUDA_ERROR_INVALID_HANDLE, launch(add_kernel, p, 1)); /* of the other context */
	OK(cu.cuCtxPopCurrent_v2(NULL));
	OK(cu.cuMemGetInfo_v2(&first_after, &total));
	CHECK(first_before - first_after < 32 * PAGE);
	OK(cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
	OK(cu.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	CHECK(ordinal == 1 && owner == second);
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *enable_once(void)
{
	TWO();
	WANT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cu.cuCtxDisablePeerAccess(second));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuCtxEnablePeerAccess(second, 1));
	OK(cu.cuCtxEnablePeerAccess(second, 0));
	WANT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cu.cuCtxEnablePeerAccess(second, 0));
	OK(cu.cuCtxDisablePeerAccess(second));
	WANT(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cu.cuCtxDisablePeerAccess(second));
	return NULL;
}

static const char *kernel_with_access(void)
{
	CUdeviceptr before, after;
	float got = 0;
	TWO();
	OK(alloc_on(second, &before, 64));
	OK(cu.cuCtxEnablePeerAccess(second, 0));
	OK(alloc_on(second, &after, 64));
	OK(launch(add_kernel, before, 2));
	OK(launch(add_kernel, after, 3));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuMemcpyDtoH_v2(&got, before, 4));
	CHECK(got == 2);
	OK(cu.cuMemcpyDtoH_v2(&got, after, 4));
	CHECK(got == 3);
	OK(cu.cuCtxDisablePeerAccess(second));
	OK(cu.cuMemFree_v2(before));
	OK(cu.cuMemFree_v2(after));
	return NULL;
}

static const char *kernel_without_access(void)
{
	CUdeviceptr p;
	TWO();
	OK(alloc_on(second, &p, 64));
	OK(launch(add_kernel, p, 2));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
	return NULL;
}

static const char *kernel_after_disable(void)
{
	CUdeviceptr p;
	TWO();
	OK(alloc_on(second, &p, 64));
	OK(cu.cuCtxEnablePeerAccess(second, 0));
	OK(cu.cuCtxDisablePeerAccess(second));
	OK(launch(add_kernel, p, 2));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
	return NULL;
}

static const char *one_way(void)
{
	CUdeviceptr p;
	TWO();
	OK(alloc_on(context, &p, 64));
	OK(cu.cuCtxEnablePeerAccess(second, 0));
	OK(cu.cuCtxSetCurrent(second));
	OK(launch(second_add, p, 2));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
	return NULL;
}

static const char *copies(void)
{
	CUdeviceptr p, q;
	CUstream s;
	float one = 1, got = 0;
	TWO();
	OK(alloc_on(context, &p, 64));
	OK(alloc_on(second, &q, 64));
	OK(cu.cuMemcpyHtoD_v2(p, &one, 4));
	OK(cu.cuMemcpyPeer(q, second, p, context, 4));
	OK(cu.cuMemcpyDtoH_v2(&got, q, 4));
	CHECK(got == 1);
	OK(cu.cuCtxPushCurrent_v2(second));
	OK(launch(second_add, q, 4));
	OK(cu.cuCtxPopCurrent_v2(NULL));
	OK(cu.cuMemcpyPeer(p, context, q, second, 4)); /* after the other device's kernel */
	OK(cu.cuMemcpyDtoH_v2(&got, p, 4));
	CHECK(got == 5);
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuMemcpyPeerAsync(q + 4, second, p, context, 4, s));
	OK(cu.cuMemcpyDtoDAsync_v2(q + 8, p, 4, s));
	OK(cu.cuStreamSynchronize(s));
	for (int i = 4; i <= 8; i += 4) {
		OK(cu.cuMemcpyDtoH_v2(&got, q + (unsigned)i, 4));
		CHECK(got == 5);
	}
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuMemFree_v2(q));
	return NULL;
}

static const char *streams_and_events(void)
{
	CUstream s;
	CUevent mine, theirs;
	CUdeviceptr p, q;
	float got = 0;
	void *params[3];
	unsigned n = 1;
	float value = 6;
	TWO();
	OK(alloc_on(context, &p, 64));
	OK(alloc_on(second, &q, 64));
	OK(cu.cuEventCreate(&mine, CU_EVENT_DISABLE_TIMING));
	OK(cu.cuCtxPushCurrent_v2(second));
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuEventCreate(&theirs, CU_EVENT_DISABLE_TIMING));
	params[0] = &q;
	params[1] = &n;
	params[2] = &value;
	OK(cu.cuLaunchKernel(second_add, 1, 1, 1, 32, 1, 1, 0, s, params, NULL));
	OK(cu.cuEventRecord(theirs, s));
	OK(cu.cuCtxPopCurrent_v2(NULL));
	CHECK(cu.cuEventRecord(mine, s) != CUDA_SUCCESS);
	params[0] = &p;
	CHECK(cu.cuLaunchKernel(add_kernel, 1, 1, 1, 32, 1, 1, 0, s, params, NULL) != CUDA_SUCCESS);
	OK(cu.cuStreamWaitEvent(NULL, theirs, 0));
	OK(cu.cuMemcpyDtoD_v2(p, q, 4));
	OK(cu.cuMemcpyDtoH_v2(&got, p, 4));
	CHECK(got == 6);
	OK(cu.cuEventDestroy_v2(mine));
	OK(cu.cuEventDestroy_v2(theirs));
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuMemFree_v2(q));
	return NULL;
}

/* Memory of the second device, mapped with the given access of each. */
static CUresult mapped(CUdeviceptr *p, CUmemAccess_flags of_first, CUmemAccess_flags of_second)
{
	const CUmemAllocationProp on_second = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
	const CUmemAccessDesc access[2] = {{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, of_first}, {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, of_second}};
	CUmemGenericAllocationHandle h;
	CUresult r;
	if ((r = cu.cuMemAddressReserve(p, PAGE, 0, 0, 0)) || (r = cu.cuMemCreate(&h, PAGE, &on_second, 0)) || (r = cu.cuMemMap(*p, PAGE, 0, h, 0)) ||
	    (r = cu.cuMemRelease(h)))
		return r;
	return cu.cuMemSetAccess(*p, PAGE, access, 2);
}

static const char *mapped_for_both(void)
{
	CUdeviceptr p;
	float got = 0;
	const float zero = 0;
	uint64_t flags = 7;
	const CUmemLocation first = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	TWO();
	OK(mapped(&p, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	OK(cu.cuMemGetAccess(&flags, &first, p));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cu.cuMemcpyHtoD_v2(p, &zero, 4));
	OK(launch(add_kernel, p, 2)); /* no peer access is needed */
	OK(cu.cuCtxSynchronize());
	OK(cu.cuMemcpyDtoH_v2(&got, p, 4));
	CHECK(got == 2);
	OK(cu.cuCtxPushCurrent_v2(second));
	OK(launch(second_add, p, 3));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuCtxPopCurrent_v2(NULL));
	OK(cu.cuMemcpyDtoH_v2(&got, p, 4));
	CHECK(got == 5);
	OK(cu.cuMemUnmap(p, PAGE));
	OK(cu.cuMemAddressFree(p, PAGE));
	return NULL;
}

static const char *mapped_for_one(void)
{
	CUdeviceptr p;
	TWO();
	OK(cu.cuCtxEnablePeerAccess(second, 0)); /* does not cover mapped memory */
	OK(mapped(&p, CU_MEM_ACCESS_FLAGS_PROT_NONE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	OK(launch(add_kernel, p, 2));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
	return NULL;
}

static const struct conformance_case cases[] = {
	{"peer/attributes", "cuDeviceGetP2PAttribute: INVALID_DEVICE for one device twice; as cuDeviceCanAccessPeer", p2p_attributes, SHARED},
	{"peer/own_context", "cuCtxEnablePeerAccess: INVALID_CONTEXT for the current context", own_context, SHARED},
	{"peer/contexts", "cuDevicePrimaryCtxRetain, cuMemGetInfo: each device has a context, memory and functions of its own", two_contexts, ALONE},
	{"peer/enable", "cuCtxEnablePeerAccess: PEER_ACCESS_ALREADY_ENABLED, flags 0; cuCtxDisablePeerAccess: PEER_ACCESS_NOT_ENABLED", enable_once, ALONE},
	{"peer/kernel", "cuCtxEnablePeerAccess: earlier and later allocations of the peer are accessible", kernel_with_access, ALONE},
	{"peer/kernel_no_access", "CUDA_ERROR_ILLEGAL_ADDRESS: another device's memory without peer access", kernel_without_access, ALONE},
	{"peer/kernel_disabled", "cuCtxDisablePeerAccess: ends the access", kernel_after_disable, ALONE},
	{"peer/one_way", "cuCtxEnablePeerAccess: the access is unidirectional", one_way, ALONE},
	{"peer/copies", "cuMemcpyPeer, cuMemcpyPeerAsync, cuMemcpyDtoD: between devices, also without peer access", copies, ALONE},
	{"peer/streams", "Programming guide, stream and event behavior: a launch and a record need a stream of their device, a wait does not", streams_and_events, ALONE},
	{"peer/mapped", "cuMemSetAccess: gives several devices access to memory of one", mapped_for_both, ALONE},
	{"peer/mapped_no_access", "cuMemSetAccess: alone decides on mapped memory, not peer access", mapped_for_one, ALONE},
};
GROUP(peer_cases, cases);
