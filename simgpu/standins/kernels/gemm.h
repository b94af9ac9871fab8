/*
 * gemm.h: D = activation(alpha * op(A) * op(B) + beta * C + bias), as far as all kernels share it.
 *
 * Each sum is over k in ascending order, one fused multiply-add at a time, of type S: double for operands of F64, otherwise float. A kernel
 * learns the operands' types when it runs, so there are two of each.
 */
#ifndef STANDIN_GEMM_H
#define STANDIN_GEMM_H

#include "device.h"

struct matrices {
	const void *a, *b, *c;
	void *d;
	const void *bias;
	const float *scale_a, *scale_b;
};

DEVICE int size_of(int type) { return type == R_64F ? 8 : type == R_32F ? 4 : type == R_16F || type == R_16BF ? 2 : 1; }

/* An operand in this block's matrices of the batch: element (i, k) is i * apart + k * next elements from the first. */
struct operand {
	const char *first;
	long long apart, next; /* in bytes */
	int end, type;
};

DEVICE operand operand_of(const void *matrix, const gemm_args &g, long long stride, int end, int type, bool along_k, int ld)
{
	int size = size_of(type);
	const char *first = g.arrays ? ((const char *const *)matrix)[BLOCK_Z] : (const char *)matrix + BLOCK_Z * stride * size;
	return {first, (long long)(along_k ? ld : 1) * size, (long long)(along_k ? 1 : ld) * size, end, type};
}

DEVICE operand operand_a(const matrices &p, const gemm_args &g) { return operand_of(p.a, g, g.stride_a, g.m, g.a_type, g.transposed_a, g.lda); }
DEVICE operand operand_b(const matrices &p, const gemm_args &g) { return operand_of(p.b, g, g.stride_b, g.n, g.b_type, !g.transposed_b, g.ldb); }

/* Element (i, k). An i past the end stands for the last one: its sums are never stored. */
DEVICE const char *element(const operand &o, int i, int k) { return o.first + (i < o.end ? i : o.end - 1) * o.apart + k * o.next; }

/* Does f<T>, T being the type of an operand whose sums are of type S. */
#define FOR_TYPE(S, type, f, ...)                         \
	if (sizeof(S) == sizeof(double))                  \
		f<double>(__VA_ARGS__);                   \
	else                                              \
		switch (type) {                           \
		case R_32F: f<float>(__VA_ARGS__); break; \
		case R_16F: f<f16>(__VA_ARGS__); break;   \
		case R_16BF: f<bf16>(__VA_ARGS__); break; \
		default: f<f8>(__VA_ARGS__);              \
		}

/* A block of 64 threads adds the products of its rows, one a thread, and four columns. */
#define NARROW 4
#define NARROW_STEPS 16
template <typename T, typename S> DEVICE void put_one(S &to, const char *from, int type) { to = value(*(const T *)from, type); }

template <typename T, typename S> DEVICE void add_row(S (&sum)[NARROW], const char *a, const operand &of, const S (*b)[NARROW], int steps)
{
#pragma unroll 1
	for (int k = 0; k < steps; k++, a += of.next) {
		S x = value(*(const T *)a, of.type);
#pragma unroll
		for (int j = 0; j < NARROW; j++)
			sum[j] += x * b[k][j];
	}
}

template <typename S> DEVICE void multiply_narrow(const matrices &p, const gemm_args &g, int row, int column, int from, int to, S (&sum)[NARROW])
{
	alignas(16) SHARED S staged[NARROW_STEPS][NARROW];
	operand a = operand_a(p, g), b = operand_b(p, g);
	int j = THREAD / NARROW_STEPS, at = THREAD % NARROW_STEPS;
	const char *x = element(a, row, from), *y = element(b, column + j, from + at);
#pragma unroll 1
	for (int k = from; k < to; k += NARROW_STEPS, x += NARROW_STEPS * a.next, y += NARROW_STEPS * b.next) {
		if (k + at < to) {
			FOR_TYPE(S, b.type, put_one, staged[at][j], y, b.type)
		}
		__syncthreads();
		FOR_TYPE(S, a.type, add_row, sum, x, a, staged, to - k < NARROW_STEPS ? to - k : NARROW_STEPS)
		__syncthreads();
	}
}

DEVICE double activate(double v, int activation)
{
	if (activation == ACTIVATION_RELU)
		return v > 0 ? v : v == v ? 0 : v;
	if (activation == ACTIVATION_GELU) { /* the form with tanh(u) = 1 - 2 / (e^2u + 1) */
		float x = (float)v, u = 0.7978845608028654f * (x + 0.044715f * x * x * x);
		float e = __nvvm_ex2_approx_f(2.8853900817779268f * u);
		return 0.5f * x * (2 - 2 / (e + 1));
	}
	return v;
}

SHARED_CODE void finish(const matrices &p, const gemm_args &g, int row, int column, double sum)
{
	if (row >= g.m || column >= g.n)
		return;
	long long z = g.arrays ? 0 : BLOCK_Z;
	const void *c = g.arrays ? ((const void *const *)p.c)[BLOCK_Z] : p.c;
	void *d = g.arrays ? ((void *const *)p.d)[BLOCK_Z] : p.d;
	double v = g.alpha * sum;
	if (p.scale_a)
		v *= *p.scale_a;
	if (p.scale_b)
		v *= *p.scale_b;
	if (g.beta != 0) /* a C without weight is not read: it may be NaN */
		v += g.beta * load_any(c, z * g.stride_c + (long long)column * g.ldc + row, g.c_type);
	if (p.bias)
		v += load_any(p.bias, z * g.stride_bias + row, g.bias_type);
	store_any(d, z * g.stride_d + (long long)column * g.ldd + row, g.d_type, activate(v, g.activation));
}

#define PARAMETERS \
	const void *a, const void *b, const void *c, void *d, const void *bias, const float *scale_a, const float *scale_b, gemm_args args
#define MATRICES {a, b, c, d, bias, scale_a, scale_b}

#endif
