/*
 * gemm.c: matrix products of the stand-ins, computed by kernels of their own (folder kernels).
 *
 * In: shapes and addresses. Out: one kernel launch through the driver, by name and with real pointers, so that stream capture,
 * recording and restoring treat it like any vendor kernel. The shape selects the kernel, as in a library with tuned kernels; a
 * product of few columns uses the one that splits K and needs the workspace. Kernels of each file are a module, loaded at the first
 * product that needs it. Fails: NOT_INITIALIZED without driver or context, NOT_SUPPORTED for types without a kernel,
 * EXECUTION_FAILED if the driver refuses the launch.
 *
 * If the simulated GPU runs machine code as no-ops, operands come from kernels that had no effect, and products of models in full size would take
 * hours. Then products do not multiply either. They compute only the state that a library leaves in memory between its calls: the last split of a tile
 * marks the tile in D and resets the semaphore.
 */
#include "gemm.h"
#include "launch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEMAPHORE_BYTES = 16384, SPLITS = 4, NARROW = 4, ROWS = 64 };

extern const char gemm_image_tile[], gemm_image_splitk[];
static struct image tiles = {.text = gemm_image_tile}, splitk = {.text = gemm_image_splitk};

#define PARAMETERS \
	".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 bias, .param .u64 scale_a, .param .u64 scale_b, " \
	".param .align 8 .b8 args[120]"
_Static_assert(sizeof(struct gemm_args) == 120, "the parameter of the idle kernels");
#define IDLE(type) KERNEL("medusa_gemm_64x64_" type, PARAMETERS, "") KERNEL("medusa_gemm_64x4_" type, PARAMETERS, "")

/* %ctaid.x is the tile, of 64 rows; stride is the least size that it can have in D, in bytes. The mark is 1 in half precision. */
#define IDLE_SPLITK(type, stride) \
	KERNEL("medusa_gemm_splitk_" type, PARAMETERS ", .param .u64 workspace, .param .u64 semaphores, .param .u64 host", \
	       "\t.reg .pred %p;\n\t.reg .b16 %one;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %at, %d, %o;\n" \
	       "\tmov.u32 %r0, %tid.x;\n\tsetp.ne.u32 %p, %r0, 0;\n\t@%p ret;\n" \
	       "\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %nctaid.y;\n\tsub.u32 %r2, %r2, 1;\n" \
	       "\tld.param.u64 %at, [semaphores];\n\tmul.wide.u32 %o, %r1, 4;\n\tadd.u64 %at, %at, %o;\n" \
	       "\tatom.global.inc.u32 %r3, [%at], %r2;\n\tsetp.ne.u32 %p, %r3, %r2;\n\t@%p ret;\n" \
	       "\tld.param.u64 %d, [d];\n\tmul.wide.u32 %o, %r1, " stride ";\n\tadd.u64 %d, %d, %o;\n" \
	       "\tmov.u16 %one, 15360;\n\tst.global.u16 [%d], %one;\n")

static struct image idle_tiles = {.text = IMAGE_HEAD IDLE("f64") IDLE("f32")};
static struct image idle_splitk = {.text = IMAGE_HEAD IDLE_SPLITK("f64", "128") IDLE_SPLITK("f32", "128")};

static int is_idle;

static void read_environment(void)
{
	const char *v = getenv("SIMGPU_MACHINE_CODE");
	is_idle = v && strcmp(v, "no-op") == 0;
}

static struct image *image_of(int splits)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, read_environment);
	return splits ? is_idle ? &idle_splitk : &splitk : is_idle ? &idle_tiles : &tiles;
}

int gemm_ready(void) { return launch_ready() ? BLAS_NOT_INITIALIZED : BLAS_SUCCESS; }

int gemm_computes(int compute)
{
	enum { C_16F = 64, C_16F_PEDANTIC, C_32F = 68, C_32F_PEDANTIC, C_64F, C_64F_PEDANTIC, C_FAST_16F = 74, C_FAST_16BF, C_FAST_TF32 = 77 };
	switch (compute) {
	case C_16F: case C_16F_PEDANTIC: case C_32F: case C_32F_PEDANTIC: case C_64F: case C_64F_PEDANTIC: case C_FAST_16F: case C_FAST_16BF:
	case C_FAST_TF32: return 1;
	default: return 0;
	}
}

