/*
 * cublasLt.c: the descriptors and the one product of cuBLASLt.
 *
 * In: the library's public calls. Out: launches of gemm.c, with the bias and the caller's workspace as parameters. Fails:
 * calls return the library's statuses. Attributes other than those read here are accepted and ignored, because no product is
 * computed.
 */
#include "gemm.h"
#include "stub.h"

#include <stdlib.h>
#include <string.h>

struct desc { int transposed_a, transposed_b; uint64_t bias; };
struct layout { int type, batch; uint64_t rows, cols; };
struct preference { uint64_t workspace; };
struct algo { uint64_t data[8]; };
struct heuristic { struct algo algo; size_t workspace; int state; float waves; int reserved[4]; };
_Static_assert(sizeof(struct heuristic) == 96, "cublasLtMatmulHeuristicResult_t");

#define CREATE(out, ...) \
	do { \
		if (!(out)) \
			return BLAS_INVALID_VALUE; \
		*(out) = malloc(sizeof(**(out))); \
		if (!*(out)) \
			return BLAS_ALLOC_FAILED; \
		**(out) = (__typeof__(**(out)))__VA_ARGS__; \
		return BLAS_SUCCESS; \
	} while (0)

EXPORT int cublasLtMatmulDescCreate(struct desc **d, int compute, int scale)
{
	(void)compute, (void)scale;
	CREATE(d, {0});
}

EXPORT int cublasLtMatmulDescDestroy(struct desc *d)
{
	free(d);
	return BLAS_SUCCESS;
}

EXPORT int cublasLtMatmulDescSetAttribute(struct desc *d, int attr, const void *value, size_t size)
{
	enum { TRANSA = 3, TRANSB = 4, BIAS_POINTER = 8 };
	if (!d || !value)
		return BLAS_INVALID_VALUE;
	void *field = attr == TRANSA ? (void *)&d->transposed_a : attr == TRANSB ? (void *)&d->transposed_b : attr == BIAS_POINTER ? (void *)&d->bias : NULL;
	size_t want = attr == BIAS_POINTER ? sizeof(d->bias) : sizeof(d->transposed_a);
	if (field && size != want)
		return BLAS_INVALID_VALUE;
	if (field)
		memcpy(field, value, size);
	return BLAS_SUCCESS;
}

EXPORT int cublasLtMatrixLayoutCreate(struct layout **l, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
	(void)ld;
	CREATE(l, {.type = type, .batch = 1, .rows = rows, .cols = cols});
}

EXPORT int cublasLtMatrixLayoutDestroy(struct layout *l)
{
	free(l);
	return BLAS_SUCCESS;
}

EXPORT int cublasLtMatrixLayoutSetAttribute(struct layout *l, int attr, const void *value, size_t size)
{
	enum { BATCH_COUNT = 5 };
	if (!l || !value || (attr == BATCH_COUNT && size != sizeof(l->batch)))
		return BLAS_INVALID_VALUE;
	if (attr == BATCH_COUNT)
		memcpy(&l->batch, value, size);
	return BLAS_SUCCESS;
}

EXPORT int cublasLtMatmulPreferenceCreate(struct preference **p)
{
	CREATE(p, {0});
}

EXPORT int cublasLtMatmulPreferenceDestroy(struct preference *p)
{
	free(p);
	return BLAS_SUCCESS;
}

EXPORT int cublasLtMatmulPreferenceSetAttribute(struct preference *p, int attr, const void *value, size_t size)
{
	enum { MAX_WORKSPACE_BYTES = 1 };
	if (!p || !value || (attr == MAX_WORKSPACE_BYTES && size != sizeof(p->workspace)))
		return BLAS_INVALID_VALUE;
	if (attr == MAX_WORKSPACE_BYTES)
		memcpy(&p->workspace, value, size);
	return BLAS_SUCCESS;
}

EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, const struct desc *d, const struct layout *a, const struct layout *b,
                                          const struct layout *c, const struct layout *out, const struct preference *p,
                                          int wanted, struct heuristic *results, int *returned)
{
	(void)handle, (void)d, (void)a, (void)b, (void)c, (void)out;
	if (!p || !results || !returned || wanted < 1)
		return BLAS_INVALID_VALUE;
	*results = (struct heuristic){.workspace = p->workspace, .waves = 1};
	*returned = 1;
	return BLAS_SUCCESS;
}

EXPORT int cublasLtMatmul(void *handle, const struct desc *desc, const void *alpha, const void *a, const struct layout *al,
                          const void *b, const struct layout *bl, const void *beta, const void *c, const struct layout *cl,
                          void *d, const struct layout *dl, const struct algo *algo, void *workspace, size_t workspace_bytes,
                          void *stream)
{
	(void)alpha, (void)bl, (void)beta, (void)cl, (void)algo;
	int r = gemm_ready();
	if (r || !handle)
		return BLAS_NOT_INITIALIZED;
	if (!desc || !al || !dl)
		return BLAS_INVALID_VALUE;
	struct product p = {.a = (uintptr_t)a, .b = (uintptr_t)b, .c = (uintptr_t)c, .d = (uintptr_t)d, .bias = desc->bias,
	                    .workspace = (uintptr_t)workspace, .workspace_bytes = workspace_bytes, .m = (int64_t)dl->rows,
	                    .n = (int64_t)dl->cols, .k = (int64_t)(desc->transposed_a ? al->rows : al->cols),
	                    .batch = dl->batch, .element = dl->type, .stream = stream};
	/* Between calls this workspace belongs to the caller, so its semaphores are cleared for each call. */
	if (gemm_splits(&p) && (r = gemm_clear(&p)))
		return r;
	return gemm_launch(&p);
}
