/*
 * cublas.c: the products of cuBLAS that PyTorch's linear layers and attention use, and their handle.
 *
 * In: the library's public calls. Out: launches of gemm.c. Fails: calls return the library's statuses. All other
 * functions are generated and return NOT_SUPPORTED.
 */
#include "gemm.h"
#include "launch.h"
#include "stub.h"

#include <stdlib.h>

struct handle {
	void *stream;
	void *workspace;
	size_t workspace_bytes;
	int math, pointer_mode;
	uint64_t given;    /* the last workspace that was given */
	struct cleared {
		uint64_t workspace, capture; /* whose graph clears it; 0: its semaphores are cleared */
	} *cleared;
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
 * workspace for itself between products, as torch from 2.15 on does while it captures. The workspace may then contain any
 * bytes when the user gives it again.
 */
EXPORT int cublasSetStream_v2(struct handle *h, void *stream)
{
	if (!h)
		return BLAS_NOT_INITIALIZED;
	for (size_t i = 0; !h->workspace && i < h->n_cleared; i++)
		if (h->cleared[i].workspace == h->given)
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
 * them cleared. A graph that is captured later does not include the clearing, so it relies on the contents of memory. If the first use
 * is in a capture, its graph clears them, and so does that of each later capture: graphs may run in any order.
 */
static int clear_once(struct handle *h, const struct product *p)
{
	uint64_t capture;
	if (launch_capture(p->stream, &capture))
		return BLAS_EXECUTION_FAILED;
	struct cleared *found = NULL;
	for (size_t i = 0; i < h->n_cleared && !found; i++)
		if (h->cleared[i].workspace == p->workspace)
			found = &h->cleared[i];
	if (found && (!found->capture || found->capture == capture))
		return BLAS_SUCCESS;
	if (!found) {
		struct cleared *more = realloc(h->cleared, (h->n_cleared + 1) * sizeof(*more));
		if (!more)
			return BLAS_ALLOC_FAILED;
		h->cleared = more;
		found = &more[h->n_cleared++];
	}
	*found = (struct cleared){p->workspace, capture};
	return gemm_clear(p);
}

/* The arguments of all forms. alpha and beta have the type that the type of compute implies. */
struct call {
	const void *alpha, *beta;
	int compute;
	long long batch;
	const void *a, *b;
	void *c;
	struct gemm_args args;
};

static int product(struct handle *h, const struct call *call)
{
	struct gemm_args g = call->args;
	if (!h)
		return BLAS_NOT_INITIALIZED;
	int transposable = g.transposed_a >= 0 && g.transposed_a <= 2 && g.transposed_b >= 0 && g.transposed_b <= 2;
	if (g.m < 0 || g.n < 0 || g.k < 0 || call->batch < 0 || !call->alpha || !call->beta || !transposable)
		return BLAS_INVALID_VALUE;
	if (g.lda < (g.transposed_a ? g.k : g.m) || g.ldb < (g.transposed_b ? g.n : g.k) || g.ldc < g.m)
		return BLAS_INVALID_VALUE;
	if (h->pointer_mode || !gemm_computes(call->compute)) {
		fprintf(stderr, "stub: a product with factors in device memory, or computed in type %d, is not provided\n", call->compute);
		return BLAS_NOT_SUPPORTED;
	}
	g.alpha = gemm_factor(call->alpha, gemm_scale_of(call->compute));
	g.beta = gemm_factor(call->beta, gemm_scale_of(call->compute));
	g.ldd = g.ldc; /* the result replaces C */
	g.d_type = g.c_type;
	g.stride_d = g.stride_c;
	struct product p = {.a = (uintptr_t)call->a, .b = (uintptr_t)call->b, .c = (uintptr_t)call->c, .d = (uintptr_t)call->c,
	                    .batch = call->batch, .args = g, .workspace = (uintptr_t)h->workspace, .workspace_bytes = h->workspace_bytes,
	                    .stream = h->stream};
	int r = gemm_check(&p);
	if (!r && gemm_splits(&p))
		r = clear_once(h, &p);
	return r ? r : gemm_launch(&p);
}

EXPORT int cublasGemmEx(struct handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type,
                        int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc,
                        int compute, int algo)
{
	(void)algo;
	struct call call = {alpha, beta, compute, 1, a, b, c, {.m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc,
	                    .transposed_a = ta, .transposed_b = tb, .a_type = a_type, .b_type = b_type, .c_type = c_type}};
	return product(h, &call);
}

EXPORT int cublasGemmStridedBatchedEx(struct handle *h, int ta, int tb, int m, int n, int k, const void *alpha,
                                      const void *a, int a_type, int lda, long long stride_a, const void *b, int b_type,
                                      int ldb, long long stride_b, const void *beta, void *c, int c_type, int ldc,
                                      long long stride_c, int batch, int compute, int algo)
{
	(void)algo;
	struct call call = {alpha, beta, compute, batch, a, b, c, {.stride_a = stride_a, .stride_b = stride_b, .stride_c = stride_c,
	                    .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc, .transposed_a = ta, .transposed_b = tb,
	                    .a_type = a_type, .b_type = b_type, .c_type = c_type}};
	return product(h, &call);
}

/* Arrays in device memory hold the operands' addresses. The kernel reads them. */
EXPORT int cublasGemmBatchedEx(struct handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *const a[],
                               int a_type, int lda, const void *const b[], int b_type, int ldb, const void *beta, void *const c[],
                               int c_type, int ldc, int batch, int compute, int algo)
{
	(void)algo;
	struct call call = {alpha, beta, compute, batch, a, b, (void *)(uintptr_t)c, {.m = m, .n = n, .k = k, .lda = lda, .ldb = ldb,
	                    .ldc = ldc, .transposed_a = ta, .transposed_b = tb, .arrays = 1, .a_type = a_type, .b_type = b_type,
	                    .c_type = c_type}};
	return product(h, &call);
}

/* Single and double precision have calls of their own with equal arguments; type is the library's number for the precision. */
#define TYPED(letter, real, type, compute) \
	EXPORT int cublas##letter##gemm_v2(struct handle *h, int ta, int tb, int m, int n, int k, const real *alpha, const real *a, \
	                                   int lda, const real *b, int ldb, const real *beta, real *c, int ldc) \
	{ \
		return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, type, lda, b, type, ldb, beta, c, type, ldc, compute, 0); \
	} \
	EXPORT int cublas##letter##gemmStridedBatched(struct handle *h, int ta, int tb, int m, int n, int k, const real *alpha, \
	                                              const real *a, int lda, long long stride_a, const real *b, int ldb, \
	                                              long long stride_b, const real *beta, real *c, int ldc, \
	                                              long long stride_c, int batch) \
	{ \
		return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, type, lda, stride_a, b, type, ldb, stride_b, beta, c, type, ldc, \
		                                  stride_c, batch, compute, 0); \
	}
TYPED(S, float, R_32F, 68)
TYPED(D, double, R_64F, 70)
