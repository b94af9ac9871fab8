/*
 * llama.cu: the row-wise kernels of a Llama decoder. See README.md for parameters and launch geometry.
 *
 * One block works on one row, whatever the number of rows, and sums in an order that depends on the row's length alone:
 * a row's result does not change with the batch it is in. T is the storage type (float, half or bf16), arithmetic is float.
 */
#include "device.h"

/* Sum over the block, the same value in every thread. */
__device__ __forceinline__ float block_sum(float v)
{
	__shared__ float part[WARP];
	v = warp_sum(v);
	if (tid_x() % WARP == 0)
		part[tid_x() / WARP] = v;
	barrier();
	float sum = 0;
#pragma unroll 1
	for (int i = 0; i < ntid_x() / WARP; i++)
		sum += part[i];
	return sum;
}

/* The first element of this thread's share of a row, and the way to the next, in steps of V. */
#define EACH(V, i, n) int i = Width<V>::of * tid_x(); i < n; i += Width<V>::of * ntid_x()

template <typename V, typename T> __device__ __forceinline__ void copy_elements(const T *from, T *to, int n)
{
	for (EACH(V, i, n))
		store_as(to + i, load_as<V>(from + i));
}

template <typename T> __device__ __forceinline__ void copy_row(const T *from, T *to, int n)
{
	if (whole_vectors(n))
		copy_elements<float4v>(from, to, n);
	else
		copy_elements<float>(from, to, n);
}

template <typename T> __global__ void embed(const int *tokens, const T *table, T *out, int hidden)
{
	copy_row(table + (long)tokens[cta_x()] * hidden, out + (long)cta_x() * hidden, hidden);
}

template <typename T> __global__ void gather_rows(const T *in, const int *rows, T *out, int hidden)
{
	copy_row(in + (long)rows[cta_x()] * hidden, out + (long)cta_x() * hidden, hidden);
}

__device__ __forceinline__ float sum_of_squares(float v) { return v * v; }
__device__ __forceinline__ float sum_of_squares(float4v v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }

/* out = x / sqrt(mean of squares + eps) * weight, given this thread's share of the squares. */
template <typename V, typename T>
__device__ __forceinline__ void normalise(const T *x, const T *weight, T *out, int hidden, float squares, float eps)
{
	float scale = reciprocal_root(block_sum(squares) / (float)hidden + eps);
	for (EACH(V, i, hidden))
		store_as(out + i, load_as<V>(x + i) * scale * load_as<V>(weight + i));
}

template <typename V, typename T>
__device__ __forceinline__ void norm_row(const T *x, const T *weight, T *out, int hidden, float eps)
{
	float squares = 0;
	for (EACH(V, i, hidden))
		squares += sum_of_squares(load_as<V>(x + i));
	normalise<V>(x, weight, out, hidden, squares, eps);
}

template <typename T> __global__ void rms_norm(const T *x, const T *weight, T *out, int hidden, float eps)
{
	long row = (long)cta_x() * hidden;
	if (whole_vectors(hidden))
		norm_row<float4v>(x + row, weight, out + row, hidden, eps);
	else
		norm_row<float>(x + row, weight, out + row, hidden, eps);
}

template <typename V, typename T>
__device__ __forceinline__ void add_norm_row(T *residual, const T *x, const T *weight, T *out, int hidden, float eps)
{
	float squares = 0;
	/* Each thread reads back only the elements that it wrote itself, so the second loop needs no barrier for them. */
	for (EACH(V, i, hidden)) {
		V v = load_as<V>(residual + i) + load_as<V>(x + i);
		squares += sum_of_squares(v);
		store_as(residual + i, v);
	}
	normalise<V>(residual, weight, out, hidden, squares, eps);
}

template <typename T>
__global__ void add_rms_norm(T *residual, const T *x, const T *weight, T *out, int hidden, float eps)
{
	long row = (long)cta_x() * hidden;
	if (whole_vectors(hidden))
		add_norm_row<float4v>(residual + row, x + row, weight, out + row, hidden, eps);
	else
		add_norm_row<float>(residual + row, x + row, weight, out + row, hidden, eps);
}

