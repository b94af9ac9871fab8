/*
 * exponential.c: exponentials, logarithms, powers and hyperbolic functions.
 */
#include "exponential.h"

BOTH(exp, exponential)
BOTH(exp2, exponential_of_two)
BOTH(exp10, exponential_of_ten)
BOTH(expm1, exponential_minus_one)
BOTH(log, logarithm)
BOTH(log2, logarithm_of_two)
BOTH(log10, logarithm_of_ten)
BOTH(log1p, logarithm_plus_one)

/* The fast forms of a GPU are less exact; these are the exact ones. */
DEVICE float __nv_fast_expf(float x) { return (float)exponential(x); }
DEVICE float __nv_fast_exp10f(float x) { return (float)exponential_of_ten(x); }
DEVICE float __nv_fast_logf(float x) { return (float)logarithm(x); }
DEVICE float __nv_fast_log2f(float x) { return (float)logarithm_of_two(x); }
DEVICE float __nv_fast_log10f(float x) { return (float)logarithm_of_ten(x); }

/* 1: odd, 2: even, 0: no integer. */
INLINE int parity(double y)
{
	double a = absolute(y);
	if (a >= 0x1p53)
		return 2;
	if (__builtin_trunc(a) != a)
		return 0;
	return (uint64_t)a & 1 ? 1 : 2;
}

INLINE double power(double x, double y)
{
	int whole = parity(y);
	double a = absolute(x);
	if (y == 0 || x == 1 || (x == -1 && absolute(y) == INF))
		return 1;
	if (x != x || y != y)
		return NOT_A_NUMBER;
	if (x < 0 && a != INF && !whole && absolute(y) != INF)
		return NOT_A_NUMBER;
	double r;
	if (a == 0 || a == INF)
		r = (a == 0) == (y > 0) ? 0 : INF;
	else
		r = exponential(y * logarithm(a));
	return whole == 1 ? with_sign(r, x) : r;
}

BOTH2(pow, power)
DEVICE float __nv_fast_powf(float x, float y) { return (float)power(x, y); }
DEVICE double __nv_powi(double x, int y) { return power(x, y); }
DEVICE float __nv_powif(float x, int y) { return (float)power(x, y); }

INLINE double cube_root(double x)
{
	double a = absolute(x);
	if (x != x || a == 0 || a == INF)
		return x;
	double y = exponential(logarithm(a) / 3);
	y -= (y - a / (y * y)) / 3;
	return with_sign(y, x);
}

INLINE double hyperbolic_sine(double x)
{
	double a = absolute(x), r;
	if (a < 1) {
		double e = exponential_minus_one(a);
		r = 0.5 * (e + e / (e + 1));
	} else if (a < 700) {
		double e = exponential(a);
		r = 0.5 * (e - 1 / e);
	} else {
		double e = exponential(0.5 * a);
		r = 0.5 * e * e;
	}
	return with_sign(r, x);
}

INLINE double hyperbolic_cosine(double x)
{
	double a = absolute(x);
	double e = exponential(a < 700 ? a : 0.5 * a);
	return a < 700 ? 0.5 * (e + 1 / e) : 0.5 * e * e;
}

INLINE double hyperbolic_tangent(double x)
{
	double a = absolute(x);
	if (x != x)
		return x;
	double e = exponential_minus_one(2 * a);
	return with_sign(a > 22 ? 1 : e / (e + 2), x);
}

INLINE double area_sine(double x)
{
	double a = absolute(x);
	double r = a > 0x1p28 ? logarithm(a) + 0.6931471805599453 : logarithm_plus_one(a + a * a / (1 + root(1 + a * a)));
	return with_sign(r, x);
}

INLINE double area_cosine(double x)
{
	double t = x - 1;
	if (!(x >= 1))
		return NOT_A_NUMBER;
	return x > 0x1p28 ? logarithm(x) + 0.6931471805599453 : logarithm_plus_one(t + root(2 * t + t * t));
}

INLINE double area_tangent(double x)
{
	double a = absolute(x);
	if (!(a <= 1))
		return NOT_A_NUMBER;
	return with_sign(0.5 * logarithm_plus_one(2 * a / (1 - a)), x);
}

BOTH(cbrt, cube_root)
BOTH(sinh, hyperbolic_sine)
BOTH(cosh, hyperbolic_cosine)
BOTH(tanh, hyperbolic_tangent)
BOTH(asinh, area_sine)
BOTH(acosh, area_cosine)
BOTH(atanh, area_tangent)
DEVICE float __nv_fast_tanhf(float x) { return (float)hyperbolic_tangent(x); }
