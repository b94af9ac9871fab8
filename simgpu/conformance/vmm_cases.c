/*
 * vmm_cases.c: reserved addresses, physical memory, mappings, access.
 */
#include "conformance.h"

#include <string.h>

#define PAGE ((size_t)2 << 20)

static const CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc read_write = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static const CUmemAccessDesc none = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_NONE};

/* pages of one handle, mapped and accessible at *ptr */
static CUresult mapped(CUdeviceptr *ptr, CUmemGenericAllocationHandle *handle, size_t bytes)
{
	CUresult r;
	if ((r = cu.cuMemAddressReserve(ptr, bytes, 0, 0, 0)) || (r = cu.cuMemCreate(handle, bytes, &on_device, 0)) ||
	    (r = cu.cuMemMap(*ptr, bytes, 0, *handle, 0)))
		return r;
	return cu.cuMemSetAccess(*ptr, bytes, &read_write, 1);
}

static CUresult gone(CUdeviceptr ptr, CUmemGenericAllocationHandle handle, size_t bytes)
{
	CUresult r;
	if ((r = cu.cuMemUnmap(ptr, bytes)) || (r = cu.cuMemRelease(handle)))
		return r;
	return cu.cuMemAddressFree(ptr, bytes);
}

static const char *granularity(void)
{
	size_t least = 0, best = 0;
	int supported = 0;
	OK(cu.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	CHECK(supported == 1);
	OK(cu.cuMemGetAllocationGranularity(&least, &on_device, 0));
	OK(cu.cuMemGetAllocationGranularity(&best, &on_device, 1));
	CHECK(least > 0 && PAGE % least == 0 && best % least == 0);
	return NULL;
}

static const char *round_trip(void)
{
	CUdeviceptr p;
	CUmemGenericAllocationHandle h;
	unsigned in = 0, out = 0xabcd1234;
	OK(mapped(&p, &h, 2 * PAGE));
	OK(cu.cuMemcpyHtoD_v2(p + PAGE - 2, &out, 4));
	OK(cu.cuMemcpyDtoH_v2(&in, p + PAGE - 2, 4));
	CHECK(in == out);
	OK(gone(p, h, 2 * PAGE));
	return NULL;
}

/* A driver may refuse a hint: it then returns another address or an error, but never a false success. */
static const char *hint(void)
{
	CUdeviceptr want = 0x120000000000u, p = 0, q = 0;
	CUresult r = cu.cuMemAddressReserve(&p, PAGE, 0, want, 0);
	if (r == CUDA_SUCCESS) {
		CHECK(p != 0);
		CUresult again = cu.cuMemAddressReserve(&q, PAGE, 0, p, 0);
		CHECK(again != CUDA_SUCCESS || (q != p && q != 0));
		if (again == CUDA_SUCCESS)
			OK(cu.cuMemAddressFree(q, PAGE));
		OK(cu.cuMemAddressFree(p, PAGE));
	}
	return NULL;
}

static const char *reserve_bad(void)
{
	CUdeviceptr p;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemAddressReserve(&p, 0, 0, 0, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemAddressReserve(&p, PAGE, 3, 0, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemAddressReserve(&p, PAGE, 0, 0, 1));
	return NULL;
}

static const char *create_bad(void)
{
	CUmemGenericAllocationHandle h;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemCreate(&h, 0, &on_device, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemCreate(&h, 4097, &on_device, 0));
	return NULL;
}

static const char *map_twice(void)
{
	CUdeviceptr p;
	CUmemGenericAllocationHandle h, other;
	OK(mapped(&p, &h, PAGE));
	OK(cu.cuMemCreate(&other, PAGE, &on_device, 0));
	CHECK(cu.cuMemMap(p, PAGE, 0, other, 0) != CUDA_SUCCESS);
	OK(cu.cuMemRelease(other));
	OK(gone(p, h, PAGE));
	return NULL;
}

static const char *no_access(void)
{
	CUdeviceptr p;
	CUmemGenericAllocationHandle h;
	char c = 1;
	uint64_t flags = 7;
	OK(cu.cuMemAddressReserve(&p, PAGE, 0, 0, 0));
	OK(cu.cuMemCreate(&h, PAGE, &on_device, 0));
	OK(cu.cuMemMap(p, PAGE, 0, h, 0));
	OK(cu.cuMemGetAccess(&flags, &on_device.location, p));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CHECK(cu.cuMemcpyHtoD_v2(p, &c, 1) != CUDA_SUCCESS);
	OK(gone(p, h, PAGE));
	return NULL;
}

static const char *access_flags(void)
{
	CUdeviceptr p;
	CUmemGenericAllocationHandle h;
	uint64_t flags = 7;
	OK(mapped(&p, &h, PAGE));
	OK(cu.cuMemGetAccess(&flags, &on_device.location, p + 4096));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cu.cuMemSetAccess(p, PAGE, &none, 1));
	OK(cu.cuMemGetAccess(&flags, &on_device.location, p));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(gone(p, h, PAGE));
	return NULL;
}

/* Physical memory keeps its contents when it is mapped elsewhere, and lives until the last handle and mapping are gone. */
static const char *remap(void)
{
	CUdeviceptr p, q;
	CUmemGenericAllocationHandle h, held;
	unsigned in = 0, out = 77;
	OK(mapped(&p, &h, PAGE));
	OK(cu.cuMemcpyHtoD_v2(p + 64, &out, 4));
	OK(cu.cuMemRelease(h));
	OK(cu.cuMemRetainAllocationHandle(&held, (void *)(uintptr_t)(p + 64)));
	OK(cu.cuCtxSynchronize()); /* the copy has returned before it has written */
	OK(cu.cuMemUnmap(p, PAGE));
	OK(cu.cuMemAddressFree(p, PAGE));
	OK(cu.cuMemAddressReserve(&q, 2 * PAGE, 0, 0, 0));
	OK(cu.cuMemMap(q + PAGE, PAGE, 0, held, 0));
	OK(cu.cuMemSetAccess(q + PAGE, PAGE, &read_write, 1));
	OK(cu.cuMemcpyDtoH_v2(&in, q + PAGE + 64, 4));
	CHECK(in == 77);
	OK(cu.cuMemUnmap(q + PAGE, PAGE));
	OK(cu.cuMemRelease(held));
	OK(cu.cuMemAddressFree(q, 2 * PAGE));
	return NULL;
}

static const char *free_mapped(void)
{
	CUdeviceptr p;
	CUmemGenericAllocationHandle h;
	OK(mapped(&p, &h, PAGE));
	CHECK(cu.cuMemAddressFree(p, PAGE) != CUDA_SUCCESS);
	OK(gone(p, h, PAGE));
	return NULL;
}

static const char *unmap_part(void)
{
	CUdeviceptr p;
	CUmemGenericAllocationHandle h;
	OK(mapped(&p, &h, 2 * PAGE));
	CHECK(cu.cuMemUnmap(p, PAGE) != CUDA_SUCCESS);
	OK(gone(p, h, 2 * PAGE));
	return NULL;
}

static const char *not_freeable(void)
{
	CUdeviceptr p;
	CUmemGenericAllocationHandle h;
	OK(mapped(&p, &h, PAGE));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMemFree_v2(p));
	OK(gone(p, h, PAGE));
	return NULL;
}

