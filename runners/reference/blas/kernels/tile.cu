/* tile.cu: products of a few rows, 16 x 64 elements a block. Shares its kernel's name with large.cu, on purpose. */
#include "gemm_tile.h"

__global__ void __launch_bounds__(32)
gemm_nt(const char *a, const char *b, char *c, int m, int n, int k, int lda, int ldb, int ldc, int type)
{
	Tile<16, 64, 4, 8> tile;
	float4v v[4 * 2];
	tile.multiply({a, lda, m, type}, {b, ldb, n, type}, 0, k);
	tile.copy(v);
	tile.store(c, ldc, m, n, type, v);
}
