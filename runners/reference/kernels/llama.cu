/*
 * llama.cu: the row-wise kernels of a Llama decoder. See README.md for parameters and launch geometry.
 *
 * One block works on one row, whatever the number of rows, and sums in an order that depends on the row's length alone:
 * a row's result does not change with the batch it is in. T is the storage type (float or half), arithmetic is float.
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
	for (int i = 0; i < ntid_x() / WARP; i++)
		sum += part[i];
	return sum;
}

template <typename T> __global__ void embed(const int *tokens, const T *table, T *out, int hidden)
{
	const T *from = table + (long)tokens[cta_x()] * hidden;
	T *to = out + (long)cta_x() * hidden;
	for (int i = 4 * tid_x(); i < hidden; i += 4 * ntid_x())
		store4(to + i, load4(from + i));
}

template <typename T> __global__ void gather_rows(const T *in, const int *rows, T *out, int hidden)
{
	const T *from = in + (long)rows[cta_x()] * hidden;
	T *to = out + (long)cta_x() * hidden;
	for (int i = 4 * tid_x(); i < hidden; i += 4 * ntid_x())
		store4(to + i, load4(from + i));
}

/* out = x / sqrt(mean of squares + eps) * weight, given this thread's share of the squares. */
template <typename T>
__device__ __forceinline__ void normalise(const T *x, const T *weight, T *out, int hidden, float squares, float eps)
{
	float scale = reciprocal_root(block_sum(squares) / (float)hidden + eps);
	for (int i = 4 * tid_x(); i < hidden; i += 4 * ntid_x())
		store4(out + i, load4(x + i) * scale * load4(weight + i));
}

__device__ __forceinline__ float sum_of_squares(float4v v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }

template <typename T> __global__ void rms_norm(const T *x, const T *weight, T *out, int hidden, float eps)
{
	long row = (long)cta_x() * hidden;
	float squares = 0;
	for (int i = 4 * tid_x(); i < hidden; i += 4 * ntid_x())
		squares += sum_of_squares(load4(x + row + i));
	normalise(x + row, weight, out + row, hidden, squares, eps);
}

template <typename T>
__global__ void add_rms_norm(T *residual, const T *x, const T *weight, T *out, int hidden, float eps)
{
	long row = (long)cta_x() * hidden;
	float squares = 0;
	/* Each thread reads back only what it wrote itself, so the second loop needs no barrier for its sake. */
	for (int i = 4 * tid_x(); i < hidden; i += 4 * ntid_x()) {
		float4v v = load4(residual + row + i) + load4(x + row + i);
		squares += sum_of_squares(v);
		store4(residual + row + i, v);
	}
	normalise(residual + row, weight, out + row, hidden, squares, eps);
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
		float x = (float)*a, y = (float)*b, c = cosine[d], s = sine[d];
		*a = (T)(x * c - y * s);
		*b = (T)(y * c + x * s);
	}
}

template <typename T> __global__ void silu_mul(const T *gate_up, T *out, int intermediate)
{
	const T *gate = gate_up + (long)cta_x() * 2 * intermediate, *up = gate + intermediate;
	T *to = out + (long)cta_x() * intermediate;
	for (int i = 4 * tid_x(); i < intermediate; i += 4 * ntid_x()) {
		float4v g = load4(gate + i), u = load4(up + i), v;
		v.x = g.x * reciprocal(1 + fast_exp(-g.x)) * u.x;
		v.y = g.y * reciprocal(1 + fast_exp(-g.y)) * u.y;
		v.z = g.z * reciprocal(1 + fast_exp(-g.z)) * u.z;
		v.w = g.w * reciprocal(1 + fast_exp(-g.w)) * u.w;
		store4(to + i, v);
	}
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
		prefer(value, index, (float)row[i], i);
	for (int d = WARP / 2; d > 0; d /= 2)
		prefer(value, index, shuffle_xor(value, d), shuffle_xor(index, d));
	if (tid_x() % WARP == 0) {
		values[tid_x() / WARP] = value;
		indices[tid_x() / WARP] = index;
	}
	barrier();
	if (tid_x() == 0) {
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
