/*
 * memory_cases.c: allocations, copies, fills, host memory, pointer queries.
 */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

static const char *alloc_zero(void)
{
	CUdeviceptr p;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemAlloc_v2(&p, 0));
	return NULL;
}

static const char *alloc_aligned(void)
{
	CUdeviceptr a, b;
	OK(cu.cuMemAlloc_v2(&a, 1));
	OK(cu.cuMemAlloc_v2(&b, 3));
	CHECK(a % 256 == 0 && b % 256 == 0 && a != b);
	OK(cu.cuMemFree_v2(a));
	OK(cu.cuMemFree_v2(b));
	return NULL;
}

static const char *free_zero(void)
{
	OK(cu.cuMemFree_v2(0));
	return NULL;
}

static const char *free_twice(void)
{
	CUdeviceptr p;
	OK(cu.cuMemAlloc_v2(&p, 4 << 20));
	OK(cu.cuMemFree_v2(p));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree_v2(p));
	return NULL;
}

static const char *free_inside(void)
{
	CUdeviceptr p;
	OK(cu.cuMemAlloc_v2(&p, 4096));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree_v2(p + 256));
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *out_of_memory(void)
{
	CUdeviceptr p;
	size_t free, total;
	OK(cu.cuMemGetInfo_v2(&free, &total));
	WANT(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemAlloc_v2(&p, total + (1 << 20)));
	return NULL;
}

static const char *info_falls(void)
{
	CUdeviceptr p;
	size_t before, after, total;
	OK(cu.cuMemGetInfo_v2(&before, &total));
	OK(cu.cuMemAlloc_v2(&p, 256 << 20));
	OK(cu.cuMemGetInfo_v2(&after, &total));
	OK(cu.cuMemFree_v2(p));
	CHECK(before - after >= (256u << 20));
	return NULL;
}

static const char *address_range(void)
{
	CUdeviceptr p, base = 0;
	size_t size = 0;
	OK(cu.cuMemAlloc_v2(&p, 5000));
	OK(cu.cuMemGetAddressRange_v2(&base, &size, p + 4999));
	CHECK(base == p && size == 5000);
	OK(cu.cuMemGetAddressRange_v2(NULL, &size, p));
	OK(cu.cuMemFree_v2(p));
	WANT(CUDA_ERROR_NOT_FOUND, cu.cuMemGetAddressRange_v2(&base, &size, 64));
	return NULL;
}

static const char *pitch(void)
{
	CUdeviceptr p;
	size_t row = 0;
	OK(cu.cuMemAllocPitch_v2(&p, &row, 1000, 4, 4));
	CHECK(row >= 1000 && row % 4 == 0);
	OK(cu.cuMemFree_v2(p));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemAllocPitch_v2(&p, &row, 1000, 4, 3));
	return NULL;
}

static const char *round_trip(void)
{
	unsigned char out[777], in[777];
	CUdeviceptr p, q;
	for (int i = 0; i < 777; i++)
		out[i] = (unsigned char)(i * 7);
	OK(cu.cuMemAlloc_v2(&p, 1000));
	OK(cu.cuMemAlloc_v2(&q, 1000));
	OK(cu.cuMemcpyHtoD_v2(p + 3, out, 777));
	OK(cu.cuMemcpyDtoD_v2(q, p + 3, 777));
	OK(cu.cuMemcpyDtoH_v2(in, q, 777));
	CHECK(memcmp(in, out, 777) == 0);
	memset(in, 0, sizeof(in));
	OK(cu.cuMemcpy((CUdeviceptr)(uintptr_t)in, q, 777));
	CHECK(memcmp(in, out, 777) == 0);
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuMemFree_v2(q));
	return NULL;
}

static const char *copy_nothing(void)
{
	CUdeviceptr p;
	char c = 0;
	OK(cu.cuMemAlloc_v2(&p, 16));
	OK(cu.cuMemcpyHtoD_v2(p, &c, 0));
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *copy_outside(void)
{
	char c[64] = {0};
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyHtoD_v2(64, c, sizeof(c)));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyDtoH_v2(c, 64, sizeof(c)));
	return NULL;
}

static const char *copy_freed(void)
{
	CUdeviceptr p;
	char c[64];
	OK(cu.cuMemAlloc_v2(&p, 8 << 20));
	OK(cu.cuMemFree_v2(p));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpyDtoH_v2(c, p, sizeof(c)));
	return NULL;
}