int gemm_scale_of(int compute) { return compute == 64 || compute == 65 ? R_16F : compute == 70 || compute == 71 ? R_64F : R_32F; }

double gemm_factor(const void *factor, int scale)
{
	return scale == R_64F ? *(const double *)factor : scale == R_16F ? (double)*(const _Float16 *)factor : (double)*(const float *)factor;
}

static int refuse(const char *what, long long number)
{
	fprintf(stderr, "stub: a product with %s %lld is not provided\n", what, number);
	return BLAS_NOT_SUPPORTED;
}

static int is_f8(int type) { return type == R_8F_E4M3 || type == R_8F_E5M2; }
static int is_covered(int type) { return type == R_32F || type == R_64F || type == R_16F || type == R_16BF || is_f8(type); }

int gemm_check(const struct product *p)
{
	const struct gemm_args *g = &p->args;
	if (!is_covered(g->a_type))
		return refuse("operands of type", g->a_type);
	if (g->b_type != g->a_type && !(is_f8(g->a_type) && is_f8(g->b_type)))
		return refuse("operands of two types, the second", g->b_type);
	if (!is_covered(g->d_type) || is_f8(g->d_type))
		return refuse("a result of type", g->d_type);
	if (g->beta != 0 && !is_covered(g->c_type))
		return refuse("C of type", g->c_type);
	if (p->bias && !is_covered(g->bias_type))
		return refuse("a bias of type", g->bias_type);
	if (p->batch > 65535)
		return refuse("a batch of", p->batch);
	/* The block's rows are the grid's first dimension, its columns the second. */
	if (g->n > 65535LL * 64)
		return refuse("columns", g->n);
	return BLAS_SUCCESS;
}

int gemm_splits(const struct product *p)
{
	const struct gemm_args *g = &p->args;
	uint64_t partial = (uint64_t)SPLITS * NARROW * (uint64_t)g->m * sizeof(double);
	return g->n <= NARROW && p->batch == 1 && !g->arrays && p->workspace_bytes >= SEMAPHORE_BYTES + partial && g->m <= SEMAPHORE_BYTES / 4 * ROWS;
}

int gemm_clear(const struct product *p) { return launch_clear(p->workspace, SEMAPHORE_BYTES, p->stream) ? BLAS_EXECUTION_FAILED : BLAS_SUCCESS; }

int gemm_launch(const struct product *p)
{
	struct gemm_args g = p->args;
	int r = gemm_check(p);
	if (r || !g.m || !g.n || !p->batch)
		return r;
	int splits = gemm_splits(p), narrow = g.n <= NARROW;
	char name[64];
	snprintf(name, sizeof(name), "medusa_gemm_%s_%s", splits ? "splitk" : narrow ? "64x4" : "64x64", g.a_type == R_64F ? "f64" : "f32");
	uint64_t a = p->a, b = p->b, c = p->c, d = p->d, bias = p->bias, scale_a = p->scale_a, scale_b = p->scale_b;
	uint64_t semaphores = p->workspace, workspace = p->workspace + SEMAPHORE_BYTES;
	const void *host = &g; /* cuBLASLt passes addresses of its stack to kernels that do not follow them */
	void *params[] = {&a, &b, &c, &d, &bias, &scale_a, &scale_b, &g, &workspace, &semaphores, &host};
	uint32_t columns = narrow ? NARROW : 64;
	uint32_t grid[3] = {((uint32_t)g.m + ROWS - 1) / ROWS, splits ? SPLITS : ((uint32_t)g.n + columns - 1) / columns, (uint32_t)p->batch};
	return launch_kernel(image_of(splits), name, grid, narrow ? 64 : 128, p->stream, params) ? BLAS_EXECUTION_FAILED : BLAS_SUCCESS;
}
