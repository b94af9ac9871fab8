/*
 * multicast_cases.c: multicast objects of several devices, in one process and in two.
 *
 * Only multimem instructions may touch a multicast address: all other accesses are undefined. Skipped on a machine without multicast.
 */
#include "process.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static const char multimem_ptx[] =
	".version 8.1\n.target sm_90\n.address_size 64\n"
#define ENTRY(name) ".visible .entry " name "(.param .u64 at, .param .u64 arg)\n{\n.reg .b64 %a, %b;\n.reg .b32 %v, %h<4>;\n" \
	"ld.param.u64 %a, [at];\nld.param.u64 %b, [arg];\ncvt.u32.u64 %v, %b;\n"
	ENTRY("store_all") "multimem.st.relaxed.sys.global.u32 [%a], %v;\nret;\n}\n"
	ENTRY("add_all") "multimem.red.relaxed.sys.global.add.u32 [%a], %v;\nret;\n}\n"
	ENTRY("sum") "multimem.ld_reduce.relaxed.sys.global.add.u32 %v, [%a];\nst.global.u32 [%b], %v;\nret;\n}\n"
	ENTRY("sum_halves") "multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%h0, %h1, %h2, %h3}, [%a];\n"
	                    "st.global.v4.b32 [%b], {%h0, %h1, %h2, %h3};\nret;\n}\n"
	ENTRY("store_halves") "mov.b32 %h0, 0x3f803f80;\nmov.b32 %h1, 0x40004000;\nmultimem.st.relaxed.sys.global.v4.bf16x2 [%a], {%h0, %h1, %h0, %h1};\nret;\n}\n";

CUresult multimem(const char *kernel, CUdeviceptr at, uint64_t arg)
{
	CUmodule m;
	CUfunction f;
	CUresult r;
	void *params[] = {&at, &arg};
	if ((r = cu.cuModuleLoadData(&m, multimem_ptx)) || (r = cu.cuModuleGetFunction(&f, m, kernel)) ||
	    (r = cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL)) || (r = cu.cuCtxSynchronize()))
		return r;
	return cu.cuModuleUnload(m);
}

static CUmemAllocationProp on(CUdevice dev)
{
	CUmemAllocationProp p = exportable;
	p.location.id = dev;
	return p;
}

static CUmemGenericAllocationHandle imported;

CUresult team_import(int file)
{
	CUresult r = cu.cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	close(file);
	return r;
}

CUresult team_bind(size_t size, CUdeviceptr *memory)
{
	CUmemGenericAllocationHandle h;
	CUresult r;
	if ((r = cu.cuMulticastAddDevice(imported, 0)) || (r = cu.cuMemCreate(&h, size, &exportable, 0)) || (r = map(h, size, memory)) || (r = set(*memory, 0)))
		return r;
	return cu.cuMulticastBindMem(imported, 0, h, 0, size, 0);
}

CUresult team_map(size_t size, CUdeviceptr *object) { return map(imported, size, object); }

/* ---- one process ------------------------------------------------------------------------------------------------ */

static CUmulticastObjectProp prop;
static size_t size;

/* NULL if two devices can share a multicast object. */
static const char *available(void)
{
	int count = 0, supported = 0;
	size_t best = 0;
	OK(cu.cuDeviceGetCount(&count));
	if (count < 2)
		return skip("one device");
	for (CUdevice dev = 0; dev < 2; dev++) {
		OK(cu.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, dev));
		if (!supported)
			return skip("no multicast");
	}
	prop = (CUmulticastObjectProp){.numDevices = 2, .size = PAGE, .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
	OK(cu.cuMulticastGetGranularity(&size, &prop, CU_MULTICAST_GRANULARITY_MINIMUM));
	OK(cu.cuMulticastGetGranularity(&best, &prop, CU_MULTICAST_GRANULARITY_RECOMMENDED));
	CHECK(size > 0 && best % size == 0);
	size = size > PAGE ? size : PAGE;
	prop.size = size;
	return NULL;
}
#define AVAILABLE()                            \
	do {                                       \
		const char *without = available();     \
		if (without)                           \
			return without;                    \
	} while (0)

/* An address for both devices. */
static CUresult map_for_both(CUmemGenericAllocationHandle h, size_t bytes, CUdeviceptr *p)
{
	CUmemAccessDesc access[2];
	CUresult r;
	for (int dev = 0; dev < 2; dev++)
		access[dev] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, dev}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	if ((r = cu.cuMemAddressReserve(p, bytes, size, 0, 0)) || (r = cu.cuMemMap(*p, bytes, 0, h, 0)))
		return r;
	return cu.cuMemSetAccess(*p, bytes, access, 2);
}

struct both { CUmemGenericAllocationHandle team, memory[2]; CUdeviceptr at, part[2]; CUcontext second; };

