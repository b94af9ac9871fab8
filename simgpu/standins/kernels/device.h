/*
 * device.h: the words of CUDA that these kernels use, and elements of all types. For clang without a toolkit.
 */
#ifndef STANDIN_DEVICE_H
#define STANDIN_DEVICE_H

#include "gemm_args.h"

#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE static __attribute__((device, always_inline)) inline
#define SHARED_CODE static __attribute__((device, noinline)) /* once in the PTX, for all kernels of a file */
#define SHARED static __attribute__((shared))
#define THREAD ((int)__nvvm_read_ptx_sreg_tid_x())
#define BLOCK_X ((int)__nvvm_read_ptx_sreg_ctaid_x())
#define BLOCK_Y ((int)__nvvm_read_ptx_sreg_ctaid_y())
#define BLOCK_Z ((int)__nvvm_read_ptx_sreg_ctaid_z())
#define BLOCKS_Y ((int)__nvvm_read_ptx_sreg_nctaid_y())

typedef _Float16 f16;
struct bf16 { unsigned short bits; };
struct f8 { unsigned char bits; };

template <typename To, typename From> DEVICE To bit_cast(From v) { return __builtin_bit_cast(To, v); }

/* The type in which products are summed. */
template <typename T> struct sum_of { typedef float type; };
template <> struct sum_of<double> { typedef double type; };

/* type tells the two forms of eight bits apart. */
DEVICE double value(double v, int) { return v; }
DEVICE float value(float v, int) { return v; }
DEVICE float value(f16 v, int) { return (float)v; }
DEVICE float value(bf16 v, int) { return bit_cast<float>((unsigned)v.bits << 16); }
DEVICE float value(f8 v, int type)
{
	/* E5M2 is the upper half of an f16. E4M3 has one bit of the exponent less, and no infinities. */
	bool e5m2 = type == R_8F_E5M2;
	unsigned size = v.bits & 0x7f, half = (v.bits & 0x80) << 8 | size << (e5m2 ? 8 : 7);
	float f = (float)bit_cast<f16>((unsigned short)half) * (e5m2 ? 1.0f : 0x1p8f);
	return size == (e5m2 ? 0x80 : 0x7f) ? __builtin_nanf("") : f;
}

DEVICE double load_any(const void *p, long long i, int type)
{
	switch (type) {
	case R_64F: return ((const double *)p)[i];
	case R_32F: return ((const float *)p)[i];
	case R_16F: return (double)((const f16 *)p)[i];
	case R_16BF: return value(((const bf16 *)p)[i], type);
	default: return value(((const f8 *)p)[i], type);
	}
}

/* To the nearest, ties to even; NaN stays NaN. */
DEVICE unsigned short to_bf16(float v)
{
	unsigned u = bit_cast<unsigned>(v);
	return (unsigned short)((v == v ? u + 0x7fff + (u >> 16 & 1) : u | 0x400000) >> 16);
}

DEVICE void store_any(void *p, long long i, int type, double v)
{
	switch (type) {
	case R_64F: ((double *)p)[i] = v; break;
	case R_32F: ((float *)p)[i] = (float)v; break;
	case R_16F: ((f16 *)p)[i] = (f16)(float)v; break;
	case R_16BF: ((bf16 *)p)[i].bits = to_bf16((float)v); break;
	}
}

#endif
