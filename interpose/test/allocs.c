/*
 * allocs.c: allocates small and large pieces of device memory and prints their addresses. With an argument it also uses every
 * other call that allocates or frees and that the driver supports, and prints the medusa_* maps.
 */
#include "common.h"

int main(int argc, char **argv)
{
	static const size_t sizes[] = {256, 512, 4096, 4 << 20, 256, 100000, 8 << 20, 2 << 20, 64, 700, 1 << 20, 3 << 20};
	enum { N = sizeof sizes / sizeof *sizes };
	CUdeviceptr p[N], pitched, managed, pooled;
	size_t pitch;
	void *host, *pinned;
	CUstream s;
	static char registered[8192];
	(void)argv;
	start();
	for (int i = 0; i < N; i++) {
		p[i] = alloc(sizes[i]);
		if (argc == 1)
			PRINT("at", p[i]);
	}
	if (argc == 1)
		return 0;
	CHECK(cuMemFree(p[1]));
	CHECK(cuMemAllocPitch(&pitched, &pitch, 100, 10, 4));
	CHECK(cuMemAllocManaged(&managed, 300, CU_MEM_ATTACH_GLOBAL));
	CHECK(cuMemAllocHost(&host, 400));
	CHECK(cuMemHostAlloc(&pinned, 500, CU_MEMHOSTALLOC_DEVICEMAP));
	CHECK(cuMemHostRegister(registered, sizeof registered, 0));
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAllocAsync(&pooled, 600, s));
	CHECK(cuMemFreeAsync(pooled, s));
	CHECK(cuMemHostUnregister(registered));
	CHECK(cuMemFreeHost(host));
	PRINT("pitch", pitch);
	PRINT("count", MEDUSA(medusa_alloc_count)());
	for (size_t i = 0; i < MEDUSA(medusa_alloc_count)(); i++) {
		struct medusa_alloc a;
		CHECK(MEDUSA(medusa_alloc_get)(i, &a));
		printf("alloc %zu kind %u size %llu live %u phase %u\n", i, a.kind, (unsigned long long)a.size, a.live, a.phase);
	}
	{
		int64_t steps[64];
		struct medusa_alloc a;
		size_t n = MEDUSA(medusa_sequence)(steps, 64);
		printf("sequence");
		for (size_t i = 0; i < n; i++)
			printf(" %lld", (long long)steps[i]);
		printf("\nout-of-range %d\n", MEDUSA(medusa_alloc_get)(1000, &a));
	}
	return 0;
}
