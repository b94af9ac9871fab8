/*
 * ptx_half.h: half and bfloat16 values as bits, converted without branches so that loops over them vectorise.
 *
 * Rounding is to nearest even. NaNs become 0x7fff, as on the device.
 */
#ifndef PTX_HALF_H
#define PTX_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static inline float bits_float(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static inline uint64_t double_bits(double f) { uint64_t u; memcpy(&u, &f, 8); return u; }
static inline double bits_double(uint64_t u) { double f; memcpy(&f, &u, 8); return f; }

/* Subnormal halves come out right because the product with 2^112 renormalises them. */
static inline float half_float(uint32_t h)
{
	uint32_t u = float_bits(bits_float((h & 0x7fff) << 13) * 0x1p112f);

	u |= (h & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;
	return bits_float(u | (h & 0x8000) << 16);
}

static inline uint32_t float_half(float f)
{
	uint32_t u = float_bits(f), a = u & 0x7fffffff;
	uint32_t normal = (a + 0xc8000fff + (a >> 13 & 1)) >> 13;
	/* Adding 0.5 aligns the subnormal's last bit with the sum's, so the sum rounds it. */
	uint32_t subnormal = float_bits(bits_float(a) + 0.5f) - 0x3f000000;
	uint32_t h = a < 0x38800000 ? subnormal : normal;

	h = a >= 0x47800000 ? 0x7c00 : h;
	h = a > 0x7f800000 ? 0x7fff : h | (u >> 16 & 0x8000);
	return h;
}

static inline float bfloat_float(uint32_t b) { return bits_float(b << 16); }

static inline uint32_t float_bfloat(float f)
{
	uint32_t u = float_bits(f);

	return (u & 0x7fffffff) > 0x7f800000 ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

/* The nearest float with its last bit set if the value is inexact: rounding that again to fewer bits is exact. */
static inline float double_float_odd(double d)
{
	float f = (float)d;
	uint32_t u = float_bits(f);
	double back = f;

	if (d != d || back == d || u & 1)
		return f;
	if ((u & 0x7f800000) == 0x7f800000)
		return bits_float(u - 1);
	/* f is even and off by a fraction of its last bit: its odd neighbour on d's side */
	return bits_float(((d > back) == !(u >> 31) || (u << 1) == 0) ? ((u << 1) == 0 ? (d < 0 ? 0x80000001u : 1u) : u + 1) : u - 1);
}

/* a * b + c rounded once to the narrow format: the product is exact in double, the sum is rounded to odd. */
static inline float narrow_fma(float a, float b, float c)
{
	double p = (double)a * b, s = p + c, t = s - p, e = (p - (s - t)) + (c - t);
	uint64_t u = double_bits(s);

	if (e == e && e != 0 && !(u & 1))
		s = bits_double((e > 0) == !(u >> 63) ? u + 1 : u - 1);
	return double_float_odd(s);
}

#endif
