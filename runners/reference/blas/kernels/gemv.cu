/*
 * gemv.cu: products of at most four rows. A warp owns one column of C and ROWS rows; its lanes share the sum over k.
 */
#include "storage.h"

__device__ __forceinline__ void add_product(float &sum, float x, float w) { sum += x * w; }
__device__ __forceinline__ void add_product(float &sum, float4v x, float4v w)
{
	sum += x.x * w.x;
	sum += x.y * w.y;
	sum += x.z * w.z;
	sum += x.w * w.w;
}

/* This lane's share of the sums, in steps of V. */
template <typename V, typename T, int ROWS>
__device__ __forceinline__ void add_vectors(float (&sum)[ROWS], const T *a, const T *weight, int m, int k, int lda)
{
	for (int i = Width<V>::of * (tid_x() % WARP); i < k; i += Width<V>::of * WARP) {
		V w = load_as<V>(weight + i);
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			/* Three rows run as four: the fourth repeats the third and is not stored. */
			add_product(sum[r], load_as<V>(a + (long)(r < m ? r : m - 1) * lda + i), w);
	}
}

template <typename T, int ROWS>
__device__ __forceinline__ void add_up(float (&sum)[ROWS], const char *a, const char *b, int col, int m, int k, int lda, int ldb)
{
	const T *weight = (const T *)b + (long)col * ldb;
	if (whole_vectors(k) && whole_vectors(lda) && whole_vectors(ldb))
		add_vectors<float4v>(sum, (const T *)a, weight, m, k, lda);
	else
		add_vectors<float>(sum, (const T *)a, weight, m, k, lda);
}

template <int ROWS>
__global__ void __launch_bounds__(128)
gemv_nt(const char *a, const char *b, char *c, int m, int n, int k, int lda, int ldb, int ldc, int type)
{
	int lane = tid_x() % WARP, col = cta_x() * (128 / WARP) + tid_x() / WARP;
	if (col >= n)
		return;
	float sum[ROWS] = {};
	FOR_STORAGE(type, add_up, sum, a, b, col, m, k, lda, ldb)
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		float total = warp_sum(sum[r]);
		if (lane == 0 && r < m)
			FOR_STORAGE(type, store_at, c + ((long)r * ldc + col) * size_of(type), total)
	}
}

#define INSTANTIATE(ROWS) template __global__ void gemv_nt<ROWS>(const char *, const char *, char *, int, int, int, int, int, int, int);

INSTANTIATE(1)
INSTANTIATE(2)
INSTANTIATE(4)
