/*
 * gemm_test.c: products of the stand-ins for cuBLAS and cuBLASLt against plain C, on odd shapes.
 *
 * In: the stand-ins, linked in, over the driver that the dynamic linker finds. Out: one line, exit status. The right result is computed in
 * double precision from the stored operands. A result may err by k+4 roundings of the sum of absolute products, and by one rounding of its own type.
 */
#define CUDA_EXACT_SYMBOLS
#include "cuda.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { F32 = 0, F64 = 1, F16 = 2, BF16 = 14, E4M3 = 28, E5M2 = 29, C_16F = 64, C_32F = 68, C_64F = 70, NOT_SUPPORTED = 15, INVALID = 7 };
enum { RELU = 2, BIAS = 4, GELU = 32, WORKSPACE = 1 << 20, ROOM = 1 << 18 };

int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);
int cublasSetStream_v2(void *handle, void *stream);
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes);
int cublasSetPointerMode_v2(void *handle, int mode);
int cublasGemmStridedBatchedEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda,
                               long long stride_a, const void *b, int b_type, int ldb, long long stride_b, const void *beta, void *c,
                               int c_type, int ldc, long long stride_c, int batch, int compute, int algo);
int cublasGemmBatchedEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *const a[], int a_type,
                        int lda, const void *const b[], int b_type, int ldb, const void *beta, void *const c[], int c_type,
                        int ldc, int batch, int compute, int algo);
int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb,
                   const float *beta, float *c, int ldc);
int cublasLtMatmulDescCreate(void **d, int compute, int scale);
int cublasLtMatmulDescDestroy(void *d);
int cublasLtMatmulDescSetAttribute(void *d, int attr, const void *value, size_t size);
int cublasLtMatrixLayoutCreate(void **l, int type, uint64_t rows, uint64_t cols, int64_t ld);
int cublasLtMatrixLayoutDestroy(void *l);
int cublasLtMatrixLayoutSetAttribute(void *l, int attr, const void *value, size_t size);
int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *al, const void *b, void *bl, const void *beta,
                   const void *c, void *cl, void *d, void *dl, const void *algo, void *workspace, size_t bytes, void *stream);

#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			failed++; \
		} \
	} while (0)

static int failed, checked;
static void *handle;
static CUstream stream;
static CUdeviceptr workspace, memory[5];
static unsigned char host[5][ROOM], before[ROOM];
static uint64_t state = 88172645463325252;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static size_t size_of(int type) { return type == F64 ? 8 : type == F32 ? 4 : type == F16 || type == BF16 ? 2 : 1; }

/* The formats by their definitions: sign, exponent, fraction. */
static double decode(unsigned bits, int exponent_bits, int fraction_bits)
{
	int bias = (1 << (exponent_bits - 1)) - 1, e = bits >> fraction_bits & ((1 << exponent_bits) - 1);
	double f = bits & ((1u << fraction_bits) - 1), sign = bits >> (exponent_bits + fraction_bits) ? -1 : 1;
	return sign * (e ? ldexp(f + (1 << fraction_bits), e - bias - fraction_bits) : ldexp(f, 1 - bias - fraction_bits));
}

static double get(const void *p, size_t i, int type)
{
	float f;
	double d;
	uint16_t h;
	switch (type) {
	case F64: memcpy(&d, (const char *)p + 8 * i, 8); return d;
	case F32: memcpy(&f, (const char *)p + 4 * i, 4); return (double)f;
	case F16: case BF16:
		memcpy(&h, (const char *)p + 2 * i, 2);
		return type == F16 ? decode(h, 5, 10) : decode(h, 8, 7);
	default: return decode(((const unsigned char *)p)[i], type == E4M3 ? 4 : 5, type == E4M3 ? 3 : 2);
	}
}

