/*
 * ptx_float8.h: the two 8-bit floating-point types to float. Both are exact.
 */
#ifndef PTX_FLOAT8_H
#define PTX_FLOAT8_H

#include "ptx_half.h"

#include <math.h>

/* Five bits of exponent: the upper byte of a half. */
static inline float e5m2_float(uint8_t v) { return half_float((uint32_t)v << 8); }

/* Four bits of exponent, bias 7; no infinity, NaN is all ones. */
static inline float e4m3_float(uint8_t v)
{
	uint32_t e = v >> 3 & 15, m = v & 7;
	float f = (v & 0x7f) == 0x7f ? NAN : e ? ldexpf((float)(8 + m), (int)e - 10) : ldexpf((float)m, -9);

	return v & 0x80 ? -f : f;
}

#endif
