/*
 * special.c: the error function and its relatives, the logarithm of the gamma function.
 */
#include "exponential.h"

#define TWO_OVER_ROOT_PI 0x1.20dd750429b6dp+0
#define ROOT_PI 0x1.c5bf891b4ef6bp+0

/* e^(-x*x): the square's rounding error counts. */
INLINE double bell(double x)
{
	double s = x * x;
	return exponential(-s) * (1 - fused(x, x, -s));
}

/* For 0 <= a < 1.4: a series of positive terms. */
INLINE double error_series(double a)
{
	double z = 2 * a * a, s = 0;
	for (int n = 28; n >= 1; n--)
		s = (1 + s) * (z / (2 * n + 1));
	return TWO_OVER_ROOT_PI * bell(a) * (a + a * s);
}

/* For a >= 1.4: a continued fraction. */
INLINE double error_rest(double a)
{
	double f = a;
	for (int n = 160; n >= 1; n--)
		f = a + 0.5 * n / f;
	return bell(a) / (ROOT_PI * f);
}

INLINE double error_function(double x)
{
	double a = absolute(x);
	if (x != x)
		return x;
	return with_sign(a < 1.4 ? error_series(a) : a > 6.5 ? 1 : 1 - error_rest(a), x);
}

INLINE double error_complement(double x)
{
	double a = absolute(x);
	if (x != x)
		return x;
	double r = a > 28 ? 0 : a < 1.4 ? 1 - error_series(a) : error_rest(a);
	return bits(x) >> 63 ? 2 - r : r;
}

/* Winitzki's approximation, then Halley's steps. Near one, the complement keeps the digits. */
INLINE double error_inverse(double x)
{
	double a = absolute(x), rest = 1 - a;
	if (!(a <= 1))
		return NOT_A_NUMBER;
	if (a == 1)
		return with_sign(INF, x);
	if (a < 1e-8)
		return x / TWO_OVER_ROOT_PI;
	double l = logarithm(rest * (1 + a)), h = 2 / (3.141592653589793 * 0.147) + 0.5 * l;
	double y = root(root(h * h - l / 0.147) - h);
	for (int i = 0; i < 3; i++) {
		double e = y < 0.5 ? error_series(y) - a : rest - (y < 1.4 ? 1 - error_series(y) : error_rest(y));
		double step = e / (TWO_OVER_ROOT_PI * bell(y));
		y -= step / (1 + y * step);
	}
	return with_sign(y, x);
}

#define PI 3.141592653589793

/* Stirling's series above 15; below, the recurrence leads there. */
INLINE double log_gamma_positive(double x)
{
	double product = 1;
	if (x == 1 || x == 2)
		return 0;
	for (int i = 0; i < 16 && x < 15; i++) {
		product *= x;
		x += 1;
	}
	double z = 1 / (x * x);
	double s = fused(z, fused(z, fused(z, fused(z, fused(z, -691.0 / 360360, 1.0 / 1188), -1.0 / 1680), 1.0 / 1260), -1.0 / 360), 1.0 / 12) / x;
	return (x - 0.5) * logarithm(x) - x + 0.91893853320467274 + s - logarithm(product);
}

/* The sine of PI times x for 0 <= x <= 1/2. */
INLINE double sine_of_pi(double x)
{
	double r = PI * x, z = r * r, s = 0;
	for (int n = 27; n >= 3; n -= 2)
		s = (1 + s) * (-z / (n * (n - 1)));
	return r + r * s;
}

INLINE double log_gamma(double x)
{
	if (x != x)
		return x;
	if (absolute(x) == INF)
		return INF;
	if (x > 0)
		return log_gamma_positive(x);
	double a = -x, f = a - __builtin_floor(a);
	if (f == 0)
		return INF;
	if (a < 1e-17)
		return -logarithm(a);
	return logarithm(PI / (sine_of_pi(f > 0.5 ? 1 - f : f) * a)) - log_gamma_positive(a);
}

BOTH(erf, error_function)
BOTH(erfc, error_complement)
BOTH(erfinv, error_inverse)
BOTH(lgamma, log_gamma)
