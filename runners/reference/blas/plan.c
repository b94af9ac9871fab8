/*
 * plan.c: chooses a kernel by shape, the way vendor libraries' heuristics do: few rows read the weight once with a warp a
 * column, more rows share tiles, and a long k over few tiles is split so that more blocks can work on it.
 */
#include "plan.h"

#define GEMV_ROWS 4
#define SMALL_ROWS 64
#define LONG_K 4096

static unsigned ceil_div(unsigned a, unsigned b)
{
	return (a + b - 1) / b;
}

/* Blocks that share the sum over k; 1 if a split does not pay. */
static int splits(int m, int n, int k)
{
	if (m <= GEMV_ROWS || k < 2 * n || (m > SMALL_ROWS && k < LONG_K))
		return 1;
	return k >= LONG_K ? 8 : k >= 512 ? 4 : 2;
}

static const char *const gemv_names[] = {
	"_Z7gemv_ntILi1EEvPKcS1_Pciiiiiii", "_Z7gemv_ntILi2EEvPKcS1_Pciiiiiii", "_Z7gemv_ntILi4EEvPKcS1_Pciiiiiii",
};

static int plan_split(struct vblas_plan *p, int m, int n, int k, size_t workspace)
{
	unsigned wide = ceil_div((unsigned)n, 64), high = ceil_div((unsigned)m, 16), tiles = wide * high;
	size_t share = (size_t)tiles * 16 * 64 * sizeof(float);
	int parts = splits(m, n, k);
	while (parts > 1 && VBLAS_COUNTER_BYTES + (size_t)parts * share > workspace)
		parts--;
	if (parts < 2 || tiles * sizeof(unsigned) > VBLAS_COUNTER_BYTES)
		return 0;
	p->k_share = (int)ceil_div((unsigned)k, (unsigned)parts * 8) * 8;
	p->grid[2] = ceil_div((unsigned)k, (unsigned)p->k_share);
	p->grid[0] = wide;
	p->grid[1] = high;
	p->threads = 32;
	p->tiles = tiles;
	p->workspace = VBLAS_COUNTER_BYTES + p->grid[2] * share;
	p->module = VBLAS_SPLITK;
	p->kernel = "_Z14gemm_splitk_ntPKcS0_PciiiiiiiiPfPjS3_S3_";
	return 1;
}

struct vblas_plan vblas_plan(int m, int n, int k, size_t workspace)
{
	struct vblas_plan p = {.grid = {1, 1, 1}};
	if (m <= GEMV_ROWS) {
		p.module = VBLAS_GEMV;
		p.kernel = gemv_names[m == 1 ? 0 : m == 2 ? 1 : 2];
		p.grid[0] = ceil_div((unsigned)n, 4);
		p.threads = 128;
		return p;
	}
	if (plan_split(&p, m, n, k, workspace))
		return p;
	int large = m > SMALL_ROWS;
	p.module = large ? VBLAS_LARGE : VBLAS_TILE;
	p.kernel = "_Z7gemm_ntPKcS0_Pciiiiiii";
	p.grid[0] = ceil_div((unsigned)n, 64);
	p.grid[1] = ceil_div((unsigned)m, large ? 64 : 16);
	p.threads = large ? 64 : 32;
	return p;
}
