/* sha256.c: see sha256.h. The round constants and initial values are computed from their definition: the fractional parts of
 * cube and square roots of the first primes. Integer arithmetic avoids rounding. */
#include "sha256.h"

#include <stdatomic.h>
#include <string.h>

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

static void block(const struct constants *c, uint32_t state[8], const uint8_t *p)
{
	uint32_t w[64], v[8];
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
	memcpy(v, state, sizeof v);
	for (int i = 0; i < 64; i++) {
		uint32_t s1 = rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25);
		uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + c->k[i] + w[i];
		uint32_t s0 = rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22);
		uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof v[0]);
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		state[i] += v[i];
}

void sha256(const void *data, size_t size, uint8_t out[32])
{
	const struct constants *c = constants();
	const uint8_t *p = data;
	uint8_t tail[128] = {0};
	size_t rest = size % 64, padded = rest < 56 ? 64 : 128;
	uint32_t state[8];
	memcpy(state, c->h, sizeof state);
	for (size_t i = 0; i + 64 <= size; i += 64)
		block(c, state, p + i);
	if (rest > 0)
		memcpy(tail, p + size - rest, rest);
	tail[rest] = 0x80;
	for (int i = 0; i < 8; i++)
		tail[padded - 1 - i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
	for (size_t i = 0; i < padded; i += 64)
		block(c, state, tail + i);
	for (int i = 0; i < 32; i++)
		out[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
