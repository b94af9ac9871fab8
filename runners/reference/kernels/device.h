/*
 * device.h: the few CUDA words that the kernels use, written for clang without a CUDA toolkit.
 *
 * Everything here is a compiler builtin that becomes one PTX instruction, or a few of integers; there is no library behind it.
 * F16 and BF16 are storage only: kernels convert to float as they load and back as they store.
 */
#ifndef DEVICE_H
#define DEVICE_H

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))

typedef _Float16 half;
typedef __bf16 bf16;

#define tid_x() ((int)__nvvm_read_ptx_sreg_tid_x())
#define ntid_x() ((int)__nvvm_read_ptx_sreg_ntid_x())
#define cta_x() ((int)__nvvm_read_ptx_sreg_ctaid_x())
#define cta_y() ((int)__nvvm_read_ptx_sreg_ctaid_y())
#define cta_z() ((int)__nvvm_read_ptx_sreg_ctaid_z())
#define ncta_x() ((int)__nvvm_read_ptx_sreg_nctaid_x())
#define ncta_y() ((int)__nvvm_read_ptx_sreg_nctaid_y())
#define ncta_z() ((int)__nvvm_read_ptx_sreg_nctaid_z())

#define WARP 32
#define FULL 0xffffffffu
#define NEG_INF (-__builtin_inff())

__device__ __forceinline__ void barrier() { __syncthreads(); }

__device__ __forceinline__ float shuffle_xor(float v, int lanes) { return __nvvm_shfl_sync_bfly_f32(FULL, v, lanes, 31); }
__device__ __forceinline__ int shuffle_xor(int v, int lanes) { return __nvvm_shfl_sync_bfly_i32(FULL, v, lanes, 31); }

__device__ __forceinline__ float warp_sum(float v)
{
	for (int d = WARP / 2; d > 0; d /= 2)
		v += shuffle_xor(v, d);
	return v;
}

__device__ __forceinline__ float warp_max(float v)
{
	for (int d = WARP / 2; d > 0; d /= 2)
		v = __builtin_fmaxf(v, shuffle_xor(v, d));
	return v;
}

/* e^x. ex2.approx errs by 2^-22 relative, the product by one rounding of x*log2(e): good to 1e-6 for |x| < 16. If the error
 * is worse, the result is too small to matter beside the largest term of a softmax. */
__device__ __forceinline__ float fast_exp(float x) { return __nvvm_ex2_approx_ftz_f(x * 1.4426950408889634f); }
__device__ __forceinline__ float reciprocal(float x) { return __nvvm_rcp_rn_ftz_f(x); }
__device__ __forceinline__ float reciprocal_root(float x) { return __nvvm_rcp_rn_ftz_f(__nvvm_sqrt_rn_f(x)); }

/* Vectors of four elements. */
typedef float float4v __attribute__((ext_vector_type(4)));
typedef half half4v __attribute__((ext_vector_type(4)));
typedef unsigned uint4v __attribute__((ext_vector_type(4)));
typedef unsigned short ushort4v __attribute__((ext_vector_type(4), may_alias));
typedef unsigned short ushort_alias __attribute__((may_alias));

/* A BF16 is the upper half of a float. Rounding is to the nearest, ties to even; NaN stays NaN. */
__device__ __forceinline__ float from_bits(unsigned bits) { return __builtin_bit_cast(float, bits << 16); }
__device__ __forceinline__ unsigned short to_bits(float v)
{
	unsigned u = __builtin_bit_cast(unsigned, v);
	return (unsigned short)((v == v ? u + 0x7fff + (u >> 16 & 1) : u | 0x400000) >> 16);
}

__device__ __forceinline__ float load(const float *p) { return *p; }
__device__ __forceinline__ float load(const half *p) { return (float)*p; }
__device__ __forceinline__ float load(const bf16 *p) { return from_bits(*(const ushort_alias *)p); }
__device__ __forceinline__ void store(float *p, float v) { *p = v; }
__device__ __forceinline__ void store(half *p, float v) { *p = (half)v; }
__device__ __forceinline__ void store(bf16 *p, float v) { *(ushort_alias *)p = to_bits(v); }

/* Four consecutive elements: one vector load or store. Pointers are aligned to four elements. */
__device__ __forceinline__ float4v load4(const float *p) { return *(const float4v *)p; }
__device__ __forceinline__ float4v load4(const half *p) { return __builtin_convertvector(*(const half4v *)p, float4v); }
__device__ __forceinline__ float4v load4(const bf16 *p)
{
	return __builtin_bit_cast(float4v, __builtin_convertvector(*(const ushort4v *)p, uint4v) << 16);
}
__device__ __forceinline__ void store4(float *p, float4v v) { *(float4v *)p = v; }
__device__ __forceinline__ void store4(half *p, float4v v) { *(half4v *)p = __builtin_convertvector(v, half4v); }
__device__ __forceinline__ void store4(bf16 *p, float4v v)
{
	ushort4v bits = {to_bits(v.x), to_bits(v.y), to_bits(v.z), to_bits(v.w)};
	*(ushort4v *)p = bits;
}

/*
 * Rows of a matrix of n columns begin at multiples of four elements if n is one: they are then read and written as vectors, others
 * element by element. Code for both is a template over V, float4v or float. The matrix itself is aligned to 16 bytes.
 */
__device__ __forceinline__ bool whole_vectors(int n) { return n % 4 == 0; }
template <typename V> struct Width;
template <> struct Width<float4v> { static const int of = 4; };
template <> struct Width<float> { static const int of = 1; };
template <typename T> __device__ __forceinline__ void load_as(float4v &v, const T *p) { v = load4(p); }
template <typename T> __device__ __forceinline__ void load_as(float &v, const T *p) { v = load(p); }
template <typename V, typename T> __device__ __forceinline__ V load_as(const T *p)
{
	V v;
	load_as(v, p);
	return v;
}
template <typename T> __device__ __forceinline__ void store_as(T *p, float4v v) { store4(p, v); }
template <typename T> __device__ __forceinline__ void store_as(T *p, float v) { store(p, v); }

#endif
