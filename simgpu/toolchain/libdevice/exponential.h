/*
 * exponential.h: exponential functions and logarithms of double precision.
 */
#ifndef LIBDEVICE_EXPONENTIAL_H
#define LIBDEVICE_EXPONENTIAL_H

#include "device.h"

#define LN2_HIGH 0x1.62e42fefa0000p-1 /* 38 bits: its product with an exponent is exact */
#define LN2_LOW 0x1.cf79abc9e3b3ap-40
#define LOG2_E 0x1.71547652b82fep+0
#define LOG10_E 0x1.bcb7b1526e50ep-2
#define LOG10_2_HIGH 0x1.34413509f0000p-2
#define LOG10_2_LOW 0x1.e7fbcc47c4acdp-40

/* e^r - 1 - r for |r| <= ln(2)/2: Taylor's series. */
INLINE double exp_tail(double r)
{
	double s = 0;
	for (int n = 14; n >= 2; n--)
		s = (1 + s) * (r / n);
	return s * r;
}

INLINE double exponential(double x)
{
	if (x != x)
		return x;
	if (x > 710)
		return INF;
	if (x < -746)
		return 0;
	double k = __builtin_rint(x * LOG2_E);
	double r = fused(-k, LN2_LOW, fused(-k, LN2_HIGH, x));
	return scaled(1 + (r + exp_tail(r)), (int)k);
}

INLINE double exponential_minus_one(double x)
{
	if (absolute(x) < 0.34)
		return x + exp_tail(x);
	return exponential(x) - 1;
}

INLINE double exponential_of_two(double x)
{
	if (x != x)
		return x;
	if (x > 1025)
		return INF;
	if (x < -1080)
		return 0;
	double k = __builtin_rint(x);
	double r = (x - k) * (LN2_HIGH + LN2_LOW);
	return scaled(1 + (r + exp_tail(r)), (int)k);
}

INLINE double exponential_of_ten(double x)
{
	if (x != x)
		return x;
	if (x > 309)
		return INF;
	if (x < -325)
		return 0;
	double k = __builtin_rint(x * (LOG2_E / LOG10_E));
	double r = fused(-k, LOG10_2_LOW, fused(-k, LOG10_2_HIGH, x)) * 0x1.26bb1bbb55516p+1;
	return scaled(1 + (r + exp_tail(r)), (int)k);
}

/* ln(m) for sqrt(1/2) <= m < sqrt(2): the series of 2 artanh((m-1)/(m+1)). */
INLINE double log_near_one(double m)
{
	double f = m - 1, s = f / (2 + f), z = s * s, sum = 0;
	for (int n = 23; n >= 3; n -= 2)
		sum = fused(z, sum, 1.0 / n);
	double half = 0.5 * f * f; /* ln(1+f) = f - f*f/2 + s*(f*f/2 + 2*z*sum) keeps the leading digits exact */
	return f - (half - s * (half + 2 * z * sum));
}

/* Splits a positive finite number; the result's logarithm is that of *m plus *k times ln(2). */
INLINE void log_parts(double x, double *m, int *k)
{
	*m = parts(x, k);
	if (*m > 1.4142135623730951) {
		*m *= 0.5;
		++*k;
	}
}

/* scale: the logarithm of e to the base; high and low: that of two. */
INLINE double logarithm_to(double x, double scale, double high, double low)
{
	double m;
	int k;
	if (x != x || x < 0)
		return NOT_A_NUMBER;
	if (x == 0)
		return -INF;
	if (x == INF)
		return x;
	log_parts(x, &m, &k);
	return k * high + (k * low + log_near_one(m) * scale);
}

INLINE double logarithm(double x) { return logarithm_to(x, 1, LN2_HIGH, LN2_LOW); }
INLINE double logarithm_of_two(double x) { return logarithm_to(x, LOG2_E, 1, 0); }
INLINE double logarithm_of_ten(double x) { return logarithm_to(x, LOG10_E, LOG10_2_HIGH, LOG10_2_LOW); }

INLINE double logarithm_plus_one(double x)
{
	double u = 1 + x;
	if (u == 1 || u == INF)
		return x;
	return logarithm(u) + (u > 0 ? (x - (u - 1)) / u : 0);
}

#endif
