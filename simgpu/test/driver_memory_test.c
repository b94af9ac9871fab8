/*
 * driver_memory_test.c: addresses and contents of memory, and the errors of touching freed memory.
 */
#include "driver_test.h"

void print_addresses(void)
{
	CUdeviceptr p;
	for (int i = 0; i < 6; i++) {
		OK(cuMemAlloc(&p, i % 2 ? 4 << 20 : 1000));
		printf("%llx ", p);
	}
	puts("");
}

/* Large allocations lie at other distances from each other, not only elsewhere. */
void print_distances(void)
{
	CUdeviceptr before = 0, p;
	for (int i = 0; i < 6; i++) {
		OK(cuMemAlloc(&p, 4 << 20));
		if (before)
			printf("%llx ", p - before);
		before = p;
	}
	puts("");
}

/* Freed addresses come back to equal sizes, last freed first (the paper's Figure 6 rests on this). */
void reuse(void)
{
	static const size_t sizes[] = {100, 512, 70000, 3 << 20, 65 << 20};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		CUdeviceptr a, b, c, d;
		OK(cuMemAlloc(&a, sizes[i]));
		OK(cuMemAlloc(&b, sizes[i]));
		OK(cuMemFree(a));
		OK(cuMemFree(b));
		OK(cuMemAlloc(&c, sizes[i]));
		OK(cuMemAlloc(&d, sizes[i]));
		CHECK(c == b && d == a);
	}
}

void placement(void)
{
	CUdeviceptr a, b, big;
	OK(cuMemAlloc(&a, 1));
	OK(cuMemAlloc(&b, 1));
	OK(cuMemAlloc(&big, 5 << 20));
	CHECK(a % 512 == 0 && b - a == 512 && a >> 21 == b >> 21);
	CHECK(big % (2 << 20) == 0);
	CHECK(a >> 40 != 0x7f && a >> 40 != 0x7e);
}

void not_zeroed(void)
{
	CUdeviceptr p;
	unsigned v[64];
	OK(cuMemAlloc(&p, sizeof(v)));
	OK(cuMemcpyDtoH(v, p, sizeof(v)));
	for (int i = 0; i < 64; i++)
		CHECK(v[i] == 0xcbcbcbcb);
}

void out_of_memory(void)
{
	CUdeviceptr p, q;
	size_t free, total;
	OK(cuMemGetInfo(&free, &total));
	CHECK(total == 64 << 20);
	OK(cuMemAlloc(&p, 40 << 20));
	WANT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&q, 40 << 20));
	OK(cuMemFree(p));
	OK(cuMemAlloc(&q, 40 << 20));
}

/* A kernel that touches freed memory stops with error 700, and the log names kernel, thread and address. */
void freed_memory(void)
{
	CUdeviceptr p;
	char address[32];
	OK(cuMemAlloc(&p, 4 << 20));
	OK(cuMemFree(p));
	OK(launch(add_kernel, NULL, p, 64, 1));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&p, 4));
	snprintf(address, sizeof(address), "address 0x%llx", p);
	const char *l = line_with(getenv("SIMGPU_LOG"), "error 700", address);
	CHECK(l && strstr(l, "kernel add") && strstr(l, "thread (0,0,0)") && strstr(l, "block (0,0,0)"));
}

/* One element past the end, inside the same page. */
void past_the_end(void)
{
	CUdeviceptr p;
	OK(cuMemAlloc(&p, 400));
	OK(launch(add_kernel, NULL, p, 100, 1));
	OK(cuCtxSynchronize());
	OK(launch(add_kernel, NULL, p, 101, 1));
	WANT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	const char *l = line_with(getenv("SIMGPU_LOG"), "error 700", "kernel add");
	CHECK(l && strstr(l, "block (3,0,0) thread (4,0,0)"));
	OK(cuDevicePrimaryCtxReset(0));
	CUcontext ctx;
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuMemAlloc(&p, 400)); /* works again */
}
