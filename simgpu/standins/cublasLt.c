/*
 * cublasLt.c: the descriptors and the one product of cuBLASLt.
 *
 * In: the library's public calls. Out: launches of gemm.c, with the bias and the caller's workspace as parameters. Fails:
 * calls return the library's statuses. An attribute that would change the result and that no kernel knows is NOT_SUPPORTED, unless
 * its value is the default.
 */
#include "gemm.h"
#include "stub.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct desc { int compute, scale, transposed_a, transposed_b, epilogue, bias_type; uint64_t bias, scale_a, scale_b; int64_t stride_bias; };
struct layout { int type, batch; uint64_t rows, cols; int64_t ld, stride; };
enum { EPILOGUE_DEFAULT = 1, EPILOGUE_RELU = 2, EPILOGUE_BIAS = 4, EPILOGUE_GELU = 32 };
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
	CREATE(d, {.compute = compute, .scale = scale, .epilogue = EPILOGUE_DEFAULT, .bias_type = -1});
}

EXPORT int cublasLtMatmulDescDestroy(struct desc *d)
{
	free(d);
	return BLAS_SUCCESS;
}

struct attribute { int number; size_t offset, size; };
#define ATTRIBUTE(number, type, field) {number, offsetof(type, field), sizeof(((type *)0)->field)}

static int is_zero(const void *value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (((const unsigned char *)value)[i])
			return 0;
	return 1;
}

/* Sets a field of the table. ignored: a bit for each attribute that leaves the result as it is. */
static int set(void *object, const struct attribute *table, size_t n, uint64_t ignored, int attr, const void *value, size_t size)
{
	if (!object || !value)
		return BLAS_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		if (table[i].number == attr) {
			if (size != table[i].size)
				return BLAS_INVALID_VALUE;
			memcpy((char *)object + table[i].offset, value, size);
			return BLAS_SUCCESS;
		}
	if (is_zero(value, size) || (attr >= 0 && attr < 64 && ignored >> attr & 1))
		return BLAS_SUCCESS;
	fprintf(stderr, "stub: attribute %d of a product is not provided\n", attr);
	return BLAS_NOT_SUPPORTED;
}

EXPORT int cublasLtMatmulDescSetAttribute(struct desc *d, int attr, const void *value, size_t size)
{
	enum { SM_COUNT_TARGET = 15, FAST_ACCUM = 25 };
	static const struct attribute table[] = {
		ATTRIBUTE(0, struct desc, compute), ATTRIBUTE(1, struct desc, scale), ATTRIBUTE(3, struct desc, transposed_a),
		ATTRIBUTE(4, struct desc, transposed_b), ATTRIBUTE(7, struct desc, epilogue), ATTRIBUTE(8, struct desc, bias),
		ATTRIBUTE(10, struct desc, stride_bias), ATTRIBUTE(17, struct desc, scale_a), ATTRIBUTE(18, struct desc, scale_b),
		ATTRIBUTE(26, struct desc, bias_type),
	};
	return set(d, table, sizeof(table) / sizeof(table[0]), 1u << SM_COUNT_TARGET | 1u << FAST_ACCUM, attr, value, size);
}

EXPORT int cublasLtMatrixLayoutCreate(struct layout **l, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
	CREATE(l, {.type = type, .batch = 1, .rows = rows, .cols = cols, .ld = ld});
}

EXPORT int cublasLtMatrixLayoutDestroy(struct layout *l)
{
	free(l);
	return BLAS_SUCCESS;
}

