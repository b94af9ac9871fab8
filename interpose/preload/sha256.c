/* sha256.c: see sha256.h. The round constants and initial values are computed from their definition: the fractional parts of
 * cube and square roots of the first primes. Integer arithmetic avoids rounding. The images of a vendor's library are 40 MB and more,
 * and each start hashes them. If the processor has instructions for SHA-256, they are used. */
#include "sha256.h"

#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

struct constants {
	uint32_t k[64], h[8];
};

typedef unsigned __int128 u128;

/* The first 32 bits after the point of the r-th root of n (r is 2 or 3): the largest x with x^r <= n * 2^(32 r). */
static uint32_t root_fraction(uint32_t n, int r)
{
	u128 target = (u128)n << (32 * r);
	uint64_t x = 0;
	for (int bit = 36; bit >= 0; bit--) {
		u128 t = x | (uint64_t)1 << bit;
		u128 power = r == 2 ? t * t : t * t * t;
		if (power <= target)
			x = (uint64_t)t;
	}
	return (uint32_t)x;
}

static const struct constants *constants(void)
{
	static struct constants c;
	static _Atomic int ready;
	if (!atomic_load(&ready)) {
		/* Two threads may both compute them, with equal results. A reader sees `ready` only afterwards. */
		int found = 0;
		for (uint32_t n = 2; found < 64; n++) {
			int prime = 1;
			for (uint32_t d = 2; d * d <= n; d++)
				prime &= n % d != 0;
			if (!prime)
				continue;
			if (found < 8)
				__atomic_store_n(&c.h[found], root_fraction(n, 2), __ATOMIC_RELAXED);
			__atomic_store_n(&c.k[found++], root_fraction(n, 3), __ATOMIC_RELAXED);
		}
		atomic_store(&ready, 1);
	}
	return &c;
}

static inline uint32_t rotr(uint32_t v, int n) { return v >> n | v << (32 - n); }

/* One round. The names of the eight variables move on by one with each, so that no value has to. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                                         \
	do {                                                                                                         \
		uint32_t t = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i];          \
		d += t;                                                                                                  \
		h = t + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));                        \
	} while (0)

static void blocks(const uint32_t k[64], uint32_t state[8], const uint8_t *p, size_t n)
{
	for (; n > 0; n--, p += 64) {
		uint32_t w[64], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
		for (int i = 0; i < 16; i++)
			w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
		for (int i = 16; i < 64; i++) {
			uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
			uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
			w[i] = w[i - 16] + s0 + w[i - 7] + s1;
		}
		for (int i = 0; i < 64; i += 8) {
			ROUND(a, b, c, d, e, f, g, h, i);
			ROUND(h, a, b, c, d, e, f, g, i + 1);
			ROUND(g, h, a, b, c, d, e, f, i + 2);
			ROUND(f, g, h, a, b, c, d, e, i + 3);
			ROUND(e, f, g, h, a, b, c, d, i + 4);
			ROUND(d, e, f, g, h, a, b, c, i + 5);
			ROUND(c, d, e, f, g, h, a, b, i + 6);
			ROUND(b, c, d, e, f, g, h, a, i + 7);
		}
		state[0] += a, state[1] += b, state[2] += c, state[3] += d;
		state[4] += e, state[5] += f, state[6] += g, state[7] += h;
	}
}

#if defined(__x86_64__)
/* The processor's instructions for SHA-256, which keep the state as the words ABEF and CDGH. */
__attribute__((target("sha,sse4.1"))) static void blocks_by_instructions(const uint32_t k[64], uint32_t state[8], const uint8_t *p, size_t n)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
	__m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
	__m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
	for (; n > 0; n--, p += 64) {
		const __m128i abef_before = abef, cdgh_before = cdgh;
		__m128i m[4]; /* the last 16 words of the schedule */
		for (int i = 0; i < 4; i++)
			m[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) {
			__m128i wk = _mm_add_epi32(m[i & 3], _mm_loadu_si128((const __m128i *)(k + 4 * i)));
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
			if (i < 12) {
				__m128i x = _mm_add_epi32(_mm_sha256msg1_epu32(m[i & 3], m[(i + 1) & 3]), _mm_alignr_epi8(m[(i + 3) & 3], m[(i + 2) & 3], 4));
				m[i & 3] = _mm_sha256msg2_epu32(x, m[(i + 3) & 3]);
			}
		}
		abef = _mm_add_epi32(abef, abef_before);
		cdgh = _mm_add_epi32(cdgh, cdgh_before);
	}
	low = _mm_shuffle_epi32(abef, 0x1b);
	high = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
	_mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

static int has_instructions(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1) && (c & bit_SSSE3) && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}
#endif

static void add_blocks(const struct constants *c, uint32_t state[8], const uint8_t *p, size_t n)
{
#if defined(__x86_64__)
	static _Atomic int known; /* 1: they are not there, 2: they are */
	if (!atomic_load(&known))
		atomic_store(&known, 1 + (has_instructions() != 0));
	if (atomic_load(&known) == 2) {
		blocks_by_instructions(c->k, state, p, n);
		return;
	}
#endif
	blocks(c->k, state, p, n);
}

void sha256(const void *data, size_t size, uint8_t out[32])
{
	const struct constants *c = constants();
	const uint8_t *p = data;
	uint8_t tail[128] = {0};
	size_t rest = size % 64, padded = rest < 56 ? 64 : 128;
	uint32_t state[8];
	memcpy(state, c->h, sizeof state);
	add_blocks(c, state, p, size / 64);
	if (rest > 0)
		memcpy(tail, p + size - rest, rest);
	tail[rest] = 0x80;
	for (int i = 0; i < 8; i++)
		tail[padded - 1 - i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
	add_blocks(c, state, tail, padded / 64);
	for (int i = 0; i < 32; i++)
		out[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
