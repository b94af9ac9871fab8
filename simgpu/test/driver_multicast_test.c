/*
 * driver_multicast_test.c: uses of a multicast object that are undefined, or of which the documentation says little: each is an error.
 */
#include "driver_test.h"

#define PAGE ((size_t)2 << 20)

static const char ptx[] =
	".version 8.1\n.target sm_90\n.address_size 64\n"
#define ENTRY(name, instruction) ".visible .entry " name "(.param .u64 at)\n{\n.reg .b64 %a;\n.reg .b32 %v;\nld.param.u64 %a, [at];\nmov.u32 %v, 1;\n" instruction "\nret;\n}\n"
	ENTRY("load", "ld.global.u32 %v, [%a];\nst.global.u32 [%a], %v;") ENTRY("store", "st.global.u32 [%a], %v;") ENTRY("atomic", "red.global.add.u32 [%a], %v;")
	ENTRY("store_all", "multimem.st.global.u32 [%a], %v;") ENTRY("least", "multimem.ld_reduce.global.min.bf16x2 %v, [%a];");

static CUresult run(const char *kernel, CUdeviceptr at)
{
	CUmodule m;
	CUfunction f;
	CUresult r;
	void *params[] = {&at};
	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&f, m, kernel));
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	if ((r = cuCtxSynchronize())) {
		CUcontext ctx;
		OK(cuDevicePrimaryCtxReset(0));
		OK(cuDevicePrimaryCtxRetain(&ctx, 0));
		OK(cuCtxSetCurrent(ctx));
	}
	return r;
}

static CUmemGenericAllocationHandle create(CUdevice dev)
{
	CUmemGenericAllocationHandle h;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, dev}};
	OK(cuMemCreate(&h, 2 * PAGE, &prop, 0));
	return h;
}

static CUdeviceptr map(CUmemGenericAllocationHandle h)
{
	CUdeviceptr p;
	const CUmemAccessDesc first = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	OK(cuMemAddressReserve(&p, 2 * PAGE, 0, 0, 0));
	OK(cuMemMap(p, 2 * PAGE, 0, h, 0));
	OK(cuMemSetAccess(p, 2 * PAGE, &first, 1));
	return p;
}

void multicast(void)
{
	CUmulticastObjectProp prop = {.numDevices = 2, .size = 2 * PAGE};
	CUmemGenericAllocationHandle team, memory[2];
	const CUmemAccessDesc none = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
	CUdeviceptr at, plain;
	size_t before, after, total;
	unsigned word;
	OK(cuMemGetInfo(&before, &total));
	OK(cuMulticastCreate(&team, &prop));
	OK(cuMulticastAddDevice(team, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cuMulticastAddDevice(team, 0));
	WANT(CUDA_ERROR_INVALID_DEVICE, cuMulticastAddDevice(team, 2));
	OK(cuMulticastAddDevice(team, 1));
	for (CUdevice dev = 0; dev < 2; dev++)
		memory[dev] = create(dev);
	at = map(team);
	plain = map(memory[0]);
	OK(cuMulticastBindMem(team, 0, memory[0], 0, 2 * PAGE, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cuMulticastBindMem(team, PAGE, memory[0], 0, PAGE, 0));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, run("store_all", at)); /* the other device has nothing there */
	OK(cuMulticastBindMem(team, PAGE, memory[1], 0, PAGE, 0));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, run("store_all", at));
	OK(run("store_all", at + PAGE + 4));
	OK(cuMemcpyDtoH(&word, plain + PAGE + 4, 4));
	CHECK(word == 1);
	WANT(CUDA_ERROR_MISALIGNED_ADDRESS, run("store_all", at + PAGE + 2));
	WANT(CUDA_ERROR_ILLEGAL_INSTRUCTION, run("least", at + PAGE));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, run("load", at + PAGE));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, run("store", at + PAGE));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, run("atomic", at + PAGE));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, run("store_all", plain));
	WANT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&word, at + PAGE, 4));
	WANT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(at + PAGE, 0, 1));
	OK(cuMemSetAccess(at, 2 * PAGE, &none, 1));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, run("store_all", at + PAGE));
	WANT(CUDA_ERROR_INVALID_VALUE, cuMulticastUnbind(team, 1, PAGE, 2 * PAGE));
	WANT(CUDA_ERROR_INVALID_VALUE, cuMulticastUnbind(team, 0, PAGE, PAGE));
	/* the memory lives as long as it is bound */
	OK(cuMemUnmap(plain, 2 * PAGE));
	for (CUdevice dev = 0; dev < 2; dev++)
		OK(cuMemRelease(memory[dev]));
	OK(cuMemGetInfo(&after, &total));
	CHECK(before - after == 2 * PAGE);
	OK(cuMemUnmap(at, 2 * PAGE));
	OK(cuMemRelease(team));
	OK(cuMemGetInfo(&after, &total));
	CHECK(before == after);
}
