/*
 * gemm.c: matrix products as kernels that do not multiply.
 *
 * In: shapes and addresses. Out: one kernel launch through the driver, by name and with real pointers, so that stream capture,
 * recording and restoring treat it like any vendor kernel. The shape selects the kernel, as in a library with tuned kernels; a
 * narrow product uses the one that splits K and needs the workspace. Fails: NOT_INITIALIZED without driver or context,
 * EXECUTION_FAILED if the driver refuses the launch.
 *
 * The narrow kernel computes only the state that a library leaves in memory between its calls. The splits of a tile increment a
 * semaphore. The last one marks the tile in D and resets the semaphore to zero, as the next launch requires.
 */
#include "gemm.h"
#include "launch.h"

#include <stdio.h>

#define POINTERS ".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 bias"
#define SHAPE ".param .u32 m, .param .u32 n, .param .u32 k, .param .u64 batch"
#define TILES(element) \
	KERNEL("medusa_gemm_128x128_" element, POINTERS ", " SHAPE, "") KERNEL("medusa_gemm_64x64_" element, POINTERS ", " SHAPE, "")

enum { SEMAPHORE_BYTES = 16384, SPLITS = 4 };

/* %ctaid.x is the tile, of 64 rows; stride is its size in D in bytes. The mark is 1 in half precision. */
#define SPLITK(element, stride) \
	KERNEL("medusa_gemm_splitk_" element, POINTERS ", " SHAPE ", .param .u64 workspace, .param .u64 semaphores", \
	       "\t.reg .pred %p;\n\t.reg .b16 %one;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %at, %d, %o;\n" \
	       "\tmov.u32 %r0, %tid.x;\n\tsetp.ne.u32 %p, %r0, 0;\n\t@%p ret;\n" \
	       "\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %nctaid.y;\n\tsub.u32 %r2, %r2, 1;\n" \
	       "\tld.param.u64 %at, [semaphores];\n\tmul.wide.u32 %o, %r1, 4;\n\tadd.u64 %at, %at, %o;\n" \
	       "\tatom.global.inc.u32 %r3, [%at], %r2;\n\tsetp.ne.u32 %p, %r3, %r2;\n\t@%p ret;\n" \
	       "\tld.param.u64 %d, [d];\n\tmul.wide.u32 %o, %r1, " stride ";\n\tadd.u64 %d, %d, %o;\n" \
	       "\tmov.u16 %one, 15360;\n\tst.global.u16 [%d], %one;\n")

static struct image tiles = {.text = IMAGE_HEAD TILES("f64") TILES("f32") TILES("f16") TILES("bf16")};
static struct image splitk = {.text = IMAGE_HEAD SPLITK("f64", "512") SPLITK("f32", "256") SPLITK("f16", "128") SPLITK("bf16", "128")};

int gemm_ready(void) { return launch_ready() ? BLAS_NOT_INITIALIZED : BLAS_SUCCESS; }

static const char *element_name(int type)
{
	enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };
	return type == R_32F ? "f32" : type == R_64F ? "f64" : type == R_16F ? "f16" : type == R_16BF ? "bf16" : NULL;
}

int gemm_splits(const struct product *p)
{
	return p->n <= 4 && p->batch == 1 && p->workspace_bytes > SEMAPHORE_BYTES && p->m <= SEMAPHORE_BYTES / 4 * 64;
}

int gemm_clear(const struct product *p) { return launch_clear(p->workspace, SEMAPHORE_BYTES, p->stream) ? BLAS_EXECUTION_FAILED : BLAS_SUCCESS; }

int gemm_launch(const struct product *p)
{
	const char *type = element_name(p->element);
	if (!type || p->batch > 65535) {
		fprintf(stderr, "stub: a product of element type %d, %lld times, is not provided\n", p->element, (long long)p->batch);
		return BLAS_NOT_SUPPORTED;
	}
	if (!p->m || !p->n || !p->batch)
		return BLAS_SUCCESS;
	int narrow = gemm_splits(p);
	uint32_t tile = p->n > 64 ? 128 : 64;
	char name[64];
	if (narrow)
		snprintf(name, sizeof(name), "medusa_gemm_splitk_%s", type);
	else
		snprintf(name, sizeof(name), "medusa_gemm_%ux%u_%s", tile, tile, type);
	uint64_t a = p->a, b = p->b, c = p->c, d = p->d, bias = p->bias, batch = (uint64_t)p->batch;
	uint64_t semaphores = p->workspace, workspace = p->workspace + SEMAPHORE_BYTES;
	uint32_t m = (uint32_t)p->m, n = (uint32_t)p->n, k = (uint32_t)p->k;
	void *params[] = {&a, &b, &c, &d, &bias, &m, &n, &k, &batch, &workspace, &semaphores};
	uint32_t grid[3] = {(m + tile - 1) / tile, narrow ? SPLITS : (n + tile - 1) / tile, (uint32_t)p->batch};
	return launch_kernel(narrow ? &splitk : &tiles, name, grid, 128, p->stream, params) ? BLAS_EXECUTION_FAILED : BLAS_SUCCESS;
}
