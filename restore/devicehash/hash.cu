/*
 * hash.cu: digest.Sum of chunks of device memory, one block a chunk.
 *
 * A word that lies in one of the objects is hashed as the object's number and the offset in it (digest.Objects). Words are
 * added up in any order: the sum is the same.
 *
 * medusa_finite says of the same chunks which of them hold a floating-point number that is NaN or infinite.
 */
#include "device.h"

typedef unsigned long long u64;

struct Object {
	u64 base, size, id;
};

#define STEP 0x9e3779b97f4a7c15ull
#define MIX1 0xbf58476d1ce4e5b9ull
#define MIX2 0x94d049bb133111ebull
#define MIX3 0xd6e8feb86659fd93ull

__device__ __forceinline__ u64 canonical(u64 word, const Object *objects, int count)
{
	int from = 0, to = count; /* the first object above the word is in [from, to] */
	while (from < to) {
		int middle = (from + to) / 2;
		if (objects[middle].base > word)
			to = middle;
		else
			from = middle + 1;
	}
	if (from == 0)
		return word;
	const Object *o = objects + from - 1;
	u64 offset = word - o->base;
	return offset <= o->size ? 1ull << 63 | o->id << 40 | (offset & ((1ull << 40) - 1)) : word;
}

struct Sums {
	u64 x, y;
};

__device__ __forceinline__ void add(Sums *s, u64 word, u64 place)
{
	u64 x = word ^ (place + 1) * STEP;
	x = (x ^ x >> 32) * MIX1;
	x = (x ^ x >> 29) * MIX2;
	x ^= x >> 32;
	s->x += x;
	x *= MIX3;
	s->y += x ^ x >> 31;
}

__device__ __forceinline__ u64 shuffle_xor(u64 v, int lanes)
{
	int low = shuffle_xor((int)v, lanes), high = shuffle_xor((int)(v >> 32), lanes);
	return (u64)(unsigned)high << 32 | (unsigned)low;
}

/* bytes at from, which is aligned to 8, of which every stride-th chunk counts. Words from low to high may be addresses. */
extern "C" __global__ void medusa_hash(const unsigned char *from, u64 bytes, u64 stride, u64 chunk, const Object *objects, int count,
                                       u64 low, u64 high, u64 *out)
{
	__shared__ Sums part[WARP];
	u64 at = (u64)(unsigned)cta_x() * stride * chunk, size = bytes - at < chunk ? bytes - at : chunk;
	const u64 *words = (const u64 *)(from + at);
	int n = (int)(size / 8), rest = (int)(size % 8);
	Sums sums = {0, 0};
	for (int i = tid_x(); i < n; i += ntid_x()) {
		u64 word = words[i];
		if (word >= low && word <= high)
			word = canonical(word, objects, count);
		add(&sums, word, i);
	}
	if (tid_x() == 0) {
		sums.x += size;
		if (rest) {
			u64 word = 0;
			for (int i = 0; i < rest; i++)
				word |= (u64)from[at + 8 * (u64)n + i] << 8 * i;
			add(&sums, word, n);
		}
	}
	for (int d = WARP / 2; d > 0; d /= 2) {
		sums.x += shuffle_xor(sums.x, d);
		sums.y += shuffle_xor(sums.y, d);
	}
	if (tid_x() % WARP == 0)
		part[tid_x() / WARP] = sums;
	barrier();
	if (tid_x() == 0) {
		for (int i = 1; i < ntid_x() / WARP; i++) {
			sums.x += part[i].x;
			sums.y += part[i].y;
		}
		out[2 * (u64)(unsigned)cta_x()] = sums.x;
		out[2 * (u64)(unsigned)cta_x() + 1] = sums.y;
	}
}

/* low and high are the exponents of the numbers in a word of 32 bits: two, or both the same one. */
extern "C" __global__ void medusa_finite(const unsigned char *from, u64 bytes, u64 stride, u64 chunk, unsigned low, unsigned high,
                                         u64 *out)
{
	u64 at = (u64)(unsigned)cta_x() * stride * chunk, size = bytes - at < chunk ? bytes - at : chunk;
	const unsigned *words = (const unsigned *)(from + at);
	int found = 0;
	for (u64 i = tid_x(); i < size / 4; i += ntid_x())
		found |= (words[i] & low) == low || (words[i] & high) == high;
	if (size % 4 != 0 && tid_x() == 0) {
		const unsigned short *last = (const unsigned short *)(words + size / 4);
		found |= (*last & low) == low;
	}
	if (found)
		out[cta_x()] = 1;
}
