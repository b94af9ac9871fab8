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

/* Mangled names, by data type. */
static const char *const split_names[] = {
	"_Z14gemm_splitk_ntIfEvPKT_S2_PS0_iiiiiiiPfPjS5_S5_",
	"_Z14gemm_splitk_ntIDF16_EvPKT_S2_PS0_iiiiiiiPfPjS5_S5_",
	"_Z14gemm_splitk_ntIDF16bEvPKT_S2_PS0_iiiiiiiPfPjS5_S5_",
};
static const char *const gemm_names[] = {
	"_Z7gemm_ntIfEvPKT_S2_PS0_iiiiii", "_Z7gemm_ntIDF16_EvPKT_S2_PS0_iiiiii", "_Z7gemm_ntIDF16bEvPKT_S2_PS0_iiiiii",
};
static const char *const gemv_names[][3] = {
	{"_Z7gemv_ntIfLi1EEvPKT_S2_PS0_iiiiii", "_Z7gemv_ntIfLi2EEvPKT_S2_PS0_iiiiii", "_Z7gemv_ntIfLi4EEvPKT_S2_PS0_iiiiii"},
	{"_Z7gemv_ntIDF16_Li1EEvPKT_S2_PS0_iiiiii", "_Z7gemv_ntIDF16_Li2EEvPKT_S2_PS0_iiiiii",
     "_Z7gemv_ntIDF16_Li4EEvPKT_S2_PS0_iiiiii"},
	{"_Z7gemv_ntIDF16bLi1EEvPKT_S2_PS0_iiiiii", "_Z7gemv_ntIDF16bLi2EEvPKT_S2_PS0_iiiiii",
     "_Z7gemv_ntIDF16bLi4EEvPKT_S2_PS0_iiiiii"},
};

static int plan_split(struct vblas_plan *p, vblasDataType_t type, int m, int n, int k, size_t workspace)
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
	p->kernel = split_names[type];
	return 1;
}

struct vblas_plan vblas_plan(vblasDataType_t type, int m, int n, int k, size_t workspace)
{
	struct vblas_plan p = {.grid = {1, 1, 1}};
	if (m <= GEMV_ROWS) {
		p.module = VBLAS_GEMV;
		p.kernel = gemv_names[type][m == 1 ? 0 : m == 2 ? 1 : 2];
		p.grid[0] = ceil_div((unsigned)n, 4);
		p.threads = 128;
		return p;
	}
	if (plan_split(&p, type, m, n, k, workspace))
		return p;
	int large = m > SMALL_ROWS;
	p.module = large ? VBLAS_LARGE : VBLAS_TILE;
	p.kernel = gemm_names[type];
	p.grid[0] = ceil_div((unsigned)n, 64);
	p.grid[1] = ceil_div((unsigned)m, large ? 64 : 16);
	p.threads = large ? 64 : 32;
	return p;
}
