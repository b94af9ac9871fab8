/* plan_test.c: the choice of kernels over the batch sizes of an engine, without a device. */
#include <string.h>

#include "plan.h"
#include "test.h"

static const struct layer layers[] = DEMO_LAYERS;
enum { LAYERS = sizeof layers / sizeof *layers };

/* Bit i: module i takes part in a decode step of this batch size. */
static unsigned modules_of(int batch)
{
	unsigned used = 0;
	for (int i = 0; i < LAYERS; i++)
		used |= 1u << vblas_plan(batch, layers[i].n, layers[i].k, VBLAS_WORKSPACE_BYTES).module;
	return used;
}

static void check_batches(void)
{
	static const struct { int batch; unsigned modules; } want[] = {
		{1, 1u << VBLAS_GEMV}, {4, 1u << VBLAS_GEMV},
		{8, 1u << VBLAS_TILE | 1u << VBLAS_SPLITK}, {64, 1u << VBLAS_TILE | 1u << VBLAS_SPLITK},
		{72, 1u << VBLAS_LARGE}, {256, 1u << VBLAS_LARGE},
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		CHECK(modules_of(want[i].batch) == want[i].modules, "batch %d uses modules %#x, want %#x", want[i].batch,
		      modules_of(want[i].batch), want[i].modules);
}

static void check_split(void)
{
	struct vblas_plan p = vblas_plan(16, 64, 176, VBLAS_WORKSPACE_BYTES);
	CHECK(p.grid[2] == 2 && p.k_share == 88, "176 columns split into %u shares of %d", p.grid[2], p.k_share);
	p = vblas_plan(256, 4096, 11008, VBLAS_WORKSPACE_BYTES);
	CHECK(p.module == VBLAS_SPLITK && p.grid[2] == 2 && p.workspace <= VBLAS_WORKSPACE_BYTES,
	      "a 7B down projection takes module %d, %u shares, %zu bytes", p.module, p.grid[2], p.workspace);
	p = vblas_plan(16, 64, 176, 0);
	CHECK(p.module == VBLAS_TILE, "without a workspace: module %d", p.module);
	/* Shares are whole multiples of the k that the kernel stages at a time, and the last one is not empty. */
	for (int k = 8; k <= 12000; k += 8) {
		p = vblas_plan(8, 4, k, VBLAS_WORKSPACE_BYTES);
		if (p.module == VBLAS_SPLITK)
			CHECK(p.k_share % 8 == 0 && p.k_share * ((int)p.grid[2] - 1) < k && p.k_share * (int)p.grid[2] >= k,
			      "k %d: %u shares of %d", k, p.grid[2], p.k_share);
	}
}

static void check_names(void)
{
	struct vblas_plan tile = vblas_plan(8, 64, 64, 0), large = vblas_plan(128, 64, 64, 0);
	CHECK(tile.module != large.module && !strcmp(tile.kernel, large.kernel), "%s in %d and %s in %d", tile.kernel,
	      tile.module, large.kernel, large.module);
}

void test_plan(void)
{
	check_batches();
	check_split();
	check_names();
}