static const char *copy_2d(void)
{
	char src[4][8], dst[4][6];
	CUdeviceptr p;
	size_t row;
	for (int y = 0; y < 4; y++)
		for (int x = 0; x < 8; x++)
			src[y][x] = (char)(10 * y + x);
	OK(cu.cuMemAllocPitch_v2(&p, &row, 6, 4, 4));
	CUDA_MEMCPY2D up = {.srcXInBytes = 1, .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = src, .srcPitch = 8,
	                    .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = p, .dstPitch = row, .WidthInBytes = 6, .Height = 4};
	OK(cu.cuMemcpy2D_v2(&up));
	CUDA_MEMCPY2D down = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = p, .srcPitch = row,
	                      .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = dst, .dstPitch = 6, .WidthInBytes = 6, .Height = 4};
	OK(cu.cuMemcpy2D_v2(&down));
	for (int y = 0; y < 4; y++)
		CHECK(memcmp(dst[y], src[y] + 1, 6) == 0);
	down.dstPitch = 5;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemcpy2D_v2(&down));
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *fill(void)
{
	unsigned v[8] = {0};
	CUdeviceptr p;
	OK(cu.cuMemAlloc_v2(&p, 32));
	OK(cu.cuMemsetD32_v2(p, 0x01020304, 8));
	OK(cu.cuMemsetD16_v2(p + 4, 0xaabb, 1));
	OK(cu.cuMemsetD8_v2(p + 8, 0xcc, 3));
	OK(cu.cuMemcpyDtoH_v2(v, p, 32));
	CHECK(v[0] == 0x01020304 && v[1] == 0x0102aabb && v[2] == 0x01cccccc && v[7] == 0x01020304);
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

/* Zeros from an odd place to another one: the bytes around them stay. */
static const char *zeros_within(CUdeviceptr p, size_t size)
{
	unsigned char edge[4], between[4096];
	OK(cu.cuMemsetD8_v2(p, 0x5a, size));
	OK(cu.cuMemsetD8_v2(p + 3, 0, size - 8));
	OK(cu.cuMemcpyDtoH_v2(edge, p, 4));
	CHECK(edge[2] == 0x5a && edge[3] == 0);
	OK(cu.cuMemcpyDtoH_v2(edge, p + size - 7, 4));
	CHECK(edge[1] == 0 && edge[2] == 0x5a);
	for (size_t at = 3; at + sizeof(between) < size - 8; at += size / 64) {
		OK(cu.cuMemcpyDtoH_v2(between, p + at, sizeof(between)));
		for (size_t i = 0; i < sizeof(between); i++)
			CHECK(between[i] == 0);
	}
	return NULL;
}

static const char *fill_large(void)
{
	static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	static const CUmemAccessDesc read_write = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	const size_t size = (size_t)8 << 20;
	CUdeviceptr p;
	CUmemGenericAllocationHandle h;
	OK(cu.cuMemAlloc_v2(&p, size));
	const char *failed = zeros_within(p, size);
	OK(cu.cuMemFree_v2(p));
	if (failed)
		return failed;
	OK(cu.cuMemAddressReserve(&p, size, 0, 0, 0));
	OK(cu.cuMemCreate(&h, size, &on_device, 0));
	OK(cu.cuMemMap(p, size, 0, h, 0));
	OK(cu.cuMemSetAccess(p, size, &read_write, 1));
	failed = zeros_within(p, size);
	OK(cu.cuMemUnmap(p, size));
	OK(cu.cuMemRelease(h));
	OK(cu.cuMemAddressFree(p, size));
	return failed;
}

static const char *fill_2d(void)
{
	unsigned char v[32];
	CUdeviceptr p;
	OK(cu.cuMemAlloc_v2(&p, 32));
	OK(cu.cuMemsetD8_v2(p, 0, 32));
	OK(cu.cuMemsetD2D8_v2(p, 8, 0xff, 3, 4));
	OK(cu.cuMemcpyDtoH_v2(v, p, 32));
	for (int i = 0; i < 32; i++)
		CHECK(v[i] == (i % 8 < 3 ? 0xff : 0));
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *fill_unaligned(void)
{
	CUdeviceptr p;
	OK(cu.cuMemAlloc_v2(&p, 64));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemsetD32_v2(p + 1, 0, 4));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemsetD16_v2(p + 1, 0, 4));
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *pinned(void)
{
	void *h = NULL;
	CUdeviceptr d = 0;
	unsigned type = 0;
	OK(cu.cuMemAllocHost_v2(&h, 4096));
	OK(cu.cuMemHostGetDevicePointer_v2(&d, h, 0));
	CHECK(d == (CUdeviceptr)(uintptr_t)h); /* unified addressing */
	OK(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
	CHECK(type == CU_MEMORYTYPE_HOST);
	OK(cu.cuMemsetD32_v2(d, 5, 1));
	OK(cu.cuCtxSynchronize());
	CHECK(*(unsigned *)h == 5);
	OK(cu.cuMemFreeHost(h));
	return NULL;
}

static const char *free_host_bad(void)
{
	int on_stack;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemFreeHost(&on_stack));
	return NULL;
}

static const char *registered(void)
{
	void *h = aligned_alloc(4096, 8192);
	CHECK(h != NULL);
	OK(cu.cuMemHostRegister_v2(h, 8192, 0));
	CUresult again = cu.cuMemHostRegister_v2(h, 8192, 0);
	OK(cu.cuMemHostUnregister(h));
	CUresult gone = cu.cuMemHostUnregister(h);
	free(h);
	WANT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, again);
	WANT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, gone);
	return NULL;
}

