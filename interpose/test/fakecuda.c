/*
 * fakecuda.c: a libcuda.so.1 with about thirty functions, for the tests of the ways to the driver.
 *
 * It implements cuda.h for one device, one context and host memory. It exists beside the simulated GPU because those tests need
 * addresses that never change, refusals on demand, and rare calls. Memory comes from one fixed range by a cursor, small pieces at
 * steps of 512 bytes within pages of 2 MiB, and is never handed out twice. FAKE_LOG names a file that gets one line per call, so
 * that a test can distinguish a call that passed through from one that was lost.
 */
#define CUDA_EXACT_SYMBOLS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
static CUdeviceptr refused;

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

#define PAGE ((uintptr_t)2 << 20)
#define RANGE ((size_t)64 << 30)

static uintptr_t take(uintptr_t *cursor, size_t size, uintptr_t step)
{
	uintptr_t at = (*cursor + step - 1) / step * step;
	*cursor = at + size;
	return at;
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	static uintptr_t pages, small, small_end;
	called(__func__);
	if (!pages) {
		void *want = (void *)(uintptr_t)0x200000000000;
		if (mmap(want, RANGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != want)
			return CUDA_ERROR_OUT_OF_MEMORY;
		pages = (uintptr_t)want;
	}
	if (bytes >= PAGE) {
		*ptr = take(&pages, bytes, PAGE);
		return CUDA_SUCCESS;
	}
	if (small + bytes + 512 > small_end) {
		small = take(&pages, PAGE, PAGE);
		small_end = small + PAGE;
	}
	*ptr = take(&small, bytes, 512);
	refused = bytes == 13 ? *ptr : refused;
	return CUDA_SUCCESS;
}

/* The first ABI with the same base name: a lookup by name alone would wrap the wrong function. */
CUresult cuMemAlloc(unsigned int *ptr, unsigned int bytes)
{
	called(__func__);
	*ptr = 0;
	return bytes ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	called(__func__);
	return ptr == refused ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, uint64_t flags)
{
	static uintptr_t cursor = 0x300000000000;
	*ptr = take(&cursor, size, PAGE);
	return alignment || addr || flags ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, uint64_t flags)
{
	return ptr && size && !offset && handle && !flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) { return ptr && size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	*ptr = 0x400000000000 + (unsigned char)handle.reserved[0];
	return flags == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	return cuIpcOpenMemHandle_v2(ptr, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr) { return ptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	*base = ptr;
	*size = 12345;
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	current = current == ctx ? NULL : current;
	return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	static uintptr_t handles = 0x1000;
	*module = (CUmodule)(handles += 16);
	return image ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) { return cuModuleLoadData(module, image); }
CUresult cuModuleLoad(CUmodule *module, const char *path) { return cuModuleLoadData(module, path); }

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values, unsigned int n_jit,
			   CUlibraryOption *options, void **values, unsigned int n)
{
	if (jit || jit_values || n_jit || options || values || n)
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuModuleLoadData((CUmodule *)library, code);
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