/* An object of both devices with zeroed memory of each, which this context may read, too; bound: part of the object already. */
static CUresult make(struct both *b, bool bound)
{
	CUresult r;
	if ((r = cu.cuDevicePrimaryCtxRetain(&b->second, 1)) || (r = cu.cuMulticastCreate(&b->team, &prop)))
		return r;
	for (int dev = 0; dev < 2; dev++)
		if ((r = cu.cuMulticastAddDevice(b->team, dev)))
			return r;
	for (int dev = 0; dev < 2; dev++) {
		CUmemAllocationProp there = on(dev);
		if ((r = cu.cuMemCreate(&b->memory[dev], size, &there, 0)) || (r = map_for_both(b->memory[dev], size, &b->part[dev])) ||
		    (r = cu.cuMemsetD8_v2(b->part[dev], 0, size)) || (r = cu.cuCtxSynchronize()) ||
		    (bound && (r = cu.cuMulticastBindMem(b->team, 0, b->memory[dev], 0, size, 0))))
			return r;
	}
	return map_for_both(b->team, size, &b->at);
}

static unsigned word(CUdeviceptr p)
{
	unsigned v = 0xdeadbeef;
	return cu.cuMemcpyDtoH_v2(&v, p, 4) ? 0xdeadbeef : v;
}

static const char *none(void)
{
	CUmemGenericAllocationHandle h;
	int supported = 0;
	OK(cu.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
	if (supported)
		return skip("this device has multicast");
	prop = (CUmulticastObjectProp){.numDevices = 2, .size = PAGE};
	CHECK(cu.cuMulticastCreate(&h, &prop) != CUDA_SUCCESS);
	return NULL;
}

static const char *create_bad(void)
{
	CUmemGenericAllocationHandle h;
	AVAILABLE();
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMulticastGetGranularity(NULL, &prop, CU_MULTICAST_GRANULARITY_MINIMUM));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMulticastCreate(NULL, &prop));
	prop.size++;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMulticastCreate(&h, &prop));
	prop.size = size;
	prop.flags = 1;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMulticastCreate(&h, &prop));
	return NULL;
}

static const char *instructions(void)
{
	struct both b;
	CUdeviceptr out;
	AVAILABLE();
	OK(make(&b, true));
	OK(multimem("store_all", b.at + 64, 5));
	CHECK(word(b.part[0] + 64) == 5 && word(b.part[1] + 64) == 5 && word(b.part[1]) == 0);
	OK(cu.cuCtxPushCurrent_v2(b.second));
	OK(multimem("add_all", b.at + 64, 2));
	OK(cu.cuCtxPopCurrent_v2(NULL));
	CHECK(word(b.part[0] + 64) == 7 && word(b.part[1] + 64) == 7);
	OK(set(b.part[1] + 64, 100));
	OK(cu.cuMemAlloc_v2(&out, 64));
	OK(multimem("sum", b.at + 64, out));
	CHECK(word(out) == 107);
	return NULL;
}

static const char *halves(void)
{
	struct both b;
	CUdeviceptr out;
	AVAILABLE();
	OK(make(&b, true));
	OK(multimem("store_halves", b.at + 32, 0));
	CHECK(word(b.part[0] + 32) == 0x3f803f80 && word(b.part[1] + 44) == 0x40004000);
	OK(set(b.part[1] + 32, 0x40403f80)); /* 3 above 1 */
	OK(cu.cuMemAlloc_v2(&out, 64));
	OK(multimem("sum_halves", b.at + 32, out));
	CHECK(word(out) == 0x40804000 && word(out + 4) == 0x40804080 && word(out + 8) == 0x40004000 && word(out + 12) == 0x40804080);
	return NULL;
}

static const char *addresses(void)
{
	struct both b;
	AVAILABLE();
	OK(make(&b, false));
	OK(cu.cuMulticastBindAddr(b.team, 0, b.part[0], size, 0));
	OK(cu.cuMulticastBindAddr(b.team, 0, b.part[1], size, 0));
	OK(multimem("store_all", b.at, 9));
	CHECK(word(b.part[0]) == 9 && word(b.part[1]) == 9);
	OK(cu.cuMulticastUnbind(b.team, 1, 0, size));
	/* other memory of the device in its place */
	CUmemGenericAllocationHandle h;
	CUdeviceptr other;
	CUmemAllocationProp there = on(1);
	OK(cu.cuMemCreate(&h, 2 * size, &there, 0));
	OK(map_for_both(h, 2 * size, &other));
	OK(set(other, 0));
	OK(cu.cuMulticastBindMem(b.team, 0, h, size, size, 0));
	OK(multimem("store_all", b.at, 11));
	CHECK(word(b.part[0]) == 11 && word(b.part[1]) == 9 && word(other + size) == 11 && word(other) == 0);
	return NULL;
}

