/*
 * device.c: the devices that the process sees, their attributes, the facts that tell them apart, and which may reach each other's memory.
 *
 * In: queries. Out: numbers of a data-centre GPU of compute capability 9.0 if programs decide by them, and 0 for
 * features that are not simulated. Fails: unknown ordinals and attributes.
 */
#include "core/core.h"

#include <string.h>

#define PCI_BUS 0x5a /* of the first device; the others' follow */

static void pci_bus_id(char text[sizeof("0000:5A:00.0")], CUdevice dev)
{
	snprintf(text, sizeof("0000:5A:00.0"), "0000:%02X:00.0", (unsigned)(uint8_t)(PCI_BUS + device_number(dev)));
}

CUresult device_check(CUdevice dev)
{
	return dev >= 0 && dev < config_get()->seen ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUdevice device_current(void)
{
	const struct context *ctx = context_current();
	return ctx ? ctx->device : 0;
}

int device_number(CUdevice dev) { return config_get()->visible[device_check(dev) ? 0 : dev]; }

CUdevice device_numbered(int number)
{
	for (CUdevice dev = 0; !device_check(dev); dev++)
		if (device_number(dev) == number)
			return dev;
	return -1;
}

int device_attribute(CUdevice_attribute attr)
{
	switch ((int)attr) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 0x7fffffff;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 48 << 10;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return 227 << 10;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return 228 << 10;
	case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: return 1 << 10;
	case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: return 64 << 10;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
	case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return 0x7fffffff;
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return 64 << 10;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return 1755000;
	case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT: return 512;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return 132;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return PCI_BUS; /* of the first device */
	case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return 2619000;
	case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return 5120;
	case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return 50 << 20;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return 2048;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return 32;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 3;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return config_get()->cc_major;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return config_get()->cc_minor;
	case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED: return config_get()->multicast;
	case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
	case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
	case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return 1;
	}
	/* The rest exists as a number and is absent as a feature: 0 says so. */
	return attr >= 1 && attr < CU_DEVICE_ATTRIBUTE_MAX ? 0 : -1;
}

CUresult sim_cuDeviceGet(struct call *c, CUdevice *device, int ordinal)
{
	(void)c;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (device_check(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetCount(struct call *c, int *count)
{
	(void)c;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = config_get()->seen;
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetName(struct call *c, char *name, int len, CUdevice dev)
{
	(void)c;
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, "Simulated GPU");
	return device_check(dev);
}

void device_uuid(int number, char bytes[16])
{
	snprintf(bytes, 16, "simulated-gpu-%d", number);
}

CUresult sim_cuDeviceGetUuid(struct call *c, CUuuid *uuid, CUdevice dev)
{
	(void)c;
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	device_uuid(device_number(dev), uuid->bytes);
	return device_check(dev);
}

CUresult sim_cuDeviceGetUuid_v2(struct call *c, CUuuid *uuid, CUdevice dev)
{
	return sim_cuDeviceGetUuid(c, uuid, dev);
}

CUresult sim_cuDeviceTotalMem_v2(struct call *c, size_t *bytes, CUdevice dev)
{
	(void)c;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = config_get()->memory;
	return device_check(dev);
}

CUresult sim_cuDeviceGetAttribute(struct call *c, int *value, CUdevice_attribute attr, CUdevice dev)
{
	call_detail(c, "attr=%d", (int)attr);
	int v = device_attribute(attr);
	if (!value || v < 0)
		return CUDA_ERROR_INVALID_VALUE;
	*value = attr == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? v + device_number(dev) : v;
	return device_check(dev);
}

CUresult sim_cuDeviceComputeCapability(struct call *c, int *major, int *minor, CUdevice dev)
{
	(void)c;
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	*major = config_get()->cc_major;
	*minor = config_get()->cc_minor;
	return device_check(dev);
}

CUresult sim_cuDeviceGetPCIBusId(struct call *c, char *text, int len, CUdevice dev)
{
	(void)c;
	if (!text || len < (int)sizeof("0000:5A:00.0"))
		return CUDA_ERROR_INVALID_VALUE;
	pci_bus_id(text, dev);
	return device_check(dev);
}

CUresult sim_cuDeviceGetByPCIBusId(struct call *c, CUdevice *dev, const char *text)
{
	(void)c;
	if (!dev || !text)
		return CUDA_ERROR_INVALID_VALUE;
	for (CUdevice d = 0; !device_check(d); d++) {
		char other[sizeof("0000:5A:00.0")];
		pci_bus_id(other, d);
		if (!strcmp(text, other)) {
			*dev = d;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuDeviceCanAccessPeer(struct call *c, int *can_access_peer, CUdevice dev, CUdevice peer_dev)
{
	(void)c;
	if (!can_access_peer)
		return CUDA_ERROR_INVALID_VALUE;
	if (device_check(dev) || device_check(peer_dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*can_access_peer = dev != peer_dev;
	return CUDA_SUCCESS;
}

/* Every two devices of a machine reach each other. Arrays are not simulated. */
CUresult sim_cuDeviceGetP2PAttribute(struct call *c, int *value, int attr, CUdevice src, CUdevice dst)
{
	call_detail(c, "attr=%d", attr);
	if (!value || attr < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK || attr > CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED)
		return CUDA_ERROR_INVALID_VALUE;
	if (device_check(src) || device_check(dst) || src == dst)
		return CUDA_ERROR_INVALID_DEVICE;
	*value = attr == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED || attr == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
	return CUDA_SUCCESS;
}
