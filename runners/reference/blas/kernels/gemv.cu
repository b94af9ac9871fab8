/*
 * gemv.cu: products of at most four rows. A warp owns one column of C and ROWS rows; its lanes share the sum over k.
 */
#include "device.h"

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
__device__ __forceinline__ void add_up(float (&sum)[ROWS], const T *a, const T *weight, int m, int k, int lda)
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
__global__ void __launch_bounds__(128)
gemv_nt(const T *a, const T *b, T *c, int m, int n, int k, int lda, int ldb, int ldc)
{
	int lane = tid_x() % WARP, col = cta_x() * (128 / WARP) + tid_x() / WARP;
	if (col >= n)
		return;
	float sum[ROWS] = {};
	const T *weight = b + (long)col * ldb;
	if (whole_vectors(k) && whole_vectors(lda) && whole_vectors(ldb))
		add_up<float4v>(sum, a, weight, m, k, lda);
	else
		add_up<float>(sum, a, weight, m, k, lda);
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		float total = warp_sum(sum[r]);
		if (lane == 0 && r < m)
			store(c + (long)r * ldc + col, total);
	}
}

#define INSTANTIATE(T, ROWS) \
	template __global__ void gemv_nt<T, ROWS>(const T *, const T *, T *, int, int, int, int, int, int);

INSTANTIATE(float, 1)
INSTANTIATE(float, 2)
INSTANTIATE(float, 4)
INSTANTIATE(half, 1)
INSTANTIATE(half, 2)
INSTANTIATE(half, 4)
INSTANTIATE(bf16, 1)
INSTANTIATE(bf16, 2)
INSTANTIATE(bf16, 4)
