/*
 * cublas.c: the products of cuBLAS that PyTorch's linear layers and attention use, and their handle.
 *
 * In: the library's public calls. Out: launches of gemm.c. Fails: calls return the library's statuses. All other
 * functions are generated and return NOT_SUPPORTED.
 */
#include "gemm.h"
#include "stub.h"

#include <stdlib.h>

struct handle {
	void *stream;
	void *workspace;
	size_t workspace_bytes;
	int math, pointer_mode;
	uint64_t given;    /* the last workspace that was given */
	uint64_t *cleared; /* workspaces with cleared semaphores */
	size_t n_cleared;
};

EXPORT int cublasCreate_v2(struct handle **h)
{
	if (!h)
		return BLAS_INVALID_VALUE;
	int r = gemm_ready();
	if (r)
		return r;
	*h = calloc(1, sizeof(**h));
	return *h ? BLAS_SUCCESS : BLAS_ALLOC_FAILED;
}

EXPORT int cublasDestroy_v2(struct handle *h)
{
	if (h)
		free(h->cleared);
	free(h);
	return BLAS_SUCCESS;
}

/*
 * As documented, setting a stream drops the user's workspace. If the user gives none before the next product, it keeps the
 * workspace for itself between products, as torch from 2.15 on does while it captures. The workspace may then contain anything
 * when the user gives it again.
 */
EXPORT int cublasSetStream_v2(struct handle *h, void *stream)
{
	if (!h)
		return BLAS_NOT_INITIALIZED;
	for (size_t i = 0; !h->workspace && i < h->n_cleared; i++)
		if (h->cleared[i] == h->given)
			h->cleared[i] = h->cleared[--h->n_cleared];
	h->stream = stream;
	h->workspace = NULL;
	h->workspace_bytes = 0;
	return BLAS_SUCCESS;
}

EXPORT int cublasSetWorkspace_v2(struct handle *h, void *workspace, size_t bytes)
{
	if (!h)
		return BLAS_NOT_INITIALIZED;
	h->workspace = workspace;
	h->given = (uintptr_t)workspace;
	h->workspace_bytes = bytes;
	return BLAS_SUCCESS;
}

#define PROPERTY(name, field) \
	EXPORT int cublasSet##name(struct handle *h, int v) \
	{ \
		if (!h) \
			return BLAS_NOT_INITIALIZED; \
		h->field = v; \
		return BLAS_SUCCESS; \
	} \
	EXPORT int cublasGet##name(struct handle *h, int *v) \
	{ \
		if (!h || !v) \
			return h ? BLAS_INVALID_VALUE : BLAS_NOT_INITIALIZED; \
		*v = h->field; \
		return BLAS_SUCCESS; \
	}
PROPERTY(MathMode, math)
PROPERTY(PointerMode_v2, pointer_mode)

/*
 * A workspace belongs to the library until it is taken back. Its semaphores are cleared at its first use, and every kernel leaves
 * them cleared. A graph that is captured later does not include the clearing, so it relies on the contents of memory.
 */
static int clear_once(struct handle *h, const struct product *p)
{
	for (size_t i = 0; i < h->n_cleared; i++)
		if (h->cleared[i] == p->workspace)
			return BLAS_SUCCESS;
	uint64_t *more = realloc(h->cleared, (h->n_cleared + 1) * sizeof(*more));
	if (!more)
		return BLAS_ALLOC_FAILED;
	h->cleared = more;
	h->cleared[h->n_cleared++] = p->workspace;
	return gemm_clear(p);
}

static int product(struct handle *h, int m, int n, int k, const void *a, const void *b, void *c, int type, int batch)
{
	if (!h)
		return BLAS_NOT_INITIALIZED;
	if (m < 0 || n < 0 || k < 0 || batch < 0)
		return BLAS_INVALID_VALUE;
	struct product p = {.a = (uintptr_t)a, .b = (uintptr_t)b, .c = (uintptr_t)c, .d = (uintptr_t)c, .m = m, .n = n, .k = k,
	                    .batch = batch, .element = type, .workspace = (uintptr_t)h->workspace,
	                    .workspace_bytes = h->workspace_bytes, .stream = h->stream};
	int r = gemm_splits(&p) ? clear_once(h, &p) : BLAS_SUCCESS;
	return r ? r : gemm_launch(&p);
}

EXPORT int cublasGemmEx(struct handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type,
                        int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc,
                        int compute, int algo)
{
	(void)ta, (void)tb, (void)alpha, (void)a_type, (void)lda, (void)b_type, (void)ldb, (void)beta, (void)ldc, (void)compute;
	(void)algo;
	return product(h, m, n, k, a, b, c, c_type, 1);
}

EXPORT int cublasGemmStridedBatchedEx(struct handle *h, int ta, int tb, int m, int n, int k, const void *alpha,
                                      const void *a, int a_type, int lda, long long stride_a, const void *b, int b_type,
                                      int ldb, long long stride_b, const void *beta, void *c, int c_type, int ldc,
                                      long long stride_c, int batch, int compute, int algo)
{
	(void)ta, (void)tb, (void)alpha, (void)a_type, (void)lda, (void)stride_a, (void)b_type, (void)ldb, (void)stride_b;
	(void)beta, (void)ldc, (void)stride_c, (void)compute, (void)algo;
	return product(h, m, n, k, a, b, c, c_type, batch);
}

/* Arrays in device memory point to the operands. The kernel gets these arrays, and does not write through them. */
EXPORT int cublasGemmBatchedEx(struct handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *const a[],
                               int a_type, int lda, const void *const b[], int b_type, int ldb, const void *beta, void *const c[],
                               int c_type, int ldc, int batch, int compute, int algo)
{
	(void)ta, (void)tb, (void)alpha, (void)a_type, (void)lda, (void)b_type, (void)ldb, (void)beta, (void)ldc, (void)compute;
	(void)algo;
	if (!h)
		return BLAS_NOT_INITIALIZED;
	if (m < 0 || n < 0 || k < 0 || batch < 0)
		return BLAS_INVALID_VALUE;
	struct product p = {.a = (uintptr_t)a, .b = (uintptr_t)b, .c = (uintptr_t)c, .d = (uintptr_t)c, .m = m, .n = n, .k = k,
	                    .batch = batch, .element = c_type, .stream = h->stream};
	return gemm_launch(&p);
}

/* Single and double precision have calls of their own with equal arguments; type is the library's number for the precision. */
#define TYPED(letter, real, type) \
	EXPORT int cublas##letter##gemm_v2(struct handle *h, int ta, int tb, int m, int n, int k, const real *alpha, const real *a, \
	                                   int lda, const real *b, int ldb, const real *beta, real *c, int ldc) \
	{ \
		(void)ta, (void)tb, (void)alpha, (void)lda, (void)ldb, (void)beta, (void)ldc; \
		return product(h, m, n, k, a, b, c, type, 1); \
	} \
	EXPORT int cublas##letter##gemmStridedBatched(struct handle *h, int ta, int tb, int m, int n, int k, const real *alpha, \
	                                              const real *a, int lda, long long stride_a, const real *b, int ldb, \
	                                              long long stride_b, const real *beta, real *c, int ldc, \
	                                              long long stride_c, int batch) \
	{ \
		(void)ta, (void)tb, (void)alpha, (void)lda, (void)stride_a, (void)ldb, (void)stride_b, (void)beta, (void)ldc; \
		(void)stride_c; \
		return product(h, m, n, k, a, b, c, type, batch); \
	}
TYPED(S, float, 0)
TYPED(D, double, 1)
