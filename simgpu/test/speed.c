/*
 * speed.c: how fast the interpreter is (make simgpu-speed).
 *
 * Usage: speed FILE.ptx. Multiplies two matrices of 512 x 512 with the kernel "gemm" of the file. Prints instructions of lanes (32 for each instruction of a
 * whole warp), by processor time and by time, on one processor and on all. Processor time depends little on other programs.
 */
#include "../driver/ptx/ptx_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N 512
#define RUNS 5

static char *memory;
static const uint64_t bytes = 3ull * N * N * sizeof(float);

static struct ptx_range find(void *ctx, uint64_t addr)
{
	uint64_t base = (uint64_t)(uintptr_t)memory;

	(void)ctx;
	return addr - base < bytes ? (struct ptx_range){ base, bytes } : (struct ptx_range){ 0, 0 };
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct ptx_module *load(const char *path)
{
	static char text[1 << 20];
	char err[256] = "no such file";
	FILE *f = fopen(path, "rb");
	struct ptx_module *m = f ? ptx_parse(text, fread(text, 1, sizeof text, f), err, sizeof err) : NULL;

	if (f)
		fclose(f);
	if (!m)
		fprintf(stderr, "speed: load %s: %s\n", path, err);
	return m;
}

int main(int argc, char **argv)
{
	const uint32_t grid[3] = { N / 64, N / 64, 1 }, block[3] = { 256, 1, 1 };
	const struct ptx_memory live = { find, NULL, NULL };
	struct ptx_module *m = argc == 2 ? load(argv[1]) : NULL;
	const struct ptx_kernel *k = NULL;
	struct { uint64_t a, b, c; int m, n, k; } params;
	struct ptx_fault fault;

	for (size_t i = 0; m && i < ptx_kernel_count(m); i++)
		if (!strcmp(ptx_kernel_name(ptx_kernel_at(m, i)), "gemm"))
			k = ptx_kernel_at(m, i);
	memory = calloc(1, bytes);
	if (!k || !memory)
		return 2;
	params.a = (uint64_t)(uintptr_t)memory;
	params.b = params.a + bytes / 3;
	params.c = params.b + bytes / 3;
	params.m = params.n = params.k = N;
	for (ptx_threads = 1; ptx_threads >= 0; ptx_threads--) {
		uint64_t before = ptx_instructions();
		double used = seconds(CLOCK_PROCESS_CPUTIME_ID), began = seconds(CLOCK_MONOTONIC), lanes;

		for (int i = 0; i < RUNS; i++)
			if (ptx_launch(k, grid, block, 0, &params, &live, &fault)) {
				fprintf(stderr, "speed: %s\n", fault.text);
				return 1;
			}
		lanes = (double)(ptx_instructions() - before) / 1e9;
		printf("%s: %.2f G lane instructions, %.2f G for each second of a processor, %.2f G a second\n", ptx_threads ? "one processor" : "all processors",
		       lanes, lanes / (seconds(CLOCK_PROCESS_CPUTIME_ID) - used), lanes / (seconds(CLOCK_MONOTONIC) - began));
	}
	return 0;
}
