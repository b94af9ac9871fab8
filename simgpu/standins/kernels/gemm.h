/*
 * gemm.h: D = activation(alpha * op(A) * op(B) + beta * C + bias), as far as all kernels share it.
 *
 * A thread keeps ROWS x COLUMNS sums in registers. Each is summed over k in ascending order, one fused multiply-add at a time.
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

/* Those of this block's number in the batch. */
DEVICE matrices of_batch(matrices all, const gemm_args &g, int size)
{
	int z = BLOCK_Z;
	if (g.arrays)
		return {((const void *const *)all.a)[z], ((const void *const *)all.b)[z], ((const void *const *)all.c)[z], ((void *const *)all.d)[z],
		        nullptr, nullptr, nullptr};
	all.a = (const char *)all.a + z * g.stride_a * size;
	all.b = (const char *)all.b + z * g.stride_b * size;
	return all;
}

/* Rows and columns past the end stand for the last one: their sums are never stored. */
template <typename T, int ROWS, int COLUMNS, bool UNIT, typename S = typename sum_of<T>::type>
DEVICE void multiply(const matrices &p, const gemm_args &g, int row, int column, int from, int to, S (&sum)[ROWS][COLUMNS])
{
	const T *a[ROWS], *b[COLUMNS];
	long long next_a = UNIT || g.transposed_a ? 1 : g.lda, next_b = UNIT || !g.transposed_b ? 1 : g.ldb;
#pragma unroll
	for (int i = 0; i < ROWS; i++) {
		long long r = row + i < g.m ? row + i : g.m - 1;
		a[i] = (const T *)p.a + r * (g.transposed_a ? g.lda : 1) + from * next_a;
	}
#pragma unroll
	for (int j = 0; j < COLUMNS; j++) {
		long long c = column + j < g.n ? column + j : g.n - 1;
		b[j] = (const T *)p.b + c * (g.transposed_b ? 1 : g.ldb) + from * next_b;
	}
#pragma unroll 2
	for (int k = from; k < to; k++) {
		S x[ROWS];
#pragma unroll
		for (int i = 0; i < ROWS; i++) {
			x[i] = value(*a[i], g.a_type);
			a[i] += next_a;
		}
#pragma unroll
		for (int j = 0; j < COLUMNS; j++) {
			S y = value(*b[j], g.b_type);
			b[j] += next_b;
#pragma unroll
			for (int i = 0; i < ROWS; i++)
				sum[i][j] += x[i] * y;
		}
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

DEVICE void finish(const matrices &p, const gemm_args &g, int row, int column, double sum)
{
	if (row >= g.m || column >= g.n)
		return;
	long long z = g.arrays ? 0 : BLOCK_Z;
	double v = g.alpha * sum;
	if (p.scale_a)
		v *= *p.scale_a;
	if (p.scale_b)
		v *= *p.scale_b;
	if (g.beta != 0) /* a C without weight is not read: it may be NaN */
		v += g.beta * load_any(p.c, z * g.stride_c + (long long)column * g.ldc + row, g.c_type);
	if (p.bias)
		v += load_any(p.bias, z * g.stride_bias + row, g.bias_type);
	store_any(p.d, z * g.stride_d + (long long)column * g.ldd + row, g.d_type, activate(v, g.activation));
}

#define PARAMETERS \
	const void *a, const void *b, const void *c, void *d, const void *bias, const float *scale_a, const float *scale_b, gemm_args args
#define MATRICES {a, b, c, d, bias, scale_a, scale_b}

#endif
