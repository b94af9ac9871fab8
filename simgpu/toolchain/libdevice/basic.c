/*
 * basic.c: functions whose results are exact or rounded once: roots, rounding, remainders, classes of numbers, integers.
 */
#include "device.h"

#define WITH_BUILTIN(name, builtin) \
	DEVICE double __nv_##name(double x) { return __builtin_##builtin(x); } \
	DEVICE float __nv_##name##f(float x) { return __builtin_##builtin##f(x); }
WITH_BUILTIN(fabs, fabs)
WITH_BUILTIN(floor, floor)
WITH_BUILTIN(ceil, ceil)
WITH_BUILTIN(trunc, trunc)
WITH_BUILTIN(rint, rint)
WITH_BUILTIN(nearbyint, rint)

INLINE double reciprocal_root(double x) { return 1 / root(x); }
BOTH(sqrt, root)
BOTH(rsqrt, reciprocal_root)

/* Halves go away from zero. */
INLINE double rounded(double x)
{
	double t = __builtin_trunc(x);
	return absolute(x - t) >= 0.5 ? t + with_sign(1, x) : with_sign(t, x);
}
BOTH(round, rounded)
DEVICE long long __nv_llrint(double x) { return (long long)__builtin_rint(x); }
DEVICE long long __nv_llrintf(float x) { return (long long)__builtin_rintf(x); }

DEVICE double __nv_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
DEVICE float __nv_fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
DEVICE double __nv_fmax(double x, double y) { return x != x || x < y ? y : x; }
DEVICE float __nv_fmaxf(float x, float y) { return x != x || x < y ? y : x; }
DEVICE double __nv_fmin(double x, double y) { return x != x || x > y ? y : x; }
DEVICE float __nv_fminf(float x, float y) { return x != x || x > y ? y : x; }
DEVICE double __nv_copysign(double x, double y) { return with_sign(x, y); }
DEVICE float __nv_copysignf(float x, float y) { return from_bits_f((bits_f(x) & 0x7fffffff) | (bits_f(y) & 0x80000000)); }
DEVICE double __nv_ldexp(double x, int n) { return scaled(x, n); }
DEVICE float __nv_ldexpf(float x, int n) { return (float)scaled(x, n > 400 ? 400 : n < -400 ? -400 : n); }

/* The distance of a plane's point from its origin; the larger side is scaled to about one. */
DEVICE double __nv_hypot(double x, double y)
{
	double a = absolute(x), b = absolute(y);
	int e;
	if (a == INF || b == INF)
		return INF;
	if (x != x || y != y)
		return NOT_A_NUMBER;
	double large = a > b ? a : b, small = a > b ? b : a;
	if (large == 0)
		return 0;
	parts(large, &e);
	large = scaled(large, -e);
	small = scaled(small, -e);
	return scaled(root(fused(large, large, small * small)), e);
}
DEVICE float __nv_hypotf(float x, float y)
{
	double a = x, b = y;
	if (absolute(a) == INF || absolute(b) == INF)
		return (float)INF;
	return (float)root(a * a + b * b);
}

/* Long division in binary: exact. */
INLINE double remainder_of(double x, double y)
{
	double a = absolute(x), b = absolute(y);
	int ea, eb;
	if (!(a < INF) || y != y || b == 0)
		return NOT_A_NUMBER;
	if (a < b)
		return x;
	double ma = parts(a, &ea), mb = parts(b, &eb);
	uint64_t rest = (bits(ma) & ((1ull << 52) - 1)) | 1ull << 52, by = (bits(mb) & ((1ull << 52) - 1)) | 1ull << 52;
	for (int n = ea - eb; n >= 0; n--) {
		if (rest >= by)
			rest -= by;
		if (n)
			rest <<= 1;
	}
	return with_sign(scaled((double)rest, eb - 52), x);
}
BOTH2(fmod, remainder_of)

#define NEXT(name, real, word, to_bits, from, tiny) \
	DEVICE real __nv_##name(real x, real y) \
	{ \
		word u = to_bits(x); \
		if (x != x || y != y) \
			return (real)NOT_A_NUMBER; \
		if (x == y) \
			return y; \
		if (x == 0) \
			return y > 0 ? (real)tiny : -(real)tiny; \
		return from((x < y) == (x > 0) ? u + 1 : u - 1); \
	}
NEXT(nextafter, double, uint64_t, bits, from_bits, 0x1p-1074)
NEXT(nextafterf, float, uint32_t, bits_f, from_bits_f, 0x1p-149)

INLINE int exponent_of(double x)
{
	int e;
	if (x == 0 || x != x)
		return -2147483647 - 1;
	if (absolute(x) == INF)
		return 2147483647;
	parts(x, &e);
	return e;
}
DEVICE int __nv_ilogb(double x) { return exponent_of(x); }
DEVICE int __nv_ilogbf(float x) { return exponent_of(x); }

DEVICE int __nv_isnand(double x) { return x != x; }
DEVICE int __nv_isnanf(float x) { return x != x; }
DEVICE int __nv_isinfd(double x) { return absolute(x) == INF; }
DEVICE int __nv_isinff(float x) { return absolute(x) == INF; }
DEVICE int __nv_isfinited(double x) { return absolute(x) < INF; }
DEVICE int __nv_finitef(float x) { return absolute(x) < INF; }
DEVICE int __nv_signbitd(double x) { return (int)(bits(x) >> 63); }
DEVICE int __nv_signbitf(float x) { return (int)(bits_f(x) >> 31); }

DEVICE int __nv_abs(int x) { return x < 0 ? (int)(0u - (unsigned)x) : x; }
DEVICE long long __nv_llabs(long long x) { return x < 0 ? (long long)(0ull - (unsigned long long)x) : x; }
DEVICE int __nv_mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
DEVICE unsigned __nv_umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
DEVICE long long __nv_mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
DEVICE unsigned long long __nv_umul64hi(unsigned long long x, unsigned long long y) { return (unsigned long long)((unsigned __int128)x * y >> 64); }
DEVICE int __nv_clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
DEVICE int __nv_clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
DEVICE int __nv_popc(int x) { return __builtin_popcount((unsigned)x); }
DEVICE int __nv_popcll(long long x) { return __builtin_popcountll((unsigned long long)x); }
DEVICE int __nv_ffs(int x) { return __builtin_ffs(x); }
DEVICE int __nv_ffsll(long long x) { return __builtin_ffsll(x); }
