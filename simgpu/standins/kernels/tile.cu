/*
 * tile.cu: a block computes a tile of D alone: of 64 x 64 elements, or of 64 x 4 if D has few columns.
 */
#include "gemm.h"

template <typename T, int ROWS, int COLUMNS, int ACROSS> DEVICE void tile(matrices all, const gemm_args &g)
{
	int row = BLOCK_X * 64 + THREAD / ACROSS * ROWS, column = BLOCK_Y * (ACROSS * COLUMNS) + THREAD % ACROSS * COLUMNS;
	if (row >= g.m || column >= g.n)
		return;
	matrices p = of_batch(all, g, sizeof(T));
	typename sum_of<T>::type sum[ROWS][COLUMNS] = {};
	if (g.transposed_a && !g.transposed_b)
		multiply<T, ROWS, COLUMNS, true>(p, g, row, column, 0, g.k, sum);
	else
		multiply<T, ROWS, COLUMNS, false>(p, g, row, column, 0, g.k, sum);
	double out[ROWS * COLUMNS]; /* a copy with addresses, so that the loop below is not 32 times in the code */
#pragma unroll
	for (int i = 0; i < ROWS; i++)
#pragma unroll
		for (int j = 0; j < COLUMNS; j++)
			out[i * COLUMNS + j] = sum[i][j];
#pragma unroll 1
	for (int i = 0; i < ROWS * COLUMNS; i++)
		finish(p, g, row + i / COLUMNS, column + i % COLUMNS, out[i]);
}

#define TILES(T, name) \
	KERNEL medusa_gemm_64x64_##name(PARAMETERS) { tile<T, 4, 8, 8>(MATRICES, args); } \
	KERNEL medusa_gemm_64x4_##name(PARAMETERS) { tile<T, 1, 4, 1>(MATRICES, args); }

TILES(double, f64)
TILES(float, f32)
TILES(f16, f16)
TILES(bf16, bf16)
TILES(f8, f8)
