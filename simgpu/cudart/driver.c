/*
 * driver.c: finds the driver, and manages the current device and context, and errors.
 *
 * In: libcuda.so.1 as the dynamic linker finds it. Out: the table of entry points, and a context on each thread that needs one.
 * Fails: INSUFFICIENT_DRIVER if there is no driver or it lacks cuGetProcAddress_v2; otherwise driver calls, with the
 * driver's result.
 */
#include "cudart.h"

#include <dlfcn.h>
#include <pthread.h>

struct driver driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t found = cudaErrorInitializationError;
static _Thread_local int device;
static _Thread_local bool bound; /* this thread has had a context */
static _Thread_local cudaError_t last;

cudaError_t result(cudaError_t r)
{
	if (r)
		last = r;
	return r;
}

EXPORT cudaError_t cudaGetLastError(void)
{
	cudaError_t r = last;
	last = cudaSuccess;
	stack_prepare();
	return r;
}

EXPORT cudaError_t cudaPeekAtLastError(void)
{
	return last;
}

static void find(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (!lib) {
		found = cudaErrorInsufficientDriver;
		return;
	}
	__typeof__(&cuGetProcAddress_v2) get;
	*(void **)&get = dlsym(lib, "cuGetProcAddress_v2");
	if (!get) {
		found = cudaErrorInsufficientDriver;
		return;
	}
	CUdriverProcAddressQueryResult status;
#define X(base, symbol, version) \
	if (get(#base, (void **)&driver.base, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status)) \
		driver.base = NULL;
	DRIVER_CALLS(X)
#undef X
	found = driver.cuInit ? (cudaError_t)driver.cuInit(0) : cudaErrorInsufficientDriver;
}

cudaError_t driver_ready(void)
{
	pthread_once(&once, find);
	return found;
}

cudaError_t context_of(int dev, CUcontext *ctx)
{
	enum { MAX_DEVICES = 64 };
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static CUcontext primary[MAX_DEVICES];
	if (dev < 0 || dev >= MAX_DEVICES)
		return cudaErrorInvalidDevice;
	pthread_mutex_lock(&lock);
	CUdevice d;
	cudaError_t r = cudaSuccess;
	if (!primary[dev]) {
		r = (cudaError_t)driver.cuDeviceGet(&d, dev);
		if (!r)
			r = (cudaError_t)driver.cuDevicePrimaryCtxRetain(&primary[dev], d);
	}
	*ctx = primary[dev];
	pthread_mutex_unlock(&lock);
	return r;
}

cudaError_t context_ready(void)
{
	cudaError_t r = driver_ready();
	if (r || bound)
		return r;
	CUcontext ctx = NULL;
	if ((r = (cudaError_t)driver.cuCtxGetCurrent(&ctx)))
		return r;
	if (!ctx && !(r = context_of(device, &ctx)))
		r = (cudaError_t)driver.cuCtxSetCurrent(ctx);
	bound = !r;
	return r;
}

int device_current(void)
{
	return device;
}

EXPORT cudaError_t cudaGetDevice(int *dev)
{
	NEED_DRIVER();
	if (!dev)
		return result(cudaErrorInvalidValue);
	*dev = device;
	stack_prepare();
	return cudaSuccess;
}

EXPORT cudaError_t cudaSetDevice(int dev)
{
	NEED_DRIVER();
	CUcontext ctx;
	cudaError_t r = context_of(dev, &ctx);
	if (!r && !(r = (cudaError_t)driver.cuCtxSetCurrent(ctx))) {
		device = dev;
		bound = true;
	}
	return result(r);
}

EXPORT cudaError_t cudaDriverGetVersion(int *version)
{
	NEED_DRIVER();
	return CALL(cuDriverGetVersion, version);
}

EXPORT cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return result(cudaErrorInvalidValue);
	*version = CUDART_VERSION;
	return cudaSuccess;
}

/* The driver has the texts of its own results. The few results that only a runtime has are named here. */
static const char *own_text(cudaError_t r)
{
	switch (r) {
	case cudaErrorInvalidSymbol: return "invalid device symbol";
	case cudaErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
	case cudaErrorInsufficientDriver: return "no driver was found (libcuda.so.1 with cuGetProcAddress_v2)";
	case cudaErrorCallRequiresNewerDriver: return "the driver lacks this call";
	case cudaErrorMissingConfiguration: return "no launch configuration was pushed";
	case cudaErrorInvalidDeviceFunction: return "the host function stands for no registered kernel";
	default: return NULL;
	}
}

EXPORT const char *cudaGetErrorString(cudaError_t r)
{
	const char *text = own_text(r);
	if (!text && driver_ready() != cudaErrorInsufficientDriver && driver.cuGetErrorString)
		driver.cuGetErrorString((CUresult)r, &text);
	return text ? text : "unrecognized error code";
}

EXPORT const char *cudaGetErrorName(cudaError_t r)
{
	const char *name = NULL;
	if (driver_ready() != cudaErrorInsufficientDriver && driver.cuGetErrorName)
		driver.cuGetErrorName((CUresult)r, &name);
	return name ? name : "unrecognized error code";
}

EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **fn, unsigned int version,
                                                    unsigned long long flags, CUdriverProcAddressQueryResult *status)
{
	NEED_DRIVER();
	CUdriverProcAddressQueryResult ignored;
	return CALL(cuGetProcAddress, symbol, fn, (int)version, flags, status ? status : &ignored);
}

EXPORT cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **fn, unsigned long long flags,
                                           CUdriverProcAddressQueryResult *status)
{
	return cudaGetDriverEntryPointByVersion(symbol, fn, CUDART_VERSION, flags, status);
}
