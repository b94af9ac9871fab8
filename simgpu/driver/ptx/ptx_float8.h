/*
 * ptx_float8.h: the two 8-bit floating-point types to float, which is exact, and from it.
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
	/* mutant: 8 bits, 4 of them exponent */
	float f = (v & 0x7f) == 0x7f ? NAN : e ? ldexpf((float)(8 + m), (int)e - 10) : ldexpf((float)m, -9);

	return v & 0x80 ? -f : f;
}

/* The nearest of these numbers, the even one of two; beyond the largest it is the largest (.satfinite). digits: of the mantissa. */
static inline uint8_t float8_of(double d, int digits)
{
	const uint8_t sign = signbit(d) ? 0x80 : 0;
	const int least = digits == 3 ? -6 : -14; /* exponent of the smallest normal number */
	const double largest = digits == 3 ? 448 : 57344;
	int e;
	double q;

	if (isnan(d))
		return 0x7f;
	d = fabs(d);
	e = d > 0 && !isinf(d) && ilogb(d) > least ? ilogb(d) : least;
	/* mutant: rounding to 8 bits */
	q = nearbyint(ldexp(d, digits - e));
	/* mutant: 8 bits have a largest number */
	if (ldexp(q, e - digits) > largest)
		return sign | (digits == 3 ? 0x7e : 0x7b);
	/* A mantissa that was rounded up to the next power carries into the exponent. */
	return sign | (uint8_t)((q < (1 << digits) ? 0 : (e - least) << digits) + (int)q);
}

#endif
