/*
 * driver.c: finds the driver's entry points, in the way of a statically linked CUDA runtime: dlopen libcuda, dlsym
 * cuGetProcAddress_v2, everything else through that.
 *
 * Fails with CUDA_ERROR_NOT_INITIALIZED if libcuda or an entry point is missing; a later call tries again.
 */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "vblas.h"

#define API_VERSION 12000

static struct vblas_driver driver;
static int resolved;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local char last_error[160] = "no error";

CUresult vblas_fail(const char *call, CUresult r)
{
	if (r != CUDA_SUCCESS)
		snprintf(last_error, sizeof last_error, "%s: CUDA error %d", call, (int)r);
	return r;
}

const char *vblasLastError(void)
{
	return last_error;
}

static int resolve(struct vblas_driver *d)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib) {
		snprintf(last_error, sizeof last_error, "dlopen libcuda.so.1: %s", dlerror());
		return -1;
	}
	__typeof__(cuGetProcAddress_v2) *get = (__typeof__(get))dlsym(lib, "cuGetProcAddress_v2");
	if (!get) {
		snprintf(last_error, sizeof last_error, "libcuda.so.1 has no cuGetProcAddress_v2 (a driver older than CUDA 12?)");
		return -1;
	}
	CUdriverProcAddressQueryResult found;
#define RESOLVE(field, name, symbol)                                                           \
	if (get(name, (void **)&d->field, API_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, &found) != CUDA_SUCCESS || !d->field) { \
		snprintf(last_error, sizeof last_error, "the driver has no %s", name);                 \
		return -1;                                                                             \
	}
	DRIVER_CALLS(RESOLVE)
#undef RESOLVE
	return 0;
}

const struct vblas_driver *vblas_driver(void)
{
	/* The loader's lock may be held by a thread that waits for ours, so ours is not held while resolving. */
	struct vblas_driver d;
	pthread_mutex_lock(&lock);
	int done = resolved;
	pthread_mutex_unlock(&lock);
	if (done)
		return &driver;
	if (resolve(&d))
		return NULL;
	pthread_mutex_lock(&lock);
	if (!resolved)
		driver = d;
	resolved = 1;
	pthread_mutex_unlock(&lock);
	return &driver;
}
