/*
 * trigonometric.c: sine, cosine, tangent and their inverses.
 */
#include "device.h"

#define HALF_PI 0x1.921fb54442d18p+0
#define HALF_PI_LOW 0x1.1a62633145c07p-54

/* The bits of 2/pi behind the point, without a table: a variable, which the code of a module could write, would be state of that module. */
INLINE uint64_t two_over_pi(int i)
{
#define WORD(n, bits) (-(uint64_t)(i == (n)) & (bits))
	return
		WORD(0, 0xa2f9836e4e441529) | WORD(1, 0xfc2757d1f534ddc0) |
		WORD(2, 0xdb6295993c439041) | WORD(3, 0xfe5163abdebbc561) |
		WORD(4, 0xb7246e3a424dd2e0) | WORD(5, 0x06492eea09d1921c) |
		WORD(6, 0xfe1deb1cb129a73e) | WORD(7, 0xe88235f52ebb4484) |
		WORD(8, 0xe99c7026b45f7e41) | WORD(9, 0x3991d639835339f4) |
		WORD(10, 0x9c845f8bbdf9283b) | WORD(11, 0x1ff897ffde05980f) |
		WORD(12, 0xef2f118b5a0a6d1f) | WORD(13, 0x6d367ecf27cb09b7) |
		WORD(14, 0x4f463f669e5fea2d) | WORD(15, 0x7527bac7ebe5f17b) |
		WORD(16, 0x3d0739f78a5292ea) | WORD(17, 0x6bfb5fb11f8d5d08) |
		WORD(18, 0x56033046fc7b6bab) | WORD(19, 0xf0cfbc209af4361d);
#undef WORD
}

/* 64 bits of 2/pi from bit b behind the point on; bits before the point are zero. */
INLINE uint64_t bits_from(int b)
{
	if (b < 0)
		return b <= -64 ? 0 : two_over_pi(0) >> -b;
	int shift = b & 63;
	uint64_t high = two_over_pi(b >> 6) << shift;
	return shift ? high | two_over_pi((b >> 6) + 1) >> (64 - shift) : high;
}

/*
 * The quarter turns next to a >= 0, modulo 4; *r is the rest, within an eighth of a turn. A small number loses the multiple of pi/2 in
 * three steps. A large one is m * 2^e with an integer m: of its product with 2/pi, the two bits before the point and 126 behind it
 * are enough, and higher bits of 2/pi give multiples of 4.
 */
INLINE int quarters(double a, double *r)
{
	if (a < 0x1p19) {
		double k = __builtin_rint(a * 0.6366197723675814);
		*r = fused(-k, 0x1.3198a2e037073p-69, fused(-k, 0x1.0b4611a600000p-34, fused(-k, 0x1.921fb54400000p+0, a)));
		return (int)k & 3;
	}
	int e;
	parts(a, &e);
	e -= 52;
	uint64_t m = (bits(a) & ((1ull << 52) - 1)) | 1ull << 52;
	int first = e - 2; /* the place in 2/pi of the first bit that counts: product bits of weight 2 and below */
	unsigned __int128 p = (unsigned __int128)(m * bits_from(first)) << 64;
	p += (unsigned __int128)m * bits_from(first + 64);
	p += (unsigned __int128)m * bits_from(first + 128) >> 64;
	int k = (int)(p >> 126);
	__int128 rest = (__int128)(p << 2);
	if (rest < 0)
		k++;
	int negative = rest < 0;
	unsigned __int128 size = negative ? -(unsigned __int128)rest : (unsigned __int128)rest;
	/* The upper 53 bits convert exactly. A rest near zero has its digits in the lower part. */
	double high = (double)(uint64_t)(size >> 75) * 0x1p-53, low = (double)(uint64_t)(size >> 11) * 0x1p-117;
	double f = fused(high, HALF_PI, fused(high, HALF_PI_LOW, low * HALF_PI));
	*r = negative ? -f : f;
	return k & 3;
}

INLINE double sine_series(double r)
{
	double z = r * r, s = 0;
	for (int n = 19; n >= 3; n -= 2)
		s = (1 + s) * (-z / (n * (n - 1)));
	return r + r * s;
}