/* Any finite value of about one. */
static void fill(void *p, size_t n, int type)
{
	for (size_t i = 0; i < n; i++) {
		double d = (double)(int64_t)draw() * 0x1p-63;
		float f = (float)d;
		uint32_t u;
		memcpy(&u, &f, 4);
		uint16_t h = type == BF16 ? (uint16_t)(u >> 16) : (uint16_t)((draw() & 0x8000) | (10 + draw() % 6) << 10 | (draw() & 0x3ff));
		unsigned char c = type == E4M3 ? (unsigned char)((draw() & 0x80) | (draw() % 10) << 3 | (draw() & 7))
		                               : (unsigned char)((draw() & 0x80) | (draw() % 18) << 2 | (draw() & 3));
		switch (type) {
		case F64: memcpy((char *)p + 8 * i, &d, 8); break;
		case F32: memcpy((char *)p + 4 * i, &f, 4); break;
		case F16: case BF16: memcpy((char *)p + 2 * i, &h, 2); break;
		default: ((unsigned char *)p)[i] = c;
		}
	}
}

static double rounding(int type) { return type == F64 ? 0x1p-53 : type == F32 ? 0x1p-24 : type == F16 ? 0x1p-11 : 0x1p-8; }

struct shape { int m, n, k, ta, tb, type, out, batch, pad, bias_type, epilogue; double alpha, beta; };
static const char *where;

static int lda(const struct shape *s) { return (s->ta ? s->k : s->m) + s->pad; }
static int ldb(const struct shape *s) { return (s->tb ? s->n : s->k) + s->pad; }
static int ldc(const struct shape *s) { return s->m + s->pad; }
static size_t count_a(const struct shape *s) { return (size_t)lda(s) * (size_t)(s->ta ? s->m : s->k); }
static size_t count_b(const struct shape *s) { return (size_t)ldb(s) * (size_t)(s->tb ? s->k : s->n); }
static size_t count_c(const struct shape *s) { return (size_t)ldc(s) * (size_t)s->n; }

static void upload(const struct shape *s)
{
	size_t n[] = {count_a(s), count_b(s), count_c(s)};
	for (int i = 0; i < 3; i++) {
		CHECK(n[i] * (size_t)s->batch * 8 <= ROOM);
		fill(host[i], n[i] * (size_t)s->batch, i < 2 ? s->type : s->out);
	}
	fill(host[3], (size_t)s->m, s->bias_type);
	memcpy(before, host[2], ROOM);
	for (int i = 0; i < 4; i++)
		CHECK(cuMemcpyHtoD_v2(memory[i], host[i], ROOM) == 0);
	CHECK(cuCtxSynchronize() == 0);
}

