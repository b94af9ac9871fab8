/*
 * attention.cu: the paged KV cache, written and read. See README.md for layouts and launch geometry.
 *
 * A row is one token: the token at positions[row] of the sequence whose blocks are listed in row sequences[row] of the
 * block tables. Decode has one row a sequence, prefill has many; both use these kernels, and causality comes from the
 * position alone. Rows with a negative position are padding: they store no keys and values, and their output is zero.
 */
#include "device.h"

#define MAX_HEAD_DIM 1024 /* kernels.MaxHeadDim */

/* Passed by value: pointers inside a struct parameter. Mirrors kernels.AttentionArgs (80 bytes). */
struct AttentionArgs {
	const void *qkv;           /* T [rows][(q_heads + 2*kv_heads) * head_dim] */
	const void *k_cache;       /* T [blocks][kv_heads][block_size][head_dim] */
	const void *v_cache;       /* the same shape */
	void *out;                 /* T [rows][q_heads * head_dim] */
	const int *block_tables;   /* [sequences][max_blocks] */
	const int *sequences;      /* [rows] */
	const int *positions;      /* [rows] */
	int q_heads, kv_heads, head_dim, block_size, max_blocks;
	float scale;
};

template <typename V, typename T>
__device__ __forceinline__ void store_row(const T *k, T *k_cache, T *v_cache, long block, int slot, int kv_heads, int head_dim, int block_size)
{
	int width = kv_heads * head_dim;
	for (int i = Width<V>::of * tid_x(); i < width; i += Width<V>::of * ntid_x()) {
		int head = i / head_dim, d = i - head * head_dim;
		long to = ((block * kv_heads + head) * block_size + slot) * head_dim + d;
		store_as(k_cache + to, load_as<V>(k + i));
		store_as(v_cache + to, load_as<V>(k + width + i));
	}
}

template <typename T>
__global__ void store_kv(const T *qkv, T *k_cache, T *v_cache, const int *block_tables, const int *sequences,
                         const int *positions, int q_heads, int kv_heads, int head_dim, int block_size, int max_blocks)
{
	int position = positions[cta_x()];
	if (position < 0)
		return;
	int block = block_tables[sequences[cta_x()] * max_blocks + position / block_size], slot = position % block_size;
	const T *k = qkv + (long)cta_x() * (q_heads + 2 * kv_heads) * head_dim + q_heads * head_dim;
	if (whole_vectors(head_dim))
		store_row<float4v>(k, k_cache, v_cache, block, slot, kv_heads, head_dim, block_size);
	else
		store_row<float>(k, k_cache, v_cache, block, slot, kv_heads, head_dim, block_size);
}

__device__ __forceinline__ float add_product(float sum, float x, float y) { return sum + x * y; }
__device__ __forceinline__ float add_product(float sum, float4v x, float4v y)
{
	sum += x.x * y.x;
	sum += x.y * y.y;
	sum += x.z * y.z;
	sum += x.w * y.w;
	return sum;
}

/* The data that the lanes of a warp share. */
struct Shared {
	long where[WARP];
	float query[MAX_HEAD_DIM], weight[WARP], partial[WARP * 4];
};

/*
 * One warp computes one head of one row with an online softmax over tiles of 32 keys. Scores: a lane owns a key. Values:
 * a lane owns one vector of dimensions, and as many keys are added at a time as fit into the warp; their partial sums meet at the
 * end. A head of more vectors than lanes is done in slices, with the scores computed anew for each.
 */
template <typename V, typename T> __device__ __forceinline__ void attend(const AttentionArgs &a, Shared &s)
{
	const int N = Width<V>::of;
	int row = cta_x(), head = cta_y(), lane = tid_x(), position = a.positions[row];
	T *out = (T *)a.out + ((long)row * a.q_heads + head) * a.head_dim;
	if (position < 0) {
		for (int d = N * lane; d < a.head_dim; d += N * WARP)
			store_as(out + d, (V)(0.0f));
		return;
	}
	const T *q = (const T *)a.qkv + ((long)row * (a.q_heads + 2 * a.kv_heads) + head) * a.head_dim;
	for (int d = N * lane; d < a.head_dim; d += N * WARP)
		store_as(s.query + d, load_as<V>(q + d) * a.scale);
	const int *table = a.block_tables + (long)a.sequences[row] * a.max_blocks;
	int kv_head = head / (a.q_heads / a.kv_heads);
	for (int slice = 0; slice < a.head_dim; slice += N * WARP) {
		int left = (a.head_dim - slice) / N, lanes = left < WARP ? left : WARP;
		int groups = WARP / lanes, group = lane / lanes, d = slice + (lane - group * lanes) * N;
		float peak = NEG_INF, total = 0;
		V sum = (V)(0.0f);
		barrier();
		for (int first = 0; first <= position; first += WARP) {
			int key = first + lane, count = position - first + 1;
			float score = NEG_INF;
			if (key <= position) {
				int in = key / a.block_size;
				long at = (((long)table[in] * a.kv_heads + kv_head) * a.block_size + (key - in * a.block_size)) * a.head_dim;
				const T *k = (const T *)a.k_cache + at;
				s.where[lane] = at;
				score = 0;
				for (int i = 0; i < a.head_dim; i += N)
					score = add_product(score, load_as<V>(s.query + i), load_as<V>(k + i));
			}
			float higher = __builtin_fmaxf(peak, warp_max(score));
			float keep = fast_exp(peak - higher), p = fast_exp(score - higher);
			s.weight[lane] = p;
			total = total * keep + warp_sum(p);
			peak = higher;
			sum = sum * keep;
			barrier();
			if (count > WARP)
				count = WARP;
			if (group < groups)
				for (int j = group; j < count; j += groups)
					sum += s.weight[j] * load_as<V>((const T *)a.v_cache + s.where[j] + d);
			barrier();
		}
		if (group < groups)
			store_as(s.partial + N * lane, sum);
		barrier();
		if (lane < lanes) {
			sum = (V)(0.0f);
			for (int g = 0; g < groups; g++)
				sum += load_as<V>(s.partial + N * (g * lanes + lane));
			store_as(out + d, sum * reciprocal(total));
		}
	}
}

template <typename T> __global__ void __launch_bounds__(WARP) attention(AttentionArgs a)
{
	alignas(16) __shared__ Shared s;
	if (whole_vectors(a.head_dim))
		attend<float4v, T>(a, s);
	else
		attend<float, T>(a, s);
}

#define INSTANTIATE(T)                                                                                       \
	template __global__ void store_kv<T>(const T *, T *, T *, const int *, const int *, const int *, int, int, int, \
	                                     int, int);                                                          \
	template __global__ void attention<T>(AttentionArgs);

INSTANTIATE(float)
INSTANTIATE(half)
INSTANTIATE(bf16)
