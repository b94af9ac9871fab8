/*
 * tile.cu: a block computes a tile of D alone: of 64 x 64 elements, or of 64 x 4 if D has few columns.
 */
#include "gemm.h"

/* The large tile: 128 threads, of ROWS x COLUMNS elements each, which they keep in registers. Operands pass through shared memory in slices of
 * STEPS columns of k: a thread puts EACH elements of one k there, GROUP rows from each other. */
#define SIDE 64
#define ROWS 4
#define COLUMNS 8
#define STEPS 8
#define GROUP (128 / STEPS)
#define EACH (SIDE / GROUP)

/* Four neighbours are read as vectors. */
template <typename S> struct alignas(16) slice { S at[STEPS][SIDE + 16 / sizeof(S)]; };

template <typename T, typename S> DEVICE void put(slice<S> &to, int at, const char *const (&from)[EACH], int type)
{
#pragma unroll
	for (int i = 0; i < EACH; i++)
		to.at[at][THREAD / STEPS + i * GROUP] = value(*(const T *)from[i], type);
}

template <int N, typename S> DEVICE void get(S (&to)[N], const S *from)
{
	typedef S vector __attribute__((ext_vector_type(16 / sizeof(S))));
#pragma unroll
	for (int i = 0; i < N; i += 16 / sizeof(S))
		*(vector *)(to + i) = *(const vector *)(from + i);
}

template <typename S> DEVICE void tile(const matrices &p, const gemm_args &g)
{
	SHARED slice<S> as, bs;
	operand a = operand_a(p, g), b = operand_b(p, g);
	int from_row = BLOCK_X * SIDE, from_column = BLOCK_Y * SIDE, at = THREAD % STEPS;
	int r = THREAD / (SIDE / COLUMNS) * ROWS, c = THREAD % (SIDE / COLUMNS) * COLUMNS, row = from_row + r, column = from_column + c;
	const char *from_a[EACH], *from_b[EACH];
#pragma unroll
	for (int i = 0; i < EACH; i++) {
		from_a[i] = element(a, from_row + THREAD / STEPS + i * GROUP, at);
		from_b[i] = element(b, from_column + THREAD / STEPS + i * GROUP, at);
	}
	S sum[ROWS][COLUMNS] = {};
#pragma unroll 1
	for (int k = 0; k < g.k; k += STEPS) {
		if (k + at < g.k) {
			FOR_TYPE(S, a.type, put, as, at, from_a, a.type)
			FOR_TYPE(S, b.type, put, bs, at, from_b, b.type)
		}
#pragma unroll
		for (int i = 0; i < EACH; i++) {
			from_a[i] += STEPS * a.next;
			from_b[i] += STEPS * b.next;
		}
		__syncthreads();
		if (row < g.m && column < g.n) {
#pragma unroll 1
			for (int step = 0; step < STEPS && k + step < g.k; step++) {
				S x[ROWS], y[COLUMNS];
				get(x, &as.at[step][r]);
				get(y, &bs.at[step][c]);
#pragma unroll
				for (int i = 0; i < ROWS; i++)
#pragma unroll
					for (int j = 0; j < COLUMNS; j++)
						sum[i][j] += x[i] * y[j];
			}
		}
		__syncthreads();
	}
	if (row >= g.m || column >= g.n)
		return;
	S out[ROWS * COLUMNS]; /* a copy with addresses, so that the loop below is not 32 times in the code */
#pragma unroll
	for (int i = 0; i < ROWS * COLUMNS; i++)
		out[i] = sum[i / COLUMNS][i % COLUMNS];
#pragma unroll 1
	for (int i = 0; i < ROWS * COLUMNS; i++)
		finish(p, g, row + i / COLUMNS, column + i % COLUMNS, out[i]);
}

template <typename S> DEVICE void narrow(const matrices &p, const gemm_args &g)
{
	int row = BLOCK_X * 64 + THREAD, column = BLOCK_Y * NARROW;
	S sum[NARROW] = {};
	multiply_narrow(p, g, row, column, 0, g.k, sum);
	S out[NARROW]; /* as above */
#pragma unroll
	for (int j = 0; j < NARROW; j++)
		out[j] = sum[j];
#pragma unroll 1
	for (int j = 0; j < NARROW; j++)
		finish(p, g, row, column + j, out[j]);
}

KERNEL medusa_gemm_64x64_f32(PARAMETERS) { tile<float>(MATRICES, args); }
KERNEL medusa_gemm_64x64_f64(PARAMETERS) { tile<double>(MATRICES, args); }
KERNEL medusa_gemm_64x4_f32(PARAMETERS) { narrow<float>(MATRICES, args); }
KERNEL medusa_gemm_64x4_f64(PARAMETERS) { narrow<double>(MATRICES, args); }
