/*
 * fakecuda.c: a libcuda.so.1 of twenty functions, for the tests of how the driver is reached.
 *
 * It does what cuda.h says for one device, one context and host memory, and stands beside the simulated GPU because
 * those tests must also run where a call goes wrong on the way to the driver. FAKE_LOG names a file that gets one line
 * per call, so that a test can tell a call that passed through from one that was lost.
 */
#define CUDA_EXACT_SYMBOLS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

static void called(const char *name)
{
	const char *path = getenv("FAKE_LOG");
	FILE *f = path ? fopen(path, "a") : NULL;
	if (f) {
		fprintf(f, "%s\n", name);
		fclose(f);
	}
}

static CUcontext current;

CUresult cuInit(unsigned int flags)
{
	called(__func__);
	return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	*dev = ordinal;
	return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	snprintf(name, (size_t)len, "Fake %d", dev);
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	*bytes = (size_t)1 << 30;
	return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	*ctx = (CUcontext)&current;
	return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	current = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	*ctx = current;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *dev)
{
	*dev = 0;
	return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxSynchronize(void) { return CUDA_SUCCESS; }

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	called(__func__);
	*ptr = (CUdeviceptr)(uintptr_t)calloc(1, bytes);
	return *ptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The first ABI of the same base name: a wrapper found by name alone would be the wrong one. */
CUresult cuMemAlloc(unsigned int *ptr, unsigned int bytes)
{
	called(__func__);
	*ptr = 0;
	return bytes ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	called(__func__);
	if (ptr == 1)
		return CUDA_ERROR_INVALID_VALUE;
	free((void *)(uintptr_t)ptr);
	return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
	memcpy(dst, (const void *)(uintptr_t)src, bytes);
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, CUdriverProcAddressQueryResult *status)
{
	static const struct {
		const char *base;
		int version;
		void *fn;
	} table[] = {
		{"cuInit", 2000, (void *)cuInit},
		{"cuMemAlloc", 2000, (void *)cuMemAlloc},
		{"cuMemAlloc", 3020, (void *)cuMemAlloc_v2},
		{"cuMemFree", 3020, (void *)cuMemFree_v2},
		{"cuGetProcAddress", 11030, (void *)cuGetProcAddress},
		{"cuGetProcAddress", 12000, (void *)cuGetProcAddress_v2},
	};
	called(__func__);
	*fn = NULL;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (strcmp(table[i].base, symbol) == 0 && table[i].version <= version)
			*fn = table[i].fn;
	if (status)
		*status = *fn ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *fn && flags <= 2 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags)
{
	called(__func__);
	return cuGetProcAddress_v2(symbol, fn, version, flags, NULL);
}