static const char *pointer_queries(void)
{
	CUdeviceptr p, start = 0;
	CUcontext ctx = NULL;
	unsigned type = 0;
	size_t size = 0;
	int ordinal = -1;
	OK(cu.cuMemAlloc_v2(&p, 4096));
	OK(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 5));
	OK(cu.cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	OK(cu.cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 5));
	OK(cu.cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 5));
	OK(cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
	OK(cu.cuMemFree_v2(p));
	CHECK(type == CU_MEMORYTYPE_DEVICE && ctx == context && start == p && size == 4096 && ordinal == 0);
	return NULL;
}

static const char *pointer_unknown(void)
{
	int local = 0;
	unsigned type;
	WANT(CUDA_ERROR_INVALID_VALUE,
	     cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&local));
	return NULL;
}

/* Pageable memory is staged before the call returns, so the program may change it at once. */
static const char *pageable_source(void)
{
	unsigned *src = malloc(1 << 20), *back = malloc(1 << 20);
	CUdeviceptr p;
	CUstream s;
	for (int i = 0; i < 1 << 18; i++)
		src[i] = (unsigned)i;
	OK(cu.cuMemAlloc_v2(&p, 1 << 20));
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuMemcpyHtoDAsync_v2(p, src, 1 << 20, s));
	memset(src, 0xff, 1 << 20);
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(back, p, 1 << 20));
	unsigned last = back[(1 << 18) - 1];
	free(src);
	free(back);
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuMemFree_v2(p));
	CHECK(last == (1 << 18) - 1);
	return NULL;
}

static const char *stream_ordered(void)
{
	CUdeviceptr p = 0;
	CUstream s;
	unsigned v = 0;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuMemAllocAsync(&p, 4096, s));
	OK(cu.cuMemsetD32Async(p, 9, 1024, s));
	OK(cu.cuMemcpyDtoHAsync_v2(&v, p + 4092, 4, s));
	OK(cu.cuMemFreeAsync(p, s));
	OK(cu.cuStreamSynchronize(s));
	CHECK(v == 9);
	OK(cu.cuStreamDestroy_v2(s));
	return NULL;
}

static const struct conformance_case cases[] = {
	{"memory/zero", "cuMemAlloc: INVALID_VALUE for size 0", alloc_zero, SHARED},
	{"memory/aligned", "cuMemAlloc: suitably aligned; programming guide: at least 256 bytes", alloc_aligned, SHARED},
	{"memory/free_zero", "cuMemFree: a null pointer is no error", free_zero, SHARED},
	{"memory/free_twice", "cuMemFree: INVALID_VALUE for an address that is not an allocation", free_twice, SHARED},
	{"memory/free_inside", "cuMemFree: the pointer must be one that was returned", free_inside, SHARED},
	{"memory/out_of_memory", "cuMemAlloc: OUT_OF_MEMORY", out_of_memory, SHARED},
	{"memory/info", "cuMemGetInfo: free memory falls by the allocated size", info_falls, SHARED},
	{"memory/address_range", "cuMemGetAddressRange: base and size of the allocation; NOT_FOUND", address_range, SHARED},
	{"memory/pitch", "cuMemAllocPitch: element sizes 4, 8 and 16; rows at least as wide", pitch, SHARED},
	{"copy/round_trip", "cuMemcpyHtoD, cuMemcpyDtoD, cuMemcpyDtoH, cuMemcpy", round_trip, SHARED},
	{"copy/nothing", "cuMemcpyHtoD: 0 bytes", copy_nothing, SHARED},
	{"copy/outside", "cuMemcpyHtoD, cuMemcpyDtoH: INVALID_VALUE for no device memory", copy_outside, SHARED},
	{"copy/freed", "cuMemcpyDtoH: INVALID_VALUE for freed memory", copy_freed, SHARED},
	{"copy/2d", "cuMemcpy2D: pitches; INVALID_VALUE for a pitch below the width", copy_2d, SHARED},
	{"memset/elements", "cuMemsetD8, cuMemsetD16, cuMemsetD32: elements, not bytes", fill, SHARED},
	{"memset/large", "cuMemsetD8: zeros in most of a large allocation, and in mapped memory", fill_large, SHARED},
	{"memset/2d", "cuMemsetD2D8: rows of a pitch", fill_2d, SHARED},
	{"memset/unaligned", "cuMemsetD16, cuMemsetD32: the address must be aligned to the element", fill_unaligned, SHARED},
	{"host/pinned", "cuMemAllocHost, cuMemHostGetDevicePointer: unified addressing", pinned, SHARED},
	{"host/free_bad", "cuMemFreeHost: INVALID_VALUE for other memory", free_host_bad, SHARED},
	{"host/registered", "cuMemHostRegister: ALREADY_REGISTERED; cuMemHostUnregister: NOT_REGISTERED", registered, SHARED},
	{"pointer/queries", "cuPointerGetAttribute: type, context, range, device", pointer_queries, SHARED},
	{"pointer/unknown", "cuPointerGetAttribute: INVALID_VALUE for memory the driver does not know", pointer_unknown, SHARED},
	{"copy/pageable_source", "API synchronization behaviour: pageable sources are staged before the call returns", pageable_source, SHARED},
	{"memory/stream_ordered", "cuMemAllocAsync, cuMemFreeAsync: ordered like other work of the stream", stream_ordered, SHARED},
};
GROUP(memory_cases, cases);
