/*
 * large.c GIB SEGMENTS [hold]: fills a device with allocations of GIB GiB, the last one smaller. It also reserves as much as a
 * framework's expandable segments do: SEGMENTS ranges, each of nine eighths of the device. Prints addresses and sizes of
 * allocations as `at` and `size`, those of ranges as `range`, the device's memory as `total`, and whether bytes at each end are
 * kept. With `hold` it leaves room for contexts of other processes, prints that and then waits to be killed.
 */
#include <unistd.h>

#include "common.h"

#define GIB ((size_t)1 << 30)
#define KEPT ((size_t)1 << 30) /* for the driver and small allocations */
#define CONTEXTS ((size_t)6 << 30)
#define PAGE ((size_t)2 << 20)

static void mark_ends(CUdeviceptr p, size_t size, uint32_t value)
{
	CHECK(cuMemcpyHtoD(p, &value, sizeof value));
	value = ~value;
	CHECK(cuMemcpyHtoD(p + size - sizeof value, &value, sizeof value));
}

static int ends_kept(CUdeviceptr p, size_t size, uint32_t value)
{
	uint32_t first, last;
	CHECK(cuMemcpyDtoH(&first, p, sizeof first));
	CHECK(cuMemcpyDtoH(&last, p + size - sizeof last, sizeof last));
	return first == value && last == ~value;
}

int main(int argc, char **argv)
{
	size_t total, step, sizes[512], n = 0;
	CUdeviceptr at[512];
	int kept = 1;
	if (argc < 3)
		return 2;
	start();
	MARK(medusa_mark_phase, "kv_cache"); /* its contents must not be saved */
	step = strtoull(argv[1], NULL, 0) * GIB;
	CHECK(cuDeviceTotalMem(&total, 0));
	PRINT("total", total);
	for (size_t left = total - (argc > 3 ? CONTEXTS : KEPT); left; left -= sizes[n++]) {
		sizes[n] = left < step ? left : step;
		at[n] = alloc(sizes[n]);
		mark_ends(at[n], sizes[n], (uint32_t)n + 1);
	}
	for (size_t i = 0; i < n; i++) {
		kept &= ends_kept(at[i], sizes[i], (uint32_t)i + 1);
		PRINT("at", at[i]);
		PRINT("size", sizes[i]);
	}
	PRINT("kept", kept);
	PRINT("beyond", cuMemAlloc(&at[0], CONTEXTS * 2));
	for (int i = atoi(argv[2]); i > 0; i--) {
		CUdeviceptr range;
		CHECK(cuMemAddressReserve(&range, (total + total / 8) / PAGE * PAGE, 0, 0, 0)); /* a device's memory need not be whole pages */
		PRINT("range", range);
	}
	if (argc > 3) {
		PRINT("held", 1);
		fflush(stdout);
		pause();
	}
	return 0;
}
