/*
 * nvml.c: the NVML functions that PyTorch and vLLM use, answered by the driver.
 *
 * In: device indices. Out: the driver's facts about the device. Fails: UNINITIALIZED before nvmlInit, NOT_SUPPORTED for
 * facts that only a management library knows.
 */
#define CUDA_EXACT_SYMBOLS
#include "cuda.h"
#include "stub.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	NVML_SUCCESS = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9
};

static struct {
	__typeof__(&cuInit) cuInit;
	__typeof__(&cuDriverGetVersion) cuDriverGetVersion;
	__typeof__(&cuDeviceGetName) cuDeviceGetName;
	__typeof__(&cuDeviceGetAttribute) cuDeviceGetAttribute;
} driver;
static int ready;

EXPORT int nvmlInit_v2(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	__typeof__(&cuGetProcAddress_v2) get = NULL;
	if (lib)
		*(void **)&get = dlsym(lib, "cuGetProcAddress_v2");
	if (!get)
		return NVML_DRIVER_NOT_LOADED;
	CUdriverProcAddressQueryResult status;
	int bad = 0;
#define GET(name, version) bad |= get(#name, (void **)&driver.name, version, 0, &status) || !driver.name
	GET(cuInit, 2000);
	GET(cuDriverGetVersion, 2020);
	GET(cuDeviceGetName, 2000);
	GET(cuDeviceGetAttribute, 2000);
#undef GET
	ready = !bad && !driver.cuInit(0);
	return ready ? NVML_SUCCESS : NVML_DRIVER_NOT_LOADED;
}

/* torch counts devices through this function. It avoids the runtime, because after a call of that it would refuse to work in a
 * forked process. */
EXPORT int nvmlInit(void) { return nvmlInit_v2(); }

EXPORT int nvmlInitWithFlags(unsigned int flags)
{
	(void)flags; /* whether to look for devices; the driver has done so already */
	return nvmlInit_v2();
}

EXPORT int nvmlShutdown(void) { return ready ? NVML_SUCCESS : NVML_UNINITIALIZED; }

EXPORT int nvmlDeviceGetCount_v2(unsigned int *n)
{
	if (!ready || !n)
		return ready ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
	const char *devices = getenv("SIMGPU_DEVICES");
	*n = devices && atoi(devices) > 0 ? (unsigned)atoi(devices) : 1;
	return NVML_SUCCESS;
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	if (!ready || !version)
		return ready ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
	return driver.cuDriverGetVersion(version) ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

/* A handle is the device's ordinal plus one. */
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle)
{
	unsigned int n;
	int r = nvmlDeviceGetCount_v2(&n);
	if (r || !handle || index >= n)
		return r ? r : NVML_INVALID_ARGUMENT;
	*handle = (void *)(uintptr_t)(index + 1);
	return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **handle)
{
	(void)id;
	return nvmlDeviceGetHandleByIndex_v2(0, handle);
}

EXPORT int nvmlDeviceGetIndex(void *handle, unsigned int *index)
{
	if (!ready || !handle || !index)
		return ready ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
	*index = (unsigned)(uintptr_t)handle - 1;
	return NVML_SUCCESS;
}

enum { UUID_TEXT = 41 }; /* with its end */

/* The text of the driver's bytes (cuDeviceGetUuid of simgpu/driver). */
static void uuid_text(unsigned int index, char text[UUID_TEXT])
{
	unsigned char bytes[16] = {0};
	snprintf((char *)bytes, sizeof(bytes), "simulated-gpu-%u", index);
	char *at = text + sprintf(text, "GPU-");
	for (size_t i = 0; i < sizeof(bytes); i++)
		at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
}

EXPORT int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int len)
{
	if (!ready || !handle || !uuid)
		return ready ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
	if (len < UUID_TEXT)
		return NVML_INSUFFICIENT_SIZE;
	uuid_text((unsigned)(uintptr_t)handle - 1, uuid);
	return NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle)
{
	unsigned int n;
	int r = nvmlDeviceGetCount_v2(&n);
	if (r || !uuid || !handle)
		return r ? r : NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < n; i++) {
		char text[UUID_TEXT];
		uuid_text(i, text);
		if (!strcmp(uuid, text))
			return nvmlDeviceGetHandleByIndex_v2(i, handle);
	}
	return NVML_NOT_FOUND;
}

/* All devices of the machine are alike, and the process may see no other than its first. */
static CUdevice device(const void *handle) { return handle ? 0 : -1; }

EXPORT int nvmlDeviceGetName(void *handle, char *name, unsigned int len)
{
	if (!ready || !handle || !name)
		return ready ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
	return driver.cuDeviceGetName(name, (int)len, device(handle)) ? NVML_NOT_SUPPORTED : NVML_SUCCESS;
}

EXPORT int nvmlDeviceGetCudaComputeCapability(void *handle, int *major, int *minor)
{
	if (!ready || !handle || !major || !minor)
		return ready ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
	return driver.cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device(handle)) ||
	               driver.cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device(handle))
	           ? NVML_NOT_SUPPORTED
	           : NVML_SUCCESS;
}

enum { CAPS_NVLINK = 2, STATUS_OK = 0, STATUS_NOT_SUPPORTED = 5 }; /* of nvmlGpuP2PCapsIndex_t and nvmlGpuP2PStatus_t */

/* Multicast objects need NVLink's switch, which connects all devices. Devices without them have no NVLink. */
EXPORT int nvmlDeviceGetP2PStatus(void *one, void *other, int what, int *status)
{
	if (!ready || !one || !other || one == other || !status)
		return ready ? NVML_INVALID_ARGUMENT : NVML_UNINITIALIZED;
	if (what != CAPS_NVLINK)
		return stub_missing("nvmlDeviceGetP2PStatus", NVML_NOT_SUPPORTED, "NVML_ERROR_NOT_SUPPORTED");
	int multicast;
	if (driver.cuDeviceGetAttribute(&multicast, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, device(one)))
		return NVML_NOT_SUPPORTED;
	*status = multicast ? STATUS_OK : STATUS_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

/* This stand-in does not know how much of a device is in use, and by which processes. */
#define UNKNOWN(name) \
	EXPORT int name(void) { return stub_missing(#name, NVML_NOT_SUPPORTED, "NVML_ERROR_NOT_SUPPORTED"); }
UNKNOWN(nvmlDeviceGetComputeRunningProcesses)
UNKNOWN(nvmlDeviceGetNvLinkRemoteDeviceType)
UNKNOWN(nvmlDeviceGetNvLinkRemotePciInfo_v2)
