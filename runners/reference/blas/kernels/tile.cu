/* tile.cu: products of a few rows, 16 x 64 elements a block. Shares its kernel's name with large.cu, on purpose. */
#include "gemm_tile.h"

template <typename T>
__global__ void __launch_bounds__(32)
gemm_nt(const T *a, const T *b, T *c, int m, int n, int k, int lda, int ldb, int ldc)
{
	Tile<T, 16, 64, 4, 8> tile;
	tile.multiply(a, b, m, n, lda, ldb, 0, k);
	float4v v[4 * 2];
	tile.copy(v);
	tile.store(c, ldc, m, n, v);
}

template __global__ void gemm_nt<float>(const float *, const float *, float *, int, int, int, int, int, int);
template __global__ void gemm_nt<half>(const half *, const half *, half *, int, int, int, int, int, int);
template __global__ void gemm_nt<bf16>(const bf16 *, const bf16 *, bf16 *, int, int, int, int, int, int);
