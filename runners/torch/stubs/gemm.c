/*
 * gemm.c: matrix products as kernels that do nothing.
 *
 * In: shapes and addresses. Out: one kernel launch through the driver, by name and with real pointers, so that stream
 * capture, recording and restoring treat it like any vendor kernel. Which of the kernels depends on the shape, as it does
 * in a library that has tuned ones; a narrow product takes the one that splits K and uses the workspace.
 * Fails: NOT_INITIALIZED without driver or context, EXECUTION_FAILED where the driver refuses the launch.
 */
#define CUDA_EXACT_SYMBOLS
#include "cuda.h"
#include "gemm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

/* The images lie in this shared object, where a recorder can name them by its build-id and their offset. */
#define KERNEL(name, params) ".visible .entry " name "(" params ")\n{\n\tret;\n}\n"
#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define POINTERS ".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 bias"
#define SHAPE ".param .u32 m, .param .u32 n, .param .u32 k, .param .u64 batch"

static const char tiles_ptx[] = HEAD
	KERNEL("medusa_gemm_128x128_f64", POINTERS ", " SHAPE)
	KERNEL("medusa_gemm_128x128_f32", POINTERS ", " SHAPE)
	KERNEL("medusa_gemm_128x128_f16", POINTERS ", " SHAPE)
	KERNEL("medusa_gemm_128x128_bf16", POINTERS ", " SHAPE)
	KERNEL("medusa_gemm_64x64_f64", POINTERS ", " SHAPE)
	KERNEL("medusa_gemm_64x64_f32", POINTERS ", " SHAPE)
	KERNEL("medusa_gemm_64x64_f16", POINTERS ", " SHAPE)
	KERNEL("medusa_gemm_64x64_bf16", POINTERS ", " SHAPE);
static const char splitk_ptx[] = HEAD
	KERNEL("medusa_gemm_splitk_f64", POINTERS ", " SHAPE ", .param .u64 workspace, .param .u64 semaphores")
	KERNEL("medusa_gemm_splitk_f32", POINTERS ", " SHAPE ", .param .u64 workspace, .param .u64 semaphores")
	KERNEL("medusa_gemm_splitk_f16", POINTERS ", " SHAPE ", .param .u64 workspace, .param .u64 semaphores")
	KERNEL("medusa_gemm_splitk_bf16", POINTERS ", " SHAPE ", .param .u64 workspace, .param .u64 semaphores");

enum { SEMAPHORE_BYTES = 4096 };

static struct {
	__typeof__(&cuCtxGetCurrent) cuCtxGetCurrent;
	__typeof__(&cuLibraryLoadData) cuLibraryLoadData;
	__typeof__(&cuLibraryGetKernel) cuLibraryGetKernel;
	__typeof__(&cuKernelGetFunction) cuKernelGetFunction;
	__typeof__(&cuLaunchKernel) cuLaunchKernel;
} driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int found = BLAS_NOT_INITIALIZED;

static void find(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	__typeof__(&cuGetProcAddress_v2) get = NULL;
	if (lib)
		*(void **)&get = dlsym(lib, "cuGetProcAddress_v2");
	if (!get)
		return;
	CUdriverProcAddressQueryResult status;
	int bad = 0;
#define GET(name, version) bad |= get(#name, (void **)&driver.name, version, 0, &status) || !driver.name
	GET(cuCtxGetCurrent, 4000);
	GET(cuLibraryLoadData, 12000);
	GET(cuLibraryGetKernel, 12000);
	GET(cuKernelGetFunction, 12000);
	GET(cuLaunchKernel, 4000);
#undef GET
	found = bad ? BLAS_NOT_INITIALIZED : BLAS_SUCCESS;
}

int gemm_ready(void)
{
	pthread_once(&once, find);
	CUcontext ctx = NULL;
	return found || driver.cuCtxGetCurrent(&ctx) || !ctx ? BLAS_NOT_INITIALIZED : BLAS_SUCCESS;
}

/* Modules load at the first kernel that needs them, as a large library's do. */
static CUresult function(const char *image, CUlibrary *lib, const char *name, CUfunction *f)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	CUkernel kernel;
	pthread_mutex_lock(&lock);
	CUresult r = *lib ? CUDA_SUCCESS : driver.cuLibraryLoadData(lib, image, NULL, NULL, 0, NULL, NULL, 0);
	pthread_mutex_unlock(&lock);
	if (r || (r = driver.cuLibraryGetKernel(&kernel, *lib, name)))
		return r;
	return driver.cuKernelGetFunction(f, kernel);
}

static const char *element_name(int type)
{
	enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
	return type == R_32F ? "f32" : type == R_64F ? "f64" : type == R_16F ? "f16" : type == R_16BF ? "bf16" : NULL;
}

int gemm_launch(const struct product *p)
{
	static CUlibrary tiles, splitk;
	const char *type = element_name(p->element);
	if (!type || p->batch > 65535) {
		fprintf(stderr, "stub: a product of element type %d, %lld times, is not provided\n", p->element, (long long)p->batch);
		return BLAS_NOT_SUPPORTED;
	}
	if (!p->m || !p->n || !p->batch)
		return BLAS_SUCCESS;
	int narrow = p->n <= 4 && p->batch == 1 && p->workspace_bytes > SEMAPHORE_BYTES;
	int tile = p->n > 64 ? 128 : 64;
	char name[64];
	if (narrow)
		snprintf(name, sizeof(name), "medusa_gemm_splitk_%s", type);
	else
		snprintf(name, sizeof(name), "medusa_gemm_%dx%d_%s", tile, tile, type);
	CUfunction f;
	CUresult r = narrow ? function(splitk_ptx, &splitk, name, &f) : function(tiles_ptx, &tiles, name, &f);
	uint64_t a = p->a, b = p->b, c = p->c, d = p->d, bias = p->bias, batch = (uint64_t)p->batch;
	uint64_t semaphores = p->workspace, workspace = p->workspace + SEMAPHORE_BYTES;
	uint32_t m = (uint32_t)p->m, n = (uint32_t)p->n, k = (uint32_t)p->k;
	void *params[] = {&a, &b, &c, &d, &bias, &m, &n, &k, &batch, &workspace, &semaphores};
	uint32_t columns = narrow ? 4 : (n + (uint32_t)tile - 1) / (uint32_t)tile;
	if (!r)
		r = driver.cuLaunchKernel(f, (m + (uint32_t)tile - 1) / (uint32_t)tile, columns, (uint32_t)p->batch, 128, 1, 1, 0,
		                          p->stream, params, NULL);
	if (r)
		fprintf(stderr, "stub: launch %s: driver error %d\n", name, (int)r);
	return r ? BLAS_EXECUTION_FAILED : BLAS_SUCCESS;
}
