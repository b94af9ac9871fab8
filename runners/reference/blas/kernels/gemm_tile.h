/*
 * gemm_tile.h: one block's share of C = A * B^T, kept in registers.
 *
 * A block owns TM x TN elements of C, a thread MM x MN of them. Operands pass through shared memory, transposed so that a
 * thread reads its MM and MN values of one k as vectors. Each element is summed over k in ascending order, one fused
 * multiply-add at a time: all tile sizes give the same bits.
 */
#ifndef GEMM_TILE_H
#define GEMM_TILE_H

#include "storage.h"

/* Columns of k that are staged at a time. In the last step, zeros stand for those past the end. */
#define TK 8

/* An operand of [rows][k]: the first element of a row. Rows past the end stand for the last one: their results are never stored. */
struct Operand {
	const char *first;
	int ld, rows, type;

	__device__ __forceinline__ const char *row(int r) const { return first + (long)(r < rows ? r : rows - 1) * ld * size_of(type); }
};

/* This thread's share of an operand's slices of ROWS x TK. */
template <int ROWS, int THREADS> struct Slice {
	static const int count = ROWS * TK / 4 / THREADS;
	const char *from[count];

	__device__ __forceinline__ void start(const Operand &o, int first, int k)
	{
#pragma unroll
		for (int i = 0; i < count; i++) {
			int at = i * THREADS + tid_x();
			from[i] = o.row(first + at / (TK / 4)) + (k + at % (TK / 4) * 4) * size_of(o.type);
		}
	}

	template <typename T> __device__ __forceinline__ void stage(float (*shared)[ROWS + 4])
	{
#pragma unroll
		for (int i = 0; i < count; i++) {
			int at = i * THREADS + tid_x(), r = at / (TK / 4), k = at % (TK / 4) * 4;
			float4v v = load4((const T *)from[i]);
			from[i] += TK * sizeof(T);
			shared[k][r] = v.x;
			shared[k + 1][r] = v.y;
			shared[k + 2][r] = v.z;
			shared[k + 3][r] = v.w;
		}
	}

	/* The same element by element: of rows that are not made of vectors, and at the end of k. */
	template <typename T> __device__ __forceinline__ void stage_elements(float (*shared)[ROWS + 4], const Operand &o, int first, int from, int to)
	{
#pragma unroll 1
		for (int at = tid_x(); at < ROWS * TK; at += THREADS) {
			int r = at / TK, k = at % TK;
			shared[k][r] = from + k < to ? load((const T *)o.row(first + r) + from + k) : 0.0f;
		}
	}
};

template <int TM, int TN, int MM, int MN> struct Tile {
	static const int threads = (TM / MM) * (TN / MN), across = TN / MN, groups = MN / 4;
	float4v sum[MM][groups];
	int row, col; /* of this thread's corner in C */

	__device__ __forceinline__ void multiply(const Operand &a, const Operand &b, int from, int to)
	{
		alignas(16) static __shared__ float as[TK][TM + 4], bs[TK][TN + 4];
		int tr = tid_x() / across * MM, tc = tid_x() % across * 4;
		Slice<TM, threads> rows;
		Slice<TN, threads> cols;
		row = cta_y() * TM + tr;
		col = cta_x() * TN + tc;
		rows.start(a, cta_y() * TM, from);
		cols.start(b, cta_x() * TN, from);
#pragma unroll
		for (int i = 0; i < MM; i++)
#pragma unroll
			for (int g = 0; g < groups; g++)
				sum[i][g] = (float4v)(0.0f);
		bool vectors = whole_vectors(a.ld) && whole_vectors(b.ld);
		for (int k0 = from; k0 < to; k0 += TK) {
			if (vectors && k0 + TK <= to) {
				FOR_STORAGE(a.type, rows.template stage, as)
				FOR_STORAGE(a.type, cols.template stage, bs)
			} else {
				FOR_STORAGE(a.type, rows.template stage_elements, as, a, cta_y() * TM, k0, to)
				FOR_STORAGE(a.type, cols.template stage_elements, bs, b, cta_x() * TN, k0, to)
			}
			barrier();
#pragma unroll 2
			for (int k = 0; k < TK; k++) {
				float x[MM];
				float4v y[groups];
#pragma unroll
				for (int i = 0; i < MM; i += 4)
					*(float4v *)(x + i) = load4(&as[k][tr + i]);
#pragma unroll
				for (int g = 0; g < groups; g++)
					y[g] = load4(&bs[k][tc + g * across * 4]);
#pragma unroll
				for (int i = 0; i < MM; i++)
#pragma unroll
					for (int g = 0; g < groups; g++)
						sum[i][g] += x[i] * y[g];
			}
			barrier();
		}
	}

	/* The sums with addresses: a loop over them is once in the code. */
	__device__ __forceinline__ void copy(float4v (&v)[MM * groups])
	{
#pragma unroll
		for (int i = 0; i < MM * groups; i++)
			v[i] = sum[i / groups][i % groups];
	}

	/* Stores them, as far as they lie inside C. */
	__device__ __forceinline__ void store(char *c, int ldc, int m, int n, int type, const float4v (&v)[MM * groups])
	{
#pragma unroll 1
		for (int i = 0; i < MM * groups; i++) {
			int r = row + i / groups, at = col + i % groups * across * 4;
			if (r >= m || at >= n)
				continue;
			char *to = c + ((long)r * ldc + at) * size_of(type);
			if (at + 4 <= n && whole_vectors(ldc))
				FOR_STORAGE(type, store4_at, to, v[i])
			else
#pragma unroll 1
				for (int j = 0; j < 4 && at + j < n; j++)
					FOR_STORAGE(type, store_at, to + j * size_of(type), ((const float *)&v[i])[j])
		}
	}
};

#endif
