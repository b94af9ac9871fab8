/*
 * attention.cu: the paged KV cache, written and read. See README.md for layouts and launch geometry.
 *
 * A row is one token: the token at positions[row] of the sequence whose blocks are listed in row sequences[row] of the
 * block tables. Decode has one row a sequence, prefill has many; both use these kernels, and causality comes from the
 * position alone. Rows with a negative position are padding: nothing is stored for them and their output is zero.
 */
#include "device.h"

#define MAX_HEAD_DIM 128

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

template <typename T>
__global__ void store_kv(const T *qkv, T *k_cache, T *v_cache, const int *block_tables, const int *sequences,
                         const int *positions, int q_heads, int kv_heads, int head_dim, int block_size, int max_blocks)
{
	int position = positions[cta_x()];
	if (position < 0)
		return;
	int block = block_tables[sequences[cta_x()] * max_blocks + position / block_size];
	int slot = position % block_size, width = kv_heads * head_dim;
	const T *k = qkv + (long)cta_x() * (q_heads + 2 * kv_heads) * head_dim + q_heads * head_dim;
	for (int i = 4 * tid_x(); i < width; i += 4 * ntid_x()) {
		int head = i / head_dim, d = i - head * head_dim;
		long to = (((long)block * kv_heads + head) * block_size + slot) * head_dim + d;
		store4(k_cache + to, load4(k + i));
		store4(v_cache + to, load4(k + width + i));
	}
}

/*
 * One warp computes one head of one row with an online softmax over tiles of 32 keys. Scores: a lane owns a key. Values:
 * a lane owns four dimensions, and as many keys are added at a time as fit into the warp; their partial sums meet at the end.
 */
template <typename T> __global__ void __launch_bounds__(WARP) attention(AttentionArgs a)
{
	__shared__ float query[MAX_HEAD_DIM], weight[WARP], partial[WARP * 4];
	__shared__ long where[WARP];
	int row = cta_x(), head = cta_y(), lane = tid_x(), position = a.positions[row];
	T *out = (T *)a.out + ((long)row * a.q_heads + head) * a.head_dim;
	int lanes = a.head_dim / 4, groups = WARP / lanes, group = lane / lanes, d = (lane - group * lanes) * 4;
	bool leads = lane < lanes;
	if (position < 0) {
		if (leads)
			store4(out + d, (float4v)(0.0f));
		return;
	}
	if (leads) {
		const T *q = (const T *)a.qkv + ((long)row * (a.q_heads + 2 * a.kv_heads) + head) * a.head_dim;
		store4(query + d, load4(q + d) * a.scale);
	}
	const int *table = a.block_tables + (long)a.sequences[row] * a.max_blocks;
	int kv_head = head / (a.q_heads / a.kv_heads);
	float peak = NEG_INF, total = 0;
	float4v sum = (float4v)(0.0f);
	barrier();
	for (int first = 0; first <= position; first += WARP) {
		int key = first + lane, count = position - first + 1;
		float score = NEG_INF;
		if (key <= position) {
			int in = key / a.block_size;
			long at = (((long)table[in] * a.kv_heads + kv_head) * a.block_size + (key - in * a.block_size)) * a.head_dim;
			const T *k = (const T *)a.k_cache + at;
			where[lane] = at;
			float dot = 0;
			for (int i = 0; i < a.head_dim; i += 4) {
				float4v x = load4(query + i), y = load4(k + i);
				dot += x.x * y.x;
				dot += x.y * y.y;
				dot += x.z * y.z;
				dot += x.w * y.w;
			}
			score = dot;
		}
		float higher = __builtin_fmaxf(peak, warp_max(score));
		float keep = fast_exp(peak - higher), p = fast_exp(score - higher);
		weight[lane] = p;
		total = total * keep + warp_sum(p);
		peak = higher;
		sum = sum * keep;
		barrier();
		if (count > WARP)
			count = WARP;
		if (group < groups)
			for (int j = group; j < count; j += groups)
				sum += weight[j] * load4((const T *)a.v_cache + where[j] + d);
		barrier();
	}
	if (group < groups)
		store4(partial + 4 * lane, sum);
	barrier();
	if (leads) {
		sum = (float4v)(0.0f);
		for (int g = 0; g < groups; g++)
			sum += load4(partial + 4 * (g * lanes + lane));
		store4(out + d, sum * reciprocal(total));
	}
}

#define INSTANTIATE(T)                                                                                       \
	template __global__ void store_kv<T>(const T *, T *, T *, const int *, const int *, const int *, int, int, int, \
	                                     int, int);                                                          \
	template __global__ void attention<T>(AttentionArgs);

INSTANTIATE(float)
INSTANTIATE(half)
