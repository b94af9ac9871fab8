/*
 * splitk.cu: products of few rows and a long k. Blocks of one tile share the sum over k (grid z); the last of them to
 * finish adds the partial sums in the order of z, so the result does not depend on who was last.
 *
 * Two semaphores of four bytes each hold SEMAPHORE_REST between launches. Every block counts itself in on `entered` and
 * out on `left`; the last one out puts both back. A block that finds another value than a launch at rest can have led to
 * answers NaN: a wrong semaphore shows in the result and stays wrong. `counters` [tiles] is zero before the launch.
 */
#include "../semaphore.h"
#include "gemm_tile.h"

__device__ __forceinline__ unsigned count(unsigned *at) { return __atomic_fetch_add(at, 1u, __ATOMIC_RELAXED); }

__global__ void __launch_bounds__(32)
gemm_splitk_nt(const char *a, const char *b, char *c, int m, int n, int k, int lda, int ldb, int ldc, int type, int k_share, float *partial,
               unsigned *counters, unsigned *entered, unsigned *left)
{
	__shared__ bool sound, last;
	unsigned blocks = ncta_x() * ncta_y() * ncta_z();
	bool entry_sound = false;
	if (tid_x() == 0)
		entry_sound = count(entered) - SEMAPHORE_REST < blocks;

	int from = cta_z() * k_share, to = from + k_share < k ? from + k_share : k;
	Tile<16, 64, 4, 8> tile;
	tile.multiply({a, lda, m, type}, {b, ldb, n, type}, from, to);
	/* Partial sums lie as the threads hold them: [z][tile][vector][thread], four floats each. */
	long tiles = (long)ncta_x() * ncta_y(), tile_index = (long)cta_y() * ncta_x() + cta_x();
	float *mine = partial + tile_index * (16 * 64) + tid_x() * 4;
	long next = tiles * (16 * 64);
	float4v v[4 * 2];
	tile.copy(v);
#pragma unroll 1
	for (int i = 0; i < 4 * 2; i++)
		store4(mine + cta_z() * next + i * (4 * WARP), v[i]);

	__nvvm_membar_gl();
	barrier();
	if (tid_x() == 0) {
		last = count(counters + tile_index) == ncta_z() - 1u;
		unsigned exit_number = count(left) - SEMAPHORE_REST;
		sound = entry_sound && exit_number < blocks;
		if (entry_sound && exit_number == blocks - 1) {
			*entered = SEMAPHORE_REST;
			*left = SEMAPHORE_REST;
		}
	}
	barrier();
	if (!last)
		return;
	__nvvm_membar_gl();
#pragma unroll 1
	for (int i = 0; i < 4 * 2; i++) {
		v[i] = (float4v)(0.0f);
#pragma unroll 1
		for (int z = 0; z < ncta_z(); z++)
			v[i] += load4(mine + z * next + i * (4 * WARP));
		if (!sound)
			v[i] = (float4v)(__builtin_nanf(""));
	}
	tile.store(c, ldc, m, n, type, v);
}