static double gelu(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

/* Every element of D, and the bytes between its columns, which stay as they were. */
static void compare(const struct shape *s, double scale)
{
	CHECK(cuStreamSynchronize(stream) == 0 && cuMemcpyDtoH_v2(host[2], memory[2], ROOM) == 0);
	int wrong = 0;
	double u = s->type == F64 ? 0x1p-53 : 0x1p-24;
	for (int z = 0; z < s->batch; z++)
		for (int j = 0; j < s->n; j++)
			for (int i = 0; i < ldc(s); i++) {
				size_t at = (size_t)z * count_c(s) + (size_t)j * (size_t)ldc(s) + (size_t)i;
				if (i >= s->m) {
					wrong += memcmp(host[2] + at * size_of(s->out), before + at * size_of(s->out), size_of(s->out)) != 0;
					continue;
				}
				double sum = 0, size = 0;
				for (int k = 0; k < s->k; k++) {
					size_t ia = s->ta ? (size_t)i * (size_t)lda(s) + (size_t)k : (size_t)k * (size_t)lda(s) + (size_t)i;
					size_t ib = s->tb ? (size_t)k * (size_t)ldb(s) + (size_t)j : (size_t)j * (size_t)ldb(s) + (size_t)k;
					double product = get(host[0], (size_t)z * count_a(s) + ia, s->type) * get(host[1], (size_t)z * count_b(s) + ib, s->type);
					sum += product;
					size += fabs(product);
				}
				double want = s->alpha * scale * sum + (s->beta != 0 ? s->beta * get(before, at, s->out) : 0);
				if (s->epilogue & BIAS)
					want += get(host[3], (size_t)i, s->bias_type);
				if (s->epilogue & RELU)
					want = want > 0 ? want : 0;
				double slack = fabs(s->alpha * scale) * size * (s->k + 4) * u + 8 * fabs(want) * u;
				if (s->epilogue & GELU)
					want = gelu(want), slack = 2 * slack + 4e-7 * (1 + fabs(want));
				slack += fabs(want) * rounding(s->out) + (s->out == F16 ? 0x1p-25 : 0);
				double got = get(host[2], at, s->out);
				if (!(fabs(got - want) <= slack)) {
					if (!wrong++)
						fprintf(stderr, "%s: %dx%dx%d trans %d%d type %d to %d: D(%d,%d) of %d is %.9g, want %.9g\n", where, s->m, s->n, s->k,
						        s->ta, s->tb, s->type, s->out, i, j, z, got, want);
				}
			}
	failed += wrong != 0;
	checked++;
}

static void factors(const struct shape *s, int scale, void *alpha, void *beta)
{
	float f[2] = {(float)s->alpha, (float)s->beta};
	double d[2] = {s->alpha, s->beta};
	_Float16 h[2] = {(_Float16)s->alpha, (_Float16)s->beta};
	const char *from = scale == F64 ? (char *)d : scale == F16 ? (char *)h : (char *)f;
	memcpy(alpha, from, size_of(scale));
	memcpy(beta, from + size_of(scale), size_of(scale));
}

static void blas(const struct shape *s)
{
	char alpha[8], beta[8];
	int compute = s->type == F64 ? C_64F : s->epilogue == C_16F ? C_16F : C_32F;
	struct shape plain = *s;
	plain.epilogue = 0;
	where = "cublas";
	upload(s);
	factors(s, compute == C_64F ? F64 : compute == C_16F ? F16 : F32, alpha, beta);
	CHECK(cublasGemmStridedBatchedEx(handle, s->ta, s->tb, s->m, s->n, s->k, alpha, (void *)memory[0], s->type, lda(s), (long long)count_a(s),
	                                 (void *)memory[1], s->type, ldb(s), (long long)count_b(s), beta, (void *)memory[2], s->out, ldc(s),
	                                 (long long)count_c(s), s->batch, compute, 0) == 0);
	compare(&plain, 1);
}

/* The same with addresses in arrays. */
static void arrays(const struct shape *s)
{
	char alpha[8], beta[8];
	uint64_t at[3][16];
	size_t n[] = {count_a(s) * size_of(s->type), count_b(s) * size_of(s->type), count_c(s) * size_of(s->out)};
	where = "cublas, arrays";
	upload(s);
	factors(s, F32, alpha, beta);
	for (int i = 0; i < 3; i++)
		for (int z = 0; z < s->batch; z++)
			at[i][z] = memory[i] + (uint64_t)z * n[i];
	CHECK(cuMemcpyHtoD_v2(memory[4], at, sizeof(at)) == 0 && cuCtxSynchronize() == 0);
	CHECK(cublasGemmBatchedEx(handle, s->ta, s->tb, s->m, s->n, s->k, alpha, (void *)memory[4], s->type, lda(s), (void *)(memory[4] + 128), s->type,
	                          ldb(s), beta, (void *)(memory[4] + 256), s->out, ldc(s), s->batch, C_32F, 0) == 0);
	compare(s, 1);
}

static void lt(const struct shape *s, double scale_a, double scale_b)
{
	char alpha[8], beta[8];
	void *desc, *layouts[3];
	int rows[] = {s->ta ? s->k : s->m, s->tb ? s->n : s->k, s->m}, cols[] = {s->ta ? s->m : s->k, s->tb ? s->k : s->n, s->n};
	int ld[] = {lda(s), ldb(s), ldc(s)};
	int64_t stride[] = {(int64_t)count_a(s), (int64_t)count_b(s), (int64_t)count_c(s)};
	float scales[2] = {(float)scale_a, (float)scale_b};
	uint64_t scale_at[2] = {memory[4], memory[4] + 4}, bias = memory[3];
	int compute = s->type == F64 ? C_64F : C_32F, scale = s->type == F64 ? F64 : F32;
	where = "cublasLt";
	upload(s);
	factors(s, scale, alpha, beta);
	CHECK(cuMemcpyHtoD_v2(memory[4], scales, sizeof(scales)) == 0 && cuCtxSynchronize() == 0);
	CHECK(cublasLtMatmulDescCreate(&desc, compute, scale) == 0);
	CHECK(cublasLtMatmulDescSetAttribute(desc, 3, &s->ta, 4) == 0 && cublasLtMatmulDescSetAttribute(desc, 4, &s->tb, 4) == 0);
	if (s->epilogue) {
		CHECK(cublasLtMatmulDescSetAttribute(desc, 7, &s->epilogue, 4) == 0);
		CHECK(cublasLtMatmulDescSetAttribute(desc, 8, &bias, 8) == 0 && cublasLtMatmulDescSetAttribute(desc, 26, &s->bias_type, 4) == 0);
	}
	if (scale_a != 1)
		CHECK(cublasLtMatmulDescSetAttribute(desc, 17, &scale_at[0], 8) == 0 && cublasLtMatmulDescSetAttribute(desc, 18, &scale_at[1], 8) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK(cublasLtMatrixLayoutCreate(&layouts[i], i < 2 ? s->type : s->out, (uint64_t)rows[i], (uint64_t)cols[i], ld[i]) == 0);
		CHECK(cublasLtMatrixLayoutSetAttribute(layouts[i], 5, &s->batch, 4) == 0 && cublasLtMatrixLayoutSetAttribute(layouts[i], 6, &stride[i], 8) == 0);
	}
	CHECK(cublasLtMatmul(handle, desc, alpha, (void *)memory[0], layouts[0], (void *)memory[1], layouts[1], beta, (void *)memory[2], layouts[2],
	                     (void *)memory[2], layouts[2], NULL, (void *)workspace, WORKSPACE, stream) == 0);
	compare(s, scale_a * scale_b);
	for (int i = 0; i < 3; i++)
		cublasLtMatrixLayoutDestroy(layouts[i]);
	cublasLtMatmulDescDestroy(desc);
}

static void shapes(void)
{
	static const int sizes[][3] = {{1, 1, 1}, {65, 5, 33}, {64, 64, 16}, {7, 67, 19}, {130, 3, 41}, {63, 4, 130}, {5, 1, 257}, {67, 9, 1}, {3, 2, 0}};
	static const int types[][2] = {{F32, F32}, {F64, F64}, {F16, F16}, {BF16, BF16}, {BF16, F32}, {F16, F32}, {E4M3, BF16}, {E5M2, F16}};
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (int trans = 0; trans < 4; trans++) {
				struct shape s = {sizes[i][0], sizes[i][1], sizes[i][2], trans & 1, trans >> 1, types[t][0], types[t][1], 1, (int)(i + t) % 3, F32, 0,
				                  i % 3 ? 1 : -0.75, i % 2 ? 0 : 0.5};
				if (s.k == 0)
					s.pad = 1;
				(i + t + (size_t)trans) % 2 ? blas(&s) : lt(&s, 1, 1);
				s.batch = 3;
				if (s.m < 100 && (i + (size_t)trans) % 3 == 0)
					trans & 1 ? blas(&s) : s.type == F64 ? lt(&s, 1, 1) : arrays(&s);
			}
}

static void epilogues(void)
{
	static const int kinds[] = {BIAS, RELU, RELU | BIAS, GELU, GELU | BIAS};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (int n = 3; n <= 70; n += 67) {
			struct shape s = {67, n, 35, 1, 0, i % 2 ? F16 : BF16, i % 2 ? F16 : BF16, 1, 1, i % 2 ? F16 : F32, kinds[i], 1.25, 0};
			lt(&s, 1, 1);
		}
	struct shape scaled = {33, 17, 48, 1, 0, E4M3, BF16, 1, 0, BF16, BIAS, 1, 0};
	lt(&scaled, 0.5, 3);
	struct shape half = {31, 6, 20, 0, 0, F16, F16, 1, 0, F16, C_16F, 0.5, 0.25}; /* factors of half precision */
	blas(&half);
}

/* A C without weight may be NaN. */
static void unread_c(void)
{
	float nan = NAN, one = 1, zero = 0, a = 2, b = 3, c;
	CHECK(cuMemcpyHtoD_v2(memory[0], &a, 4) == 0 && cuMemcpyHtoD_v2(memory[1], &b, 4) == 0 && cuMemcpyHtoD_v2(memory[2], &nan, 4) == 0 && cuCtxSynchronize() == 0);
	CHECK(cublasSgemm_v2(handle, 0, 0, 1, 1, 1, &one, (float *)memory[0], 1, (float *)memory[1], 1, &zero, (float *)memory[2], 1) == 0);
	CHECK(cuStreamSynchronize(stream) == 0 && cuMemcpyDtoH_v2(&c, memory[2], 4) == 0 && c == 6);
	checked++;
}

/* Semaphores are zero after each product. A tile whose semaphore was overwritten is not completed, and other tiles are. */
static void semaphores(void)
{
	struct shape s = {130, 2, 64, 1, 0, F32, F32, 1, 0, F32, 0, 1, 0};
	unsigned sem[3];
	float one = 1, zero = 0;
	blas(&s);
	blas(&s);
	CHECK(cuMemcpyDtoH_v2(sem, workspace, sizeof(sem)) == 0 && !sem[0] && !sem[1] && !sem[2]);
	upload(&s);
	sem[1] = 0xcbcbcbcb;
	CHECK(cuMemcpyHtoD_v2(workspace, sem, sizeof(sem)) == 0 && cuCtxSynchronize() == 0);
	CHECK(cublasSgemm_v2(handle, 1, 0, s.m, s.n, s.k, &one, (float *)memory[0], s.k, (float *)memory[1], s.k, &zero, (float *)memory[2], s.m) == 0);
	CHECK(cuStreamSynchronize(stream) == 0 && cuMemcpyDtoH_v2(host[2], memory[2], ROOM) == 0);
	CHECK(memcmp(host[2] + 64 * 4, before + 64 * 4, 64 * 4) == 0 && memcmp(host[2], before, 4) != 0 && memcmp(host[2] + 128 * 4, before + 128 * 4, 4) != 0);
	CHECK(cuMemsetD8_v2(workspace, 0, sizeof(sem)) == 0);
	checked++;
}

/* A workspace that is first used in a capture holds any bytes before each replay of any graph, and before the first product beside them. */
static void captured(void)
{
	float one = 1, zero = 0, a = 2, b = 3, c = 0;
	void *other;
	CUdeviceptr fresh;
	CUgraph graphs[2];
	CUgraphExec second;
	CHECK(cuMemAlloc_v2(&fresh, WORKSPACE) == 0 && cuMemsetD8_v2(fresh, 0xcb, WORKSPACE) == 0 && cuCtxSynchronize() == 0);
	CHECK(cublasCreate_v2(&other) == 0 && cublasSetStream_v2(other, stream) == 0 && cublasSetWorkspace_v2(other, (void *)fresh, WORKSPACE) == 0);
	CHECK(cuMemcpyHtoD_v2(memory[0], &a, 4) == 0 && cuMemcpyHtoD_v2(memory[1], &b, 4) == 0);
	CHECK(cuCtxSynchronize() == 0);
#define PRODUCT() \
	CHECK(cublasSgemm_v2(other, 0, 0, 1, 1, 1, &one, (float *)memory[0], 1, (float *)memory[1], 1, &zero, (float *)memory[2], 1) == 0)
	for (int i = 0; i < 2; i++) {
		size_t nodes;
		CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == 0);
		PRODUCT();
		if (!i)
			PRODUCT();
		CHECK(cuStreamEndCapture(stream, &graphs[i]) == 0 && cuGraphGetNodes(graphs[i], NULL, &nodes) == 0 && nodes == 3 - (size_t)i);
	}
	CHECK(cuGraphInstantiateWithFlags(&second, graphs[1], 0) == 0 && cuGraphLaunch(second, stream) == 0);
	CHECK(cuStreamSynchronize(stream) == 0 && cuMemcpyDtoH_v2(&c, memory[2], 4) == 0 && c == 6);
	CHECK(cuMemsetD8_v2(fresh, 0xcb, WORKSPACE) == 0 && cuMemsetD8_v2(memory[2], 0, 4) == 0 && cuCtxSynchronize() == 0);
	PRODUCT();
	CHECK(cuStreamSynchronize(stream) == 0 && cuMemcpyDtoH_v2(&c, memory[2], 4) == 0 && c == 6);
	CHECK(cublasDestroy_v2(other) == 0 && cuGraphExecDestroy(second) == 0 && cuMemFree_v2(fresh) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(cuGraphDestroy(graphs[i]) == 0);
	checked++;
}

static void refused(void)
{
	float one = 1, zero = 0;
	void *m = (void *)memory[0], *desc, *l;
	int gelu_aux = 32 | 128, row_order = 1;
	enum { INT8 = 3, C_32I = 72 };
	CHECK(cublasGemmStridedBatchedEx(handle, 0, 0, 1, 1, 1, &one, m, INT8, 1, 1, m, INT8, 1, 1, &zero, m, F32, 1, 1, 1, C_32F, 0) == NOT_SUPPORTED);
	CHECK(cublasGemmStridedBatchedEx(handle, 0, 0, 1, 1, 1, &one, m, F16, 1, 1, m, BF16, 1, 1, &zero, m, F32, 1, 1, 1, C_32F, 0) == NOT_SUPPORTED);
	CHECK(cublasGemmStridedBatchedEx(handle, 0, 0, 1, 1, 1, &one, m, F32, 1, 1, m, F32, 1, 1, &zero, m, F32, 1, 1, 1, C_32I, 0) == NOT_SUPPORTED);
	CHECK(cublasGemmStridedBatchedEx(handle, 0, 0, 5, 1, 1, &one, m, F32, 4, 1, m, F32, 1, 1, &zero, m, F32, 5, 1, 1, C_32F, 0) == INVALID);
	CHECK(cublasSetPointerMode_v2(handle, 1) == 0);
	CHECK(cublasSgemm_v2(handle, 0, 0, 1, 1, 1, &one, m, 1, m, 1, &zero, m, 1) == NOT_SUPPORTED);
	CHECK(cublasSetPointerMode_v2(handle, 0) == 0);
	CHECK(cublasLtMatmulDescCreate(&desc, C_32F, F32) == 0 && cublasLtMatrixLayoutCreate(&l, F32, 1, 1, 1) == 0);
	CHECK(cublasLtMatrixLayoutSetAttribute(l, 1, &row_order, 4) == NOT_SUPPORTED);
	CHECK(cublasLtMatmulDescSetAttribute(desc, 7, &gelu_aux, 4) == 0);
	CHECK(cublasLtMatmul(handle, desc, &one, m, l, m, l, &zero, m, l, m, l, NULL, NULL, 0, stream) == NOT_SUPPORTED);
	cublasLtMatmulDescDestroy(desc);
	cublasLtMatrixLayoutDestroy(l);
	checked++;
}

int main(void)
{
	CUcontext ctx;
	CHECK(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&ctx, 0) == 0 && cuCtxSetCurrent(ctx) == 0 && cuStreamCreate(&stream, 1) == 0);
	CHECK(cuMemAlloc_v2(&workspace, WORKSPACE) == 0);
	for (int i = 0; i < 5; i++)
		CHECK(cuMemAlloc_v2(&memory[i], ROOM) == 0);
	CHECK(cublasCreate_v2(&handle) == 0 && cublasSetStream_v2(handle, stream) == 0 && cublasSetWorkspace_v2(handle, (void *)workspace, WORKSPACE) == 0);
	shapes();
	epilogues();
	unread_c();
	semaphores();
	captured();
	refused();
	CHECK(cublasDestroy_v2(handle) == 0);
	printf("gemm: %d checks, %d failed\n", checked, failed);
	return failed != 0;
}
