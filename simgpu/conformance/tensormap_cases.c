/* tensormap_cases.c: tensor maps and clusters as arguments only. No case tests their use by kernels. */
#include "conformance.h"

#include <string.h>

/* A map of words; row is how many of them a row of the box has. */
static CUresult encode_rows(CUtensorMap *map, CUdeviceptr at, uint32_t rank, uint32_t row)
{
	static const uint64_t dim[] = {64, 4}, strides[] = {256};
	static const uint32_t steps[] = {1, 1};
	const uint32_t box[] = {row, 2};
	return cu.cuTensorMapEncodeTiled(map, 2, rank, (void *)(uintptr_t)at, dim, strides, box, steps, 0, 0, 0, 0);
}

static CUresult encode(CUtensorMap *map, CUdeviceptr at, uint32_t rank) { return encode_rows(map, at, rank, 16); }

static const char *replace_address(void)
{
	CUdeviceptr p, q;
	CUtensorMap a, b;
	OK(cu.cuMemAlloc_v2(&p, 4096));
	OK(cu.cuMemAlloc_v2(&q, 4096));
	OK(encode(&a, p, 2));
	OK(encode(&b, q, 2));
	CHECK(memcmp(&a, &b, sizeof a) != 0);
	OK(cu.cuTensorMapReplaceAddress(&a, (void *)(uintptr_t)q));
	CHECK(memcmp(&a, &b, sizeof a) == 0);
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuMemFree_v2(q));
	return NULL;
}

static const char *bad_arguments(void)
{
	CUdeviceptr p;
	CUtensorMap a;
	OK(cu.cuMemAlloc_v2(&p, 4096));
	WANT(CUDA_ERROR_INVALID_VALUE, encode(&a, p, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, encode(&a, p, 6));
	WANT(CUDA_ERROR_INVALID_VALUE, encode(&a, p + 4, 2));
	WANT(CUDA_ERROR_INVALID_VALUE, encode(NULL, p, 2));
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *rows_of_a_box(void)
{
	CUdeviceptr p;
	CUtensorMap a;
	OK(cu.cuMemAlloc_v2(&p, 4096));
	OK(encode_rows(&a, p, 2, 4));
	WANT(CUDA_ERROR_INVALID_VALUE, encode_rows(&a, p, 2, 1));
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

struct encoding { CUdeviceptr at; CUresult result; };

static void encode_elsewhere(void *arg)
{
	struct encoding *e = arg;
	CUtensorMap a;
	e->result = encode(&a, e->at, 2);
}

/* The documentation does not say that it needs a context: driver 580.159 does. */
static const char *no_context(void)
{
	struct encoding e;
	OK(cu.cuMemAlloc_v2(&e.at, 4096));
	on_thread(encode_elsewhere, &e);
	OK(cu.cuMemFree_v2(e.at));
	WANT(CUDA_ERROR_INVALID_CONTEXT, e.result);
	return NULL;
}

static const char *cluster(void)
{
	CUdeviceptr p;
	float value = 1;
	unsigned n = 64;
	void *params[] = {&p, &n, &value};
	CUlaunchAttribute attr = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}};
	CUlaunchConfig config = {.gridDimX = 4, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 16, .blockDimY = 1, .blockDimZ = 1,
		.attrs = &attr, .numAttrs = 1};
	int major = 0;
	OK(cu.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	if (major < 9)
		return NULL;
	OK(cu.cuMemAlloc_v2(&p, 4 * n));
	OK(cu.cuMemsetD32_v2(p, 0, n));
	OK(cu.cuLaunchKernelEx(&config, add_kernel, params, NULL));
	OK(cu.cuCtxSynchronize());
	config.gridDimX = 3;
	CHECK(cu.cuLaunchKernelEx(&config, add_kernel, params, NULL) != CUDA_SUCCESS);
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const struct conformance_case cases[] = {
	{"tensormap/replace_address", "cuTensorMapReplaceAddress: the map is as if encoded over the new address", replace_address, SHARED},
	{"tensormap/bad_arguments", "cuTensorMapEncodeTiled: INVALID_VALUE for bad ranks and alignments", bad_arguments, SHARED},
	{"tensormap/rows", "cuTensorMapEncodeTiled: the rows of a box are multiples of 16 bytes", rows_of_a_box, SHARED},
	{"tensormap/no_context", "cuTensorMapEncodeTiled: INVALID_CONTEXT on a thread without a context", no_context, SHARED},
	{"launch/cluster", "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: the grid is a multiple of the cluster", cluster, SHARED},
};
GROUP(tensormap_cases, cases);