/* Two chunks of one range: a kernel and a copy cross the boundary, and a query names the chunk. */
static const char *neighbours(void)
{
	CUdeviceptr p, base = 0;
	CUmemGenericAllocationHandle h[2];
	size_t size = 0;
	float got[4] = {0};
	OK(cu.cuMemAddressReserve(&p, 2 * PAGE, 0, 0, 0));
	for (int i = 0; i < 2; i++) {
		OK(cu.cuMemCreate(&h[i], PAGE, &on_device, 0));
		OK(cu.cuMemMap(p + i * PAGE, PAGE, 0, h[i], 0));
	}
	OK(cu.cuMemSetAccess(p, 2 * PAGE, &read_write, 1));
	OK(cu.cuMemsetD32_v2(p + PAGE - 8, 0, 4));
	OK(add(NULL, p + PAGE - 8, 4, 2.5f));
	OK(cu.cuMemcpyDtoH_v2(got, p + PAGE - 8, sizeof(got)));
	CHECK(got[0] == 2.5f && got[3] == 2.5f);
	OK(cu.cuMemGetAddressRange_v2(&base, &size, p + PAGE + 8));
	CHECK(base == p + PAGE && size == PAGE);
	OK(cu.cuMemUnmap(p, 2 * PAGE));
	for (int i = 0; i < 2; i++)
		OK(cu.cuMemRelease(h[i]));
	OK(cu.cuMemAddressFree(p, 2 * PAGE));
	return NULL;
}