/* Rotates the halves of every query and key head against each other, as Hugging Face's Llama does. */
template <typename T>
__global__ void rope(T *qkv, const int *positions, const float *table, int q_heads, int kv_heads, int head_dim)
{
	int half_dim = head_dim / 2, position = positions[cta_x()];
	if (position < 0)
		return;
	T *row = qkv + (long)cta_x() * (q_heads + 2 * kv_heads) * head_dim;
	const float *cosine = table + (long)position * head_dim, *sine = cosine + half_dim;
	for (int i = tid_x(); i < (q_heads + kv_heads) * half_dim; i += ntid_x()) {
		int head = i / half_dim, d = i - head * half_dim;
		T *a = row + head * head_dim + d, *b = a + half_dim;
		float x = load(a), y = load(b), c = cosine[d], s = sine[d];
		store(a, x * c - y * s);
		store(b, y * c + x * s);
	}
}

__device__ __forceinline__ float silu(float v) { return v * reciprocal(1 + fast_exp(-v)); }
__device__ __forceinline__ float4v silu(float4v v)
{
	float4v out = {silu(v.x), silu(v.y), silu(v.z), silu(v.w)};
	return out;
}

template <typename V, typename T> __device__ __forceinline__ void silu_mul_row(const T *gate, const T *up, T *out, int n)
{
	for (EACH(V, i, n))
		store_as(out + i, silu(load_as<V>(gate + i)) * load_as<V>(up + i));
}

template <typename T> __global__ void silu_mul(const T *gate_up, T *out, int intermediate)
{
	const T *gate = gate_up + (long)cta_x() * 2 * intermediate, *up = gate + intermediate;
	T *to = out + (long)cta_x() * intermediate;
	if (whole_vectors(intermediate))
		silu_mul_row<float4v>(gate, up, to, intermediate);
	else
		silu_mul_row<float>(gate, up, to, intermediate);
}

/* The better of two candidates: the larger value, and of equal values the lower index. */
__device__ __forceinline__ void prefer(float &value, int &index, float other, int other_index)
{
	if (other > value || (other == value && other_index < index)) {
		value = other;
		index = other_index;
	}
}

template <typename T> __global__ void argmax(const T *logits, int *out, int vocab)
{
	__shared__ float values[WARP];
	__shared__ int indices[WARP];
	const T *row = logits + (long)cta_x() * vocab;
	float value = NEG_INF;
	int index = 0x7fffffff;
	for (int i = tid_x(); i < vocab; i += ntid_x())
		prefer(value, index, load(row + i), i);
#pragma unroll 1
	for (int d = WARP / 2; d > 0; d /= 2)
		prefer(value, index, shuffle_xor(value, d), shuffle_xor(index, d));
	if (tid_x() % WARP == 0) {
		values[tid_x() / WARP] = value;
		indices[tid_x() / WARP] = index;
	}
	barrier();
	if (tid_x() == 0) {
#pragma unroll 1
		for (int i = 1; i < ntid_x() / WARP; i++)
			prefer(value, index, values[i], indices[i]);
		/* A row without any number (NaN throughout) still yields a token that exists. */
		out[cta_x()] = index < vocab ? index : 0;
	}
}

#define INSTANTIATE(T)                                                                                       \
	template __global__ void embed<T>(const int *, const T *, T *, int);                                     \
	template __global__ void gather_rows<T>(const T *, const int *, T *, int);                               \
	template __global__ void rms_norm<T>(const T *, const T *, T *, int, float);                             \
	template __global__ void add_rms_norm<T>(T *, const T *, const T *, T *, int, float);                    \
	template __global__ void rope<T>(T *, const int *, const float *, int, int, int);                        \
	template __global__ void silu_mul<T>(const T *, T *, int);                                               \
	template __global__ void argmax<T>(const T *, int *, int);

INSTANTIATE(float)
INSTANTIATE(half)
INSTANTIATE(bf16)