/* Matrices are stored by columns (order 0, the default). */
EXPORT int cublasLtMatrixLayoutSetAttribute(struct layout *l, int attr, const void *value, size_t size)
{
	static const struct attribute table[] = {
		ATTRIBUTE(0, struct layout, type), ATTRIBUTE(2, struct layout, rows), ATTRIBUTE(3, struct layout, cols),
		ATTRIBUTE(4, struct layout, ld), ATTRIBUTE(5, struct layout, batch), ATTRIBUTE(6, struct layout, stride),
	};
	return set(l, table, sizeof(table) / sizeof(table[0]), 0, attr, value, size);
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

/* Sizes of the operands have to fit each other; the numbers of the kernels are ints. */
static int describe(const struct desc *d, const struct layout *a, const struct layout *b, const struct layout *c, const struct layout *out,
                    struct product *p)
{
	if (!d || !a || !b || !c || !out)
		return BLAS_INVALID_VALUE;
	uint64_t m = d->transposed_a ? a->cols : a->rows, k = d->transposed_a ? a->rows : a->cols, n = d->transposed_b ? b->rows : b->cols;
	if (k != (d->transposed_b ? b->cols : b->rows) || m != out->rows || n != out->cols || m != c->rows || n != c->cols ||
	    a->batch != out->batch || b->batch != out->batch || c->batch != out->batch || out->batch < 0)
		return BLAS_INVALID_VALUE;
	const struct layout *all[] = {a, b, c, out};
	for (int i = 0; i < 4; i++)
		if (all[i]->ld < (int64_t)all[i]->rows || all[i]->ld > INT32_MAX || all[i]->cols > INT32_MAX)
			return BLAS_INVALID_VALUE;
	int activation = d->epilogue & ~EPILOGUE_BIAS;
	if (!gemm_computes(d->compute) || (activation != 0 && activation != EPILOGUE_DEFAULT && activation != EPILOGUE_RELU && activation != EPILOGUE_GELU)) {
		fprintf(stderr, "stub: a product computed in type %d with epilogue %d is not provided\n", d->compute, d->epilogue);
		return BLAS_NOT_SUPPORTED;
	}
	int has_bias = d->epilogue & EPILOGUE_BIAS;
	if (has_bias && !d->bias)
		return BLAS_INVALID_VALUE;
	p->bias = has_bias ? d->bias : 0;
	p->scale_a = d->scale_a;
	p->scale_b = d->scale_b;
	p->batch = out->batch;
	p->args = (struct gemm_args){
		.stride_a = a->stride, .stride_b = b->stride, .stride_c = c->stride, .stride_d = out->stride, .stride_bias = d->stride_bias,
		.m = (int)m, .n = (int)n, .k = (int)k, .lda = (int)a->ld, .ldb = (int)b->ld, .ldc = (int)c->ld, .ldd = (int)out->ld,
		.transposed_a = d->transposed_a, .transposed_b = d->transposed_b, .a_type = a->type, .b_type = b->type, .c_type = c->type,
		.d_type = out->type, .bias_type = d->bias_type < 0 ? out->type : d->bias_type,
		.activation = activation == EPILOGUE_RELU ? ACTIVATION_RELU : activation == EPILOGUE_GELU ? ACTIVATION_GELU : ACTIVATION_NONE,
	};
	return gemm_check(p);
}

EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, const struct desc *d, const struct layout *a, const struct layout *b,
                                          const struct layout *c, const struct layout *out, const struct preference *p,
                                          int wanted, struct heuristic *results, int *returned)
{
	(void)handle;
	struct product product = {0};
	if (!p || !results || !returned || wanted < 1)
		return BLAS_INVALID_VALUE;
	*returned = 0;
	int r = describe(d, a, b, c, out, &product);
	if (r)
		return r;
	*results = (struct heuristic){.workspace = p->workspace, .waves = 1};
	*returned = 1;
	return BLAS_SUCCESS;
}

EXPORT int cublasLtMatmul(void *handle, const struct desc *desc, const void *alpha, const void *a, const struct layout *al,
                          const void *b, const struct layout *bl, const void *beta, const void *c, const struct layout *cl,
                          void *d, const struct layout *dl, const struct algo *algo, void *workspace, size_t workspace_bytes,
                          void *stream)
{
	(void)algo;
	int r = gemm_ready();
	if (r || !handle)
		return BLAS_NOT_INITIALIZED;
	struct product p = {.a = (uintptr_t)a, .b = (uintptr_t)b, .c = (uintptr_t)c, .d = (uintptr_t)d, .workspace = (uintptr_t)workspace,
	                    .workspace_bytes = workspace_bytes, .stream = stream};
	if (!alpha || !beta)
		return BLAS_INVALID_VALUE;
	if ((r = describe(desc, al, bl, cl, dl, &p)))
		return r;
	p.args.alpha = gemm_factor(alpha, desc->scale);
	p.args.beta = gemm_factor(beta, desc->scale);
	if ((r = gemm_check(&p)))
		return r;
	/* Between calls this workspace belongs to the caller, so its semaphores are cleared for each call. */
	if (gemm_splits(&p) && (r = gemm_clear(&p)))
		return r;
	return gemm_launch(&p);
}
