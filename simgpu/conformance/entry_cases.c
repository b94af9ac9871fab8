/*
 * entry_cases.c: initialisation, entry points, errors, the device.
 */
#include "conformance.h"

#include <string.h>

static const char *init_flags(void)
{
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuInit(1));
	return NULL;
}

static const char *before_init(void)
{
	int n;
	CUdeviceptr p;
	WANT(CUDA_ERROR_NOT_INITIALIZED, cu.cuDeviceGetCount(&n));
	WANT(CUDA_ERROR_NOT_INITIALIZED, cu.cuMemAlloc_v2(&p, 64));
	return NULL;
}

static const char *version_before_init(void)
{
	int v = 0;
	OK(cu.cuDriverGetVersion(&v));
	CHECK(v >= 12000);
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuDriverGetVersion(NULL));
	return NULL;
}

static const char *proc_address_before_init(void)
{
	void *fn = NULL;
	CUdriverProcAddressQueryResult st;
	OK(cu.cuGetProcAddress_v2("cuInit", &fn, 12000, 0, &st));
	CHECK(fn != NULL && st == CU_GET_PROC_ADDRESS_SUCCESS);
	return NULL;
}

static const char *error_names(void)
{
	const char *s = NULL;
	OK(cu.cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &s));
	CHECK(strcmp(s, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
	OK(cu.cuGetErrorName(CUDA_SUCCESS, &s));
	CHECK(strcmp(s, "CUDA_SUCCESS") == 0);
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGetErrorName((CUresult)12345, &s));
	CHECK(s == NULL);
	return NULL;
}

static const char *error_strings(void)
{
	const char *s = NULL;
	OK(cu.cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &s));
	CHECK(s && *s);
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGetErrorString((CUresult)12345, &s));
	CHECK(s == NULL);
	return NULL;
}

static const char *proc_newest_abi(void)
{
	void *fn = NULL;
	CUdriverProcAddressQueryResult st;
	OK(cu.cuGetProcAddress_v2("cuMemAlloc", &fn, 12000, 0, &st));
	CHECK(fn == (void *)cu.cuMemAlloc_v2);
	OK(cu.cuGetProcAddress_v2("cuCtxCreate", &fn, 4000, 0, &st));
	CHECK(fn == (void *)cu.cuCtxCreate_v2);
	return NULL;
}

static const char *proc_version_picks_abi(void)
{
	void *fn = NULL;
	CUdriverProcAddressQueryResult st;
	OK(cu.cuGetProcAddress_v2("cuGraphGetEdges", &fn, 12000, 0, &st));
	CHECK(fn == (void *)cu.cuGraphGetEdges);
	OK(cu.cuGetProcAddress_v2("cuGraphGetEdges", &fn, 12030, 0, &st));
	CHECK(fn == (void *)cu.cuGraphGetEdges_v2);
	OK(cu.cuGetProcAddress_v2("cuStreamGetCaptureInfo", &fn, 11030, 0, &st));
	CHECK(fn == (void *)cu.cuStreamGetCaptureInfo_v2);
	return NULL;
}

