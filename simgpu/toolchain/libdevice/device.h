/*
 * device.h: helpers that the files of the device library share.
 *
 * The library is C, so that the host's compiler makes the same functions for the tests. Everything is inlined into its caller and no
 * symbol of it stays in a kernel. Functions of single precision compute in double precision and round once, so that one
 * implementation serves both.
 */
#ifndef LIBDEVICE_H
#define LIBDEVICE_H

#include <stdint.h>

#define INLINE static inline __attribute__((always_inline, unused))
/* A function of the library. The host's compiler has no reason to inline it. */
#ifdef __NVPTX__
#define DEVICE __attribute__((always_inline))
#else
#define DEVICE
#endif

/* One argument, in both precisions. */
#define BOTH(name, from) \
	DEVICE double __nv_##name(double x) { return from(x); } \
	DEVICE float __nv_##name##f(float x) { return (float)from(x); }
#define BOTH2(name, from) \
	DEVICE double __nv_##name(double x, double y) { return from(x, y); } \
	DEVICE float __nv_##name##f(float x, float y) { return (float)from(x, y); }

#define INF __builtin_inf()
#define NOT_A_NUMBER __builtin_nan("")

INLINE uint64_t bits(double x) { uint64_t u; __builtin_memcpy(&u, &x, 8); return u; }
INLINE double from_bits(uint64_t u) { double x; __builtin_memcpy(&x, &u, 8); return x; }
INLINE uint32_t bits_f(float x) { uint32_t u; __builtin_memcpy(&u, &x, 4); return u; }
INLINE float from_bits_f(uint32_t u) { float x; __builtin_memcpy(&x, &u, 4); return x; }
INLINE double absolute(double x) { return from_bits(bits(x) & ~(1ull << 63)); }
INLINE double with_sign(double x, double of) { return from_bits((bits(x) & ~(1ull << 63)) | (bits(of) & 1ull << 63)); }
INLINE double root(double x) { return __builtin_sqrt(x); }
INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

/* 2^n for a normal result. */
INLINE double power_of_two(int n) { return from_bits((uint64_t)(n + 1023) << 52); }

/* x * 2^n. Steps that keep the value normal come first, so that the result is rounded once. */
INLINE double scaled(double x, int n)
{
	for (int i = 0; i < 2 && n > 1023; i++, n -= 1023)
		x *= power_of_two(1023);
	for (int i = 0; i < 2 && n < -1022; i++, n += 969)
		x *= power_of_two(-969);
	n = n > 1023 ? 1023 : n < -1022 ? -1022 : n;
	return x * power_of_two(n);
}

/* x = m * 2^e with 1 <= |m| < 2, of a number that is neither zero nor infinite. */
INLINE double parts(double x, int *e)
{
	int shift = (bits(x) >> 52 & 0x7ff) == 0 ? 54 : 0;
	uint64_t u = bits(shift ? x * 0x1p54 : x);
	*e = (int)(u >> 52 & 0x7ff) - 1023 - shift;
	return from_bits((u & ~(0x7ffull << 52)) | 0x3ffull << 52);
}

#endif
