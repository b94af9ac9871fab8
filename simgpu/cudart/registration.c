/*
 * registration.c: fat binaries, the host functions that stand for their kernels, and the host variables for their globals.
 *
 * In: the registrations by nvcc's start-up code. Out: functions of the driver. Each fat binary is loaded as a library when its
 * first kernel is needed. Fails: INVALID_DEVICE_FUNCTION or INVALID_SYMBOL for a pointer that was never registered;
 * otherwise loading, with the driver's result.
 *
 * A library stays loaded when its shared object is unloaded, because the driver may be gone by then.
 */
#include "cudart.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct fatbin {
	const void *wrapper;
	CUlibrary library;
};

/* Several devices would need one function per context. This keeps one per kernel and device in use. */
struct stub {
	const void *host;
	const char *name;
	struct fatbin *fatbin;
	CUkernel kernel;
	CUfunction function;
	int device;
	bool variable;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stub *stubs; /* open addressing, by host */
static size_t count, capacity;

static size_t slot(const struct stub *table, size_t cap, const void *host)
{
	size_t i = ((uintptr_t)host * 0x9e3779b97f4a7c15u >> 20) & (cap - 1);
	while (table[i].host && table[i].host != host)
		i = (i + 1) & (cap - 1);
	return i;
}

static void add(const struct stub *s)
{
	if (2 * count >= capacity) {
		size_t cap = capacity ? 2 * capacity : 4096;
		struct stub *table = calloc(cap, sizeof(*table));
		if (!table)
			abort();
		for (size_t i = 0; i < capacity; i++)
			if (stubs[i].host)
				table[slot(table, cap, stubs[i].host)] = stubs[i];
		free(stubs);
		stubs = table;
		capacity = cap;
	}
	size_t i = slot(stubs, capacity, s->host);
	count += !stubs[i].host;
	stubs[i] = *s;
}

EXPORT void **__cudaRegisterFatBinary(void *wrapper)
{
	struct fatbin *f = calloc(1, sizeof(*f));
	if (!f)
		abort();
	f->wrapper = wrapper;
	return (void **)f;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

EXPORT void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

EXPORT char __cudaInitModule(void **handle)
{
	(void)handle;
	return 1;
}

EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device_fun, const char *name, int thread_limit,
                                   void *tid, void *bid, dim3 *block, dim3 *grid, int *warp_size)
{
	(void)device_fun, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp_size;
	struct stub s = {.host = host, .name = name, .fatbin = (struct fatbin *)handle};
	pthread_mutex_lock(&lock);
	add(&s);
	pthread_mutex_unlock(&lock);
}

EXPORT void __cudaRegisterVar(void **handle, char *host, char *device_address, const char *name, int ext, size_t size,
                              int constant, int global)
{
	(void)device_address, (void)ext, (void)size, (void)constant, (void)global;
	struct stub s = {.host = host, .name = name, .fatbin = (struct fatbin *)handle, .variable = true};
	pthread_mutex_lock(&lock);
	add(&s);
	pthread_mutex_unlock(&lock);
}

/* The first use of a kernel may be inside a capture, which forbids loads unless the thread's mode is relaxed. */
static CUresult load_library(struct fatbin *f)
{
	if (f->library)
		return CUDA_SUCCESS;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult r = driver.cuThreadExchangeStreamCaptureMode(&mode);
	if (r)
		return r;
	r = driver.cuLibraryLoadData(&f->library, f->wrapper, NULL, NULL, 0, NULL, NULL, 0);
	CUresult back = driver.cuThreadExchangeStreamCaptureMode(&mode);
	return r ? r : back;
}

static cudaError_t load(struct stub *s)
{
	CUresult r = load_library(s->fatbin);
	if (!r && !s->kernel)
		r = driver.cuLibraryGetKernel(&s->kernel, s->fatbin->library, s->name);
	if (!r && !(r = driver.cuKernelGetFunction(&s->function, s->kernel)))
		s->device = device_current();
	return (cudaError_t)r;
}

cudaError_t function_of(const void *host, CUfunction *f)
{
	cudaError_t r = cudaErrorInvalidDeviceFunction;
	pthread_mutex_lock(&lock);
	struct stub *s = capacity ? &stubs[slot(stubs, capacity, host)] : NULL;
	if (s && s->host && !s->variable) {
		r = s->function && s->device == device_current() ? cudaSuccess : load(s);
		*f = s->function;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

cudaError_t variable_of(const void *symbol, CUdeviceptr *p, size_t *bytes)
{
	cudaError_t r = cudaErrorInvalidSymbol;
	pthread_mutex_lock(&lock);
	struct stub *s = capacity ? &stubs[slot(stubs, capacity, symbol)] : NULL;
	if (s && s->host && s->variable && !(r = (cudaError_t)load_library(s->fatbin)))
		r = (cudaError_t)driver.cuLibraryGetGlobal(p, bytes, s->fatbin->library, s->name);
	pthread_mutex_unlock(&lock);
	return r;
}
