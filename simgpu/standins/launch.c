/*
 * launch.c: see launch.h.
 *
 * The driver is reached like in a library with a static runtime: by dlopen and cuGetProcAddress, so that a recorder that hooks
 * these sees everything.
 */
#include "launch.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static struct {
	__typeof__(&cuCtxGetCurrent) cuCtxGetCurrent;
	__typeof__(&cuLibraryLoadData) cuLibraryLoadData;
	__typeof__(&cuLibraryGetKernel) cuLibraryGetKernel;
	__typeof__(&cuKernelGetFunction) cuKernelGetFunction;
	__typeof__(&cuLaunchKernel) cuLaunchKernel;
	__typeof__(&cuMemsetD8Async) cuMemsetD8Async;
	__typeof__(&cuThreadExchangeStreamCaptureMode) cuThreadExchangeStreamCaptureMode;
	__typeof__(&cuStreamGetCaptureInfo_v2) cuStreamGetCaptureInfo;
} driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CUresult found = CUDA_ERROR_NOT_INITIALIZED;

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
	GET(cuMemsetD8Async, 3020);
	GET(cuThreadExchangeStreamCaptureMode, 10010);
	GET(cuStreamGetCaptureInfo, 11030);
#undef GET
	found = bad ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

CUresult launch_ready(void)
{
	pthread_once(&once, find);
	CUcontext ctx = NULL;
	return found || driver.cuCtxGetCurrent(&ctx) || !ctx ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

/* The first call may be inside a capture, which forbids loads unless the thread's mode is relaxed. */
static CUresult load(struct image *image)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult r = driver.cuThreadExchangeStreamCaptureMode(&mode);
	if (r)
		return r;
	r = driver.cuLibraryLoadData(&image->library, image->text, NULL, NULL, 0, NULL, NULL, 0);
	CUresult back = driver.cuThreadExchangeStreamCaptureMode(&mode);
	return r ? r : back;
}

static CUresult function(struct image *image, const char *name, CUfunction *f)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	CUkernel kernel;
	pthread_mutex_lock(&lock);
	CUresult r = image->library ? CUDA_SUCCESS : load(image);
	pthread_mutex_unlock(&lock);
	if (r || (r = driver.cuLibraryGetKernel(&kernel, image->library, name)))
		return r;
	return driver.cuKernelGetFunction(f, kernel);
}

CUresult launch_kernel(struct image *image, const char *name, const uint32_t grid[3], uint32_t threads, void *stream, void **params)
{
	CUfunction f;
	CUresult r = function(image, name, &f);
	if (!r)
		r = driver.cuLaunchKernel(f, grid[0], grid[1], grid[2], threads, 1, 1, 0, stream, params, NULL);
	if (r)
		fprintf(stderr, "stub: launch %s: driver error %d\n", name, (int)r);
	return r;
}

CUresult launch_capture(void *stream, uint64_t *number)
{
	CUstreamCaptureStatus status;
	CUresult r = driver.cuStreamGetCaptureInfo(stream, &status, number, NULL, NULL, NULL);
	if (r || status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		*number = 0;
	return r;
}

CUresult launch_clear(uint64_t address, size_t bytes, void *stream)
{
	CUresult r = driver.cuMemsetD8Async(address, 0, bytes, stream);
	if (r)
		fprintf(stderr, "stub: clear %zu bytes: driver error %d\n", bytes, (int)r);
	return r;
}