static const char *info(void)
{
	CUmemGenericAllocationHandle h;
	size_t before, after, total;
	OK(cu.cuMemGetInfo_v2(&before, &total));
	OK(cu.cuMemCreate(&h, 128 * PAGE, &on_device, 0));
	OK(cu.cuMemGetInfo_v2(&after, &total));
	OK(cu.cuMemRelease(h));
	CHECK(before - after >= 128 * PAGE);
	WANT(CUDA_ERROR_OUT_OF_MEMORY, cu.cuMemCreate(&h, (total / PAGE + 1) * PAGE, &on_device, 0));
	return NULL;
}

static const char *kernel_after_unmap(void)
{
	CUdeviceptr p;
	CUmemGenericAllocationHandle h;
	OK(mapped(&p, &h, PAGE));
	OK(cu.cuMemUnmap(p, PAGE));
	OK(add(NULL, p, 4, 1));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
	return NULL;
}

static const char *kernel_without_access(void)
{
	CUdeviceptr p;
	CUmemGenericAllocationHandle h;
	OK(mapped(&p, &h, PAGE));
	OK(cu.cuMemSetAccess(p, PAGE, &none, 1));
	OK(add(NULL, p, 4, 1));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
	return NULL;
}

static const struct conformance_case cases[] = {
	{"vmm/granularity", "cuMemGetAllocationGranularity: minimum and recommended", granularity, SHARED},
	{"vmm/round_trip", "cuMemCreate, cuMemMap, cuMemSetAccess: memory like any other", round_trip, SHARED},
	{"vmm/hint", "cuMemAddressReserve: addr is a hint", hint, SHARED},
	{"vmm/reserve_bad", "cuMemAddressReserve: INVALID_VALUE for size 0, odd alignments, flags", reserve_bad, SHARED},
	{"vmm/create_bad", "cuMemCreate: INVALID_VALUE for sizes that are no multiple of the granularity", create_bad, SHARED},
	{"vmm/map_twice", "cuMemMap: the range must not be mapped", map_twice, SHARED},
	{"vmm/no_access", "cuMemMap: no access before cuMemSetAccess", no_access, ALONE},
	{"vmm/access_flags", "cuMemSetAccess, cuMemGetAccess", access_flags, SHARED},
	{"vmm/remap", "cuMemRelease, cuMemRetainAllocationHandle: memory lives until its last handle and mapping are gone", remap, SHARED},
	{"vmm/free_mapped", "cuMemAddressFree: not while something is mapped", free_mapped, SHARED},
	{"vmm/unmap_part", "cuMemUnmap: whole mappings only", unmap_part, SHARED},
	{"vmm/not_freeable", "cuMemFree: INVALID_VALUE for mapped memory", not_freeable, SHARED},
	{"vmm/neighbours", "cuMemMap: neighbouring mappings are one range; cuMemGetAddressRange names one", neighbours, SHARED},
	{"vmm/info", "cuMemCreate: takes free memory; OUT_OF_MEMORY", info, SHARED},
	{"vmm/unmapped_kernel", "CUDA_ERROR_ILLEGAL_ADDRESS: access to an unmapped range", kernel_after_unmap, ALONE},
	{"vmm/kernel_no_access", "CUDA_ERROR_ILLEGAL_ADDRESS: access to a range without access", kernel_without_access, ALONE},
};
GROUP(vmm_cases, cases);