static const char *proc_version_too_old(void)
{
	void *fn = (void *)1;
	CUdriverProcAddressQueryResult st = CU_GET_PROC_ADDRESS_SUCCESS;
	OK(cu.cuGetProcAddress_v2("cuLibraryLoadData", &fn, 11000, 0, &st));
	CHECK(fn == NULL);
	CHECK(st == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	return NULL;
}

static const char *proc_unknown(void)
{
	void *fn = (void *)1;
	CUdriverProcAddressQueryResult st = CU_GET_PROC_ADDRESS_SUCCESS;
	OK(cu.cuGetProcAddress_v2("cuThereIsNoSuchFunction", &fn, 12000, 0, &st));
	CHECK(fn == NULL);
	CHECK(st == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	return NULL;
}

static const char *proc_per_thread(void)
{
	void *fn = NULL;
	CUdriverProcAddressQueryResult st;
	OK(cu.cuGetProcAddress_v2("cuLaunchKernel", &fn, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &st));
	CHECK(fn == (void *)cu.cuLaunchKernel_ptsz);
	OK(cu.cuGetProcAddress_v2("cuLaunchKernel", &fn, 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &st));
	CHECK(fn == (void *)cu.cuLaunchKernel);
	OK(cu.cuGetProcAddress_v2("cuMemAlloc", &fn, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &st));
	CHECK(fn == (void *)cu.cuMemAlloc_v2);
	return NULL;
}

static const char *device_ordinal(void)
{
	int n = 0;
	CUdevice d;
	OK(cu.cuDeviceGetCount(&n));
	CHECK(n >= 1);
	WANT(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceGet(&d, n));
	WANT(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceGet(&d, -1));
	return NULL;
}

static const char *device_limits(void)
{
	int v = 0;
	OK(cu.cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
	CHECK(v == 32);
	OK(cu.cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
	CHECK(v == 1024);
	OK(cu.cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0));
	CHECK(v == 0x7fffffff);
	OK(cu.cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 0));
	CHECK(v == 65535);
	OK(cu.cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	CHECK(v >= 8);
	OK(cu.cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0));
	CHECK(v == 1);
	return NULL;
}

static const char *device_bad_attribute(void)
{
	int v;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuDeviceGetAttribute(&v, (CUdevice_attribute)100000, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
	return NULL;
}

static const char *device_identity(void)
{
	char name[64] = "", cut[4] = "";
	CUuuid a, b;
	OK(cu.cuDeviceGetName(name, sizeof(name), 0));
	CHECK(strlen(name) > 3);
	OK(cu.cuDeviceGetName(cut, sizeof(cut), 0));
	CHECK(cut[3] == 0 && strncmp(cut, name, 3) == 0);
	OK(cu.cuDeviceGetUuid(&a, 0));
	OK(cu.cuDeviceGetUuid_v2(&b, 0));
	CHECK(memcmp(&a, &b, sizeof(a)) == 0);
	return NULL;
}

static const char *device_memory(void)
{
	size_t total = 0, free = 0, info = 0;
	OK(cu.cuDeviceTotalMem_v2(&total, 0));
	OK(cu.cuMemGetInfo_v2(&free, &info));
	CHECK(free <= info && info <= total);
	return NULL;
}

static const char *device_peers(void)
{
	int n = 0, can = -1;
	OK(cu.cuDeviceGetCount(&n));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuDeviceCanAccessPeer(NULL, 0, 0));
	WANT(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceCanAccessPeer(&can, n, 0));
	WANT(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceCanAccessPeer(&can, 0, n));
	for (int d = 0; d < n; d++)
		for (int peer = 0; peer < n; peer++) {
			int back = -1;
			OK(cu.cuDeviceCanAccessPeer(&can, d, peer));
			OK(cu.cuDeviceCanAccessPeer(&back, peer, d));
			CHECK((can == 0 || can == 1) && can == back && (d != peer || !can));
		}
	return NULL;
}

static const char *device_several(void)
{
	int n = 0;
	OK(cu.cuDeviceGetCount(&n));
	for (int d = 0; d < n; d++) {
		CUdevice device = -1;
		CUuuid own, other;
		OK(cu.cuDeviceGet(&device, d));
		CHECK(device == d);
		OK(cu.cuDeviceGetUuid(&own, d));
		for (int before = 0; before < d; before++) {
			OK(cu.cuDeviceGetUuid(&other, before));
			CHECK(memcmp(&own, &other, sizeof(own)));
		}
	}
	return NULL;
}

static const struct conformance_case cases[] = {
	{"init/flags", "cuInit: the flags must be 0", init_flags, SHARED},
	{"init/not_initialized", "cuInit: functions fail with NOT_INITIALIZED before it", before_init, BEFORE_INIT},
	{"init/version", "cuDriverGetVersion: answers 1000*major + 10*minor, INVALID_VALUE for NULL", version_before_init, BEFORE_INIT},
	{"entry/before_init", "cuGetProcAddress: needs no cuInit", proc_address_before_init, BEFORE_INIT},
	{"error/names", "cuGetErrorName: INVALID_VALUE and NULL for an unknown error", error_names, SHARED},
	{"error/strings", "cuGetErrorString: INVALID_VALUE and NULL for an unknown error", error_strings, SHARED},
	{"entry/newest", "cuGetProcAddress: base name and version give the ABI-compatible variant", proc_newest_abi, SHARED},
	{"entry/version", "cuGetProcAddress: another version gives another variant", proc_version_picks_abi, SHARED},
	{"entry/too_old", "cuGetProcAddress: SUCCESS, NULL and VERSION_NOT_SUFFICIENT", proc_version_too_old, SHARED},
	{"entry/unknown", "cuGetProcAddress: SUCCESS, NULL and SYMBOL_NOT_FOUND", proc_unknown, SHARED},
	{"entry/per_thread", "cuGetProcAddress: PER_THREAD_DEFAULT_STREAM gives that variant if there is one", proc_per_thread, SHARED},
	{"device/ordinal", "cuDeviceGet: ordinals are 0 to count-1, else INVALID_DEVICE", device_ordinal, SHARED},
	{"device/limits", "cuDeviceGetAttribute; programming guide, technical specifications per compute capability", device_limits, SHARED},
	{"device/bad_attribute", "cuDeviceGetAttribute: INVALID_VALUE", device_bad_attribute, SHARED},
	{"device/identity", "cuDeviceGetName: cut to len with a NUL; cuDeviceGetUuid_v2: equal outside MIG", device_identity, SHARED},
	{"device/several", "cuDeviceGet, cuDeviceGetUuid: each device has an ordinal and an identity", device_several, SHARED},
	{"device/peers", "cuDeviceCanAccessPeer: 0 for the device itself; INVALID_VALUE for NULL, INVALID_DEVICE", device_peers, SHARED},
	{"device/memory", "cuDeviceTotalMem, cuMemGetInfo: free does not exceed total", device_memory, SHARED},
};
GROUP(entry_cases, cases);