INLINE double cosine_series(double r)
{
	double z = r * r, s = 0;
	for (int n = 20; n >= 4; n -= 2)
		s = (1 + s) * (-z / (n * (n - 1)));
	return 1 - (0.5 * z + 0.5 * z * s);
}

/* The sine a number of quarter turns later. */
INLINE double sine_at(double x, int later)
{
	double r, a = absolute(x);
	if (!(a < INF))
		return NOT_A_NUMBER;
	int k = quarters(a, &r);
	if (bits(x) >> 63) {
		r = -r;
		k = -k;
	}
	k += later;
	double v = k & 1 ? cosine_series(r) : sine_series(r);
	return k & 2 ? -v : v;
}

INLINE double sine(double x) { return sine_at(x, 0); }
INLINE double cosine(double x) { return sine_at(x, 1); }

INLINE double tangent(double x)
{
	double r, a = absolute(x);
	if (!(a < INF))
		return NOT_A_NUMBER;
	int k = quarters(a, &r);
	double s = sine_series(r), c = cosine_series(r), t = k & 1 ? -c / s : s / c;
	return bits(x) >> 63 ? -t : t;
}

BOTH(sin, sine)
BOTH(cos, cosine)
BOTH(tan, tangent)
DEVICE float __nv_fast_sinf(float x) { return (float)sine(x); }
DEVICE float __nv_fast_cosf(float x) { return (float)cosine(x); }
DEVICE float __nv_fast_tanf(float x) { return (float)tangent(x); }

/* Angles of 0, pi/8 and pi/4 are taken off, so that the series has an argument below tan(pi/16). */
INLINE double arc_tangent_below_one(double a)
{
	double c = a > 0.66817863791929892 ? 1 : a > 0.19891236737965801 ? 0x1.a827999fcef32p-2 : 0;
	double base = c == 1 ? 0.5 * HALF_PI : c > 0 ? 0.25 * HALF_PI : 0, low = c == 1 ? 0.5 * HALF_PI_LOW : c > 0 ? 0.25 * HALF_PI_LOW : 0;
	double t = (a - c) / (1 + a * c), z = t * t, s = 0;
	for (int n = 25; n >= 3; n -= 2)
		s = fused(-z, s, 1.0 / n);
	return base + (low + (t - t * z * s));
}

INLINE double arc_tangent(double x)
{
	double a = absolute(x);
	if (x != x)
		return x;
	double r = a > 1 ? HALF_PI - (arc_tangent_below_one(1 / a) - HALF_PI_LOW) : arc_tangent_below_one(a);
	return with_sign(r, x);
}

INLINE double arc_tangent_of(double y, double x)
{
	double a = absolute(y), b = absolute(x);
	if (x != x || y != y)
		return NOT_A_NUMBER;
	double r = a == INF && b == INF ? 0.5 * HALF_PI : a == 0 ? 0 : a > b ? HALF_PI - (arc_tangent_below_one(b / a) - HALF_PI_LOW)
	                                                                   : arc_tangent_below_one(a / b);
	if (bits(x) >> 63)
		r = 2 * HALF_PI - (r - 2 * HALF_PI_LOW);
	return with_sign(r, y);
}

/* For 0 <= a <= 1/2. */
INLINE double arc_sine_below_half(double a) { return arc_tangent_below_one(a / root((1 - a) * (1 + a))); }

INLINE double arc_sine(double x)
{
	double a = absolute(x);
	if (!(a <= 1))
		return NOT_A_NUMBER;
	return with_sign(a <= 0.5 ? arc_sine_below_half(a) : HALF_PI - (2 * arc_sine_below_half(root(0.5 * (1 - a))) - HALF_PI_LOW), x);
}

INLINE double arc_cosine(double x)
{
	double a = absolute(x);
	if (!(a <= 1))
		return NOT_A_NUMBER;
	if (a <= 0.5)
		return HALF_PI - (with_sign(arc_sine_below_half(a), x) - HALF_PI_LOW);
	double r = 2 * arc_sine_below_half(root(0.5 * (1 - a)));
	return x > 0 ? r : 2 * HALF_PI - (r - 2 * HALF_PI_LOW);
}

BOTH(atan, arc_tangent)
BOTH2(atan2, arc_tangent_of)
BOTH(asin, arc_sine)
BOTH(acos, arc_cosine)
