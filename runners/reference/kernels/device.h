/*
 * device.h: the few CUDA words that the kernels use, written for clang without a CUDA toolkit.
 *
 * Everything here is a compiler builtin that becomes one PTX instruction; there is no library behind it. F16 is storage
 * only: kernels convert to float as they load and back as they store.
 */
#ifndef DEVICE_H
#define DEVICE_H

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))

typedef _Float16 half;

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

/* e^x. ex2.approx errs by 2^-22 relative, the product by one rounding of x*log2(e): good to 1e-6 for |x| < 16 and, where it
 * is worse, the result is too small to matter beside the largest term of a softmax. */
__device__ __forceinline__ float fast_exp(float x) { return __nvvm_ex2_approx_ftz_f(x * 1.4426950408889634f); }
__device__ __forceinline__ float reciprocal(float x) { return __nvvm_rcp_rn_ftz_f(x); }
__device__ __forceinline__ float reciprocal_root(float x) { return __nvvm_rcp_rn_ftz_f(__nvvm_sqrt_rn_f(x)); }

/* Four consecutive elements: one vector load or store. Pointers are aligned to four elements. */
typedef float float4v __attribute__((ext_vector_type(4)));
typedef half half4v __attribute__((ext_vector_type(4)));

__device__ __forceinline__ float4v load4(const float *p) { return *(const float4v *)p; }
__device__ __forceinline__ float4v load4(const half *p) { return __builtin_convertvector(*(const half4v *)p, float4v); }
__device__ __forceinline__ void store4(float *p, float4v v) { *(float4v *)p = v; }
__device__ __forceinline__ void store4(half *p, float4v v) { *(half4v *)p = __builtin_convertvector(v, half4v); }

#endif
