/*
 * splitk.cu: products with at most four columns and a long k. The blocks of one tile share the sum over k.
 *
 * Each block leaves its partial sums in the workspace and increments the tile's semaphore. The one that finds all others done adds
 * the partial sums in the order of k, and its increment has wrapped the semaphore to zero, as the next launch requires. If the
 * semaphore had another value at the start, the tile is completed too early or never, and the semaphore stays wrong.
 */
#include "gemm.h"

template <typename T> DEVICE void splitk(matrices p, const gemm_args &g, void *workspace, unsigned *semaphores)
{
	typedef typename sum_of<T>::type S;
	SHARED bool last;
	S *partial = (S *)workspace;
	int row = BLOCK_X * 64 + THREAD, splits = BLOCKS_Y, share = (g.k + splits - 1) / splits;
	int from = BLOCK_Y * share < g.k ? BLOCK_Y * share : g.k, to = from + share < g.k ? from + share : g.k;
	if (row < g.m) {
		S sum[1][4] = {};
		multiply<T, 1, 4, false>(p, g, row, 0, from, to, sum);
#pragma unroll
		for (int j = 0; j < 4; j++)
			partial[((long long)BLOCK_Y * 4 + j) * g.m + row] = sum[0][j];
	}
	__nvvm_membar_gl();
	__syncthreads();
	if (THREAD == 0)
		last = __nvvm_atom_inc_gen_ui(&semaphores[BLOCK_X], (unsigned)splits - 1) == (unsigned)splits - 1;
	__syncthreads();
	if (!last || row >= g.m)
		return;
	__nvvm_membar_gl();
#pragma unroll 1
	for (int j = 0; j < g.n; j++) {
		S sum = 0;
#pragma unroll 1
		for (int z = 0; z < splits; z++)
			sum += partial[((long long)z * 4 + j) * g.m + row];
		finish(p, g, row, j, sum);
	}
}

/* The last parameter is never followed: it is an address of the host's stack, as cuBLASLt has them. */
#define SPLITK(T, name) \
	KERNEL medusa_gemm_splitk_##name(PARAMETERS, void *workspace, unsigned *semaphores, const void *) { splitk<T>(MATRICES, args, workspace, semaphores); }

SPLITK(double, f64)
SPLITK(float, f32)
SPLITK(f16, f16)
SPLITK(bf16, bf16)
SPLITK(f8, f8)
