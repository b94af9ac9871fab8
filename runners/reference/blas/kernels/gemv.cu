/*
 * gemv.cu: products of at most four rows. A warp owns one column of C and ROWS rows; its lanes share the sum over k.
 */
#include "device.h"

template <typename T, int ROWS>
__global__ void __launch_bounds__(128)
gemv_nt(const T *a, const T *b, T *c, int m, int n, int k, int lda, int ldb, int ldc)
{
	int lane = tid_x() % WARP, col = cta_x() * (128 / WARP) + tid_x() / WARP;
	if (col >= n)
		return;
	float sum[ROWS] = {};
	const T *weight = b + (long)col * ldb;
	for (int i = 4 * lane; i < k; i += 4 * WARP) {
		float4v w = load4(weight + i);
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			/* Three rows run as four: the fourth repeats the third and is not stored. */
			float4v x = load4(a + (long)(r < m ? r : m - 1) * lda + i);
			sum[r] += x.x * w.x;
			sum[r] += x.y * w.y;
			sum[r] += x.z * w.z;
			sum[r] += x.w * w.w;
		}
	}
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		float total = warp_sum(sum[r]);
		if (lane == 0 && r < m)
			c[(long)r * ldc + col] = (T)total;
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
