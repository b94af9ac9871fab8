/*
 * devices.c: a process with memory on two devices: by the context of the second one, or by the properties of memory.
 */
#include "common.h"

#include <string.h>

int main(int argc, char **argv)
{
	CUdeviceptr p;
	start();
	CHECK(cuMemAlloc(&p, 4096));
	if (argc > 1 && strcmp(argv[1], "context") == 0) {
		CUcontext ctx;
		CHECK(cuDevicePrimaryCtxRetain(&ctx, 1));
		CHECK(cuCtxSetCurrent(ctx));
		CHECK(cuMemAlloc(&p, 4096));
	} else if (argc > 1) {
		CUmemGenericAllocationHandle h;
		const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
		CHECK(cuMemCreate(&h, (size_t)2 << 20, &prop, 0));
	}
	return 0;
}
