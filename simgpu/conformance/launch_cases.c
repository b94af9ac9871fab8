/*
 * launch_cases.c: kernel launches and their results.
 */
#include "conformance.h"

static CUresult shaped(CUfunction f, unsigned gx, unsigned gy, unsigned bx, unsigned by)
{
	CUdeviceptr buf = 0;
	unsigned n = 0;
	float v = 0;
	void *params[] = {&buf, &n, &v};
	return cu.cuLaunchKernel(f, gx, gy, 1, bx, by, 1, 0, NULL, params, NULL);
}

static const char *shapes(void)
{
	WANT(CUDA_ERROR_INVALID_VALUE, shaped(add_kernel, 0, 1, 32, 1));
	WANT(CUDA_ERROR_INVALID_VALUE, shaped(add_kernel, 1, 1, 0, 1));
	WANT(CUDA_ERROR_INVALID_VALUE, shaped(add_kernel, 1, 1, 1025, 1));
	WANT(CUDA_ERROR_INVALID_VALUE, shaped(add_kernel, 1, 1, 64, 32));
	WANT(CUDA_ERROR_INVALID_VALUE, shaped(add_kernel, 1, 65536, 1, 1));
	OK(shaped(add_kernel, 1, 1, 1024, 1));
	OK(cu.cuCtxSynchronize());
	return NULL;
}

/* It is not documented which of the two errors is returned. */
static const char *beyond_bound(void)
{
	CUresult r = shaped(bounded_kernel, 1, 1, 128, 1);
	CHECK(r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	OK(shaped(bounded_kernel, 1, 1, 64, 1));
	OK(cu.cuCtxSynchronize());
	return NULL;
}

static const char *computes(void)
{
	float v[300];
	CUdeviceptr p;
	for (int i = 0; i < 300; i++)
		v[i] = (float)i;
	OK(cu.cuMemAlloc_v2(&p, sizeof(v)));
	OK(cu.cuMemcpyHtoD_v2(p, v, sizeof(v)));
	OK(add(NULL, p, 299, 0.5f));
	OK(cu.cuMemcpyDtoH_v2(v, p, sizeof(v)));
	OK(cu.cuMemFree_v2(p));
	CHECK(v[0] == 0.5f && v[298] == 298.5f && v[299] == 299);
	return NULL;
}

static const char *params_copied(void)
{
	CUdeviceptr p;
	unsigned n = 1;
	float by = 4, v = 0;
	void *params[] = {&p, &n, &by};
	OK(cu.cuMemAlloc_v2(&p, 4));
	OK(cu.cuMemsetD32_v2(p, 0, 1));
	OK(cu.cuLaunchKernel(add_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	by = 100;
	n = 1 << 30;
	OK(cu.cuMemcpyDtoH_v2(&v, p, 4));
	OK(cu.cuMemFree_v2(p));
	CHECK(v == 4);
	return NULL;
}

static const char *extra(void)
{
	struct { CUdeviceptr p; unsigned n; float by; } args = {0, 1, 6};
	size_t size = sizeof(args);
	void *list[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
	float v = 0;
	OK(cu.cuMemAlloc_v2(&args.p, 4));
	OK(cu.cuMemsetD32_v2(args.p, 0, 1));
	OK(cu.cuLaunchKernel(add_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, list));
	OK(cu.cuMemcpyDtoH_v2(&v, args.p, 4));
	OK(cu.cuMemFree_v2(args.p));
	CHECK(v == 6);
	return NULL;
}

static const char *both_forms(void)
{
	struct { CUdeviceptr p; unsigned n; float by; } args = {0, 0, 0};
	size_t size = sizeof(args);
	void *list[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
	void *params[] = {&args.p, &args.n, &args.by};
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernel(add_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, list));
	return NULL;
}

static const char *config(void)
{
	CUdeviceptr p;
	unsigned n = 1;
	float by = 2, v = 0;
	void *params[] = {&p, &n, &by};
	CUlaunchAttribute attr = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
	CUlaunchConfig cfg = {1, 1, 1, 32, 1, 1, 0, NULL, &attr, 1};
	OK(cu.cuMemAlloc_v2(&p, 4));
	OK(cu.cuMemsetD32_v2(p, 0, 1));
	OK(cu.cuLaunchKernelEx(&cfg, add_kernel, params, NULL));
	OK(cu.cuMemcpyDtoH_v2(&v, p, 4));
	OK(cu.cuMemFree_v2(p));
	CHECK(v == 2);
	return NULL;
}

static const char *cooperative_too_large(void)
{
	CUdeviceptr p = 0;
	unsigned n = 0;
	float by = 0;
	void *params[] = {&p, &n, &by};
	WANT(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
	     cu.cuLaunchCooperativeKernel(add_kernel, 1 << 20, 1, 1, 1024, 1, 1, 0, NULL, params));
	return NULL;
}

static const char *illegal_address(void)
{
	CUdeviceptr p, q;
	OK(cu.cuMemAlloc_v2(&p, 64));
	OK(add(NULL, 0x10000, 32, 1)); /* the launch succeeds; the error is reported later */
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuCtxSynchronize());
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemAlloc_v2(&q, 64));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cu.cuMemFree_v2(p));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, add(NULL, p, 1, 1));
	int n = 0;
	OK(cu.cuDeviceGetCount(&n)); /* no context, no error */
	return NULL;
}

static const struct conformance_case cases[] = {
	{"launch/shapes", "cuLaunchKernel: INVALID_VALUE for empty or too large grids and blocks", shapes, SHARED},
	{"launch/bound", "PTX .maxntid: the launch fails beyond it", beyond_bound, SHARED},
	{"launch/computes", "cuLaunchKernel; memory is seen by a later copy of the same stream", computes, SHARED},
	{"launch/params_copied", "cuLaunchKernel: parameters are copied at the call", params_copied, SHARED},
	{"launch/extra", "cuLaunchKernel: parameters packed in a buffer", extra, SHARED},
	{"launch/both_forms", "cuLaunchKernel: INVALID_VALUE for kernelParams together with extra", both_forms, SHARED},
	{"launch/config", "cuLaunchKernelEx: attributes", config, SHARED},
	{"launch/cooperative", "cuLaunchCooperativeKernel: COOPERATIVE_LAUNCH_TOO_LARGE", cooperative_too_large, SHARED},
	{"launch/illegal_address", "CUDA_ERROR_ILLEGAL_ADDRESS: the process is left in an inconsistent state, further work returns it", illegal_address, ALONE},
};
GROUP(launch_cases, cases);
