/*
 * multicast.c: makes a multicast object of two devices with memory of one, in each of the ways that there are, beside memory of its own.
 * Prints which allocations are memory of the object.
 */
#include "common.h"

#define PAGE ((size_t)2 << 20)

static unsigned made;

static CUdeviceptr map(CUmemGenericAllocationHandle h, const char *what)
{
	const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr p;
	CHECK(cuMemAddressReserve(&p, PAGE, 0, 0, 0));
	CHECK(cuMemMap(p, PAGE, 0, h, 0));
	CHECK(cuMemSetAccess(p, PAGE, &access, 1));
	printf("%s %u\n", what, made++);
	return p;
}

static CUmemGenericAllocationHandle create(void)
{
	CUmemGenericAllocationHandle h;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
	CHECK(cuMemCreate(&h, PAGE, &prop, 0));
	return h;
}

int main(void)
{
	CUmulticastObjectProp prop = {.numDevices = 2, .size = 4 * PAGE, .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
	CUmemGenericAllocationHandle team, imported, before, after, by_address, spare[16];
	CUdeviceptr p;
	int file, again = 0;
	start();
	map(create(), "own");
	CHECK(cuMulticastCreate(&team, &prop));
	CHECK(cuMemExportToShareableHandle(&file, team, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	CHECK(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	CHECK(cuMulticastAddDevice(team, 0));
	CHECK(cuMulticastAddDevice(imported, 1));
	before = create();
	map(before, "shared");
	CHECK(cuMulticastBindMem(team, 0, before, 0, PAGE, 0));
	after = create();
	CHECK(cuMulticastBindMem(team, PAGE, after, 0, PAGE, 0));
	map(after, "shared");
	by_address = create();
	p = map(by_address, "shared");
	CHECK(cuMulticastBindAddr(team, 2 * PAGE, p, PAGE, 0));
	map(team, "object");
	map(imported, "object");
	/* its number comes again, for memory of the process alone: the C library hands out what was freed last once it has enough such pieces */
	for (int i = 0; i < 16; i++)
		spare[i] = create();
	for (int i = 0; i < 16; i++)
		CHECK(cuMemRelease(spare[i]));
	CHECK(cuMulticastUnbind(team, 0, 2 * PAGE, PAGE));
	CHECK(cuMemUnmap(p, PAGE));
	CHECK(cuMemRelease(by_address));
	for (int i = 0; i < 8; i++) {
		CUmemGenericAllocationHandle h = create();
		again = again || h == by_address;
		map(h, "own");
	}
	if (again || getenv("INTERPOSE_SANITIZE")) /* a sanitizer holds freed memory back */
		return 0;
	fprintf(stderr, "no handle came again\n");
	return 1;
}
