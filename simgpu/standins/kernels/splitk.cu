/*
 * splitk.cu: products with at most four columns and a long k. The blocks of one tile share the sum over k.
 *
 * Each block leaves its partial sums in the workspace and increments the tile's semaphore. The one that finds all others done adds
 * the partial sums in the order of k, and its increment has wrapped the semaphore to zero, as the next launch requires. If the
 * semaphore had another value at the start, the tile is completed too early or never, and the semaphore stays wrong.
 */
#include "gemm.h"

template <typename S> DEVICE void splitk(const matrices &p, const gemm_args &g, void *workspace, unsigned *semaphores)
{
	SHARED bool last;
	S *partial = (S *)workspace, sum[NARROW] = {};
	int row = BLOCK_X * 64 + THREAD, splits = BLOCKS_Y, share = (g.k + splits - 1) / splits;
	int from = BLOCK_Y * share < g.k ? BLOCK_Y * share : g.k, to = from + share < g.k ? from + share : g.k;
	multiply_narrow(p, g, row, 0, from, to, sum);
	if (row < g.m)
#pragma unroll
		for (int j = 0; j < NARROW; j++)
			partial[((long long)BLOCK_Y * NARROW + j) * g.m + row] = sum[j];
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
		S total = 0;
#pragma unroll 1
		for (int z = 0; z < splits; z++)
			total += partial[((long long)z * NARROW + j) * g.m + row];
		finish(p, g, row, j, total);
	}
}

/* The last parameter is never followed: it is an address of the host's stack, as cuBLASLt has them. */
#define SPLITK(S, name) \
	KERNEL medusa_gemm_splitk_##name(PARAMETERS, void *workspace, unsigned *semaphores, const void *) { splitk<S>(MATRICES, args, workspace, semaphores); }

SPLITK(float, f32)
SPLITK(double, f64)