static const char *bind_bad(void)
{
	struct both b;
	CUmemGenericAllocationHandle h;
	CUmemAllocationProp plain = on(0);
	AVAILABLE();
	OK(make(&b, false));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMulticastBindMem(b.team, 0, b.memory[0], 0, size, 1));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMulticastBindMem(b.team, 4096, b.memory[0], 0, size, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMulticastBindMem(b.team, 0, b.memory[0], 0, 2 * size, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMulticastBindMem(b.team, 0, b.memory[0], size, size, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuMulticastBindMem(b.memory[0], 0, b.memory[0], 0, size, 0));
	plain.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	OK(cu.cuMemCreate(&h, size, &plain, 0));
	CHECK(cu.cuMulticastBindMem(b.team, 0, h, 0, size, 0) != CUDA_SUCCESS);
	return NULL;
}

/* ---- two processes ---------------------------------------------------------------------------------------------- */

/* An object of this process, which the other one has imported. */
static const char *share(struct both *b)
{
	int file = -1;
	AVAILABLE();
	OK(cu.cuMulticastCreate(&b->team, &prop));
	OK(cu.cuMemExportToShareableHandle(&file, b->team, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	fcntl(file, F_SETFD, 0); /* the other process inherits it */
	peer_start();
	close(file);
	OK(ASK(TEAM_IMPORT, .file = file));
	return NULL;
}
#define SHARE(b)                         \
	do {                                 \
		const char *without = share(b);  \
		if (without)                     \
			return without;              \
	} while (0)
#define TELL(...) CHECK(peer_tell((struct request){__VA_ARGS__}))

static const char *processes(void)
{
	struct both b;
	CUdeviceptr out;
	SHARE(&b);
	TELL(TEAM_BIND, .size = size);
	OK(cu.cuMulticastAddDevice(b.team, 0));
	OK(cu.cuMemCreate(&b.memory[0], size, &exportable, 0));
	OK(map(b.memory[0], size, &b.part[0]));
	OK(set(b.part[0] + 128, 0));
	OK(cu.cuMulticastBindMem(b.team, 0, b.memory[0], 0, size, 0));
	OK(map(b.team, size, &b.at));
	OK(peer_answer());
	CUdeviceptr there = answer.ptr;
	OK(ASK(TEAM_MAP, .size = size));
	CUdeviceptr object_there = answer.ptr;
	OK(ASK(WRITE, .ptr = there + 128, .value = 0));
	OK(multimem("store_all", b.at + 128, 21));
	CHECK(word(b.part[0] + 128) == 21);
	OK(ASK(READ, .ptr = there + 128));
	CHECK(answer.value == 21);
	OK(ASK(ADD_ALL, .ptr = object_there + 128, .value = 4));
	CHECK(word(b.part[0] + 128) == 25);
	OK(ASK(STORE_ALL, .ptr = object_there + 132, .value = 6));
	CHECK(word(b.part[0] + 132) == 6);
	OK(cu.cuMemAlloc_v2(&out, 64));
	OK(multimem("sum", b.at + 128, out));
	CHECK(word(out) == 50);
	peer_end();
	return NULL;
}

static const char *bind_waits(void)
{
	struct both b;
	SHARE(&b);
	TELL(TEAM_BIND, .size = size);
	CHECK(peer_silent(300));
	OK(cu.cuMulticastAddDevice(b.team, 0));
	OK(peer_answer());
	peer_end();
	return NULL;
}

static const char *map_waits(void)
{
	struct both b;
	SHARE(&b);
	OK(cu.cuMulticastAddDevice(b.team, 0));
	TELL(TEAM_MAP, .size = size);
	CHECK(peer_silent(300));
	OK(cu.cuMulticastAddDevice(b.team, 1));
	OK(peer_answer());
	peer_end();
	return NULL;
}

static const struct conformance_case cases[] = {
	{"multicast/none", "CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED: without it cuMulticastCreate fails", none, SHARED},
	{"multicast/create_bad", "cuMulticastCreate, cuMulticastGetGranularity: INVALID_VALUE", create_bad, SHARED},
	{"multicast/instructions", "PTX multimem: a store and an addition reach memory of each device, a load adds it up", instructions, ALONE},
	{"multicast/halves", "PTX multimem: lists of pairs of halves, added up in f32", halves, ALONE},
	{"multicast/addresses", "cuMulticastBindAddr: memory by its address; cuMulticastUnbind: ends the binding of one device", addresses, ALONE},
	{"multicast/bind_bad", "cuMulticastBindMem: INVALID_VALUE; exported objects take exportable memory only", bind_bad, ALONE},
	{"multicast/processes", "cuMemExportToShareableHandle: a multicast object of two processes, with memory of each", processes, ALONE},
	{"multicast/bind_waits", "cuMulticastBindMem: blocks until all devices have been added", bind_waits, ALONE},
	{"multicast/map_waits", "cuMulticastAddDevice: cuMemMap blocks until all devices have been added", map_waits, ALONE},
};
GROUP(multicast_cases, cases);
