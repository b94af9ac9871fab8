// Kernels of random programs: integers only, so that every order of work that the edges allow gives the same bits, and each
// word of a parameter, a table, a variable or a tensor map shows in what they write. Compiled by make programs-ptx.
#include "device.h"

#define __constant__ __attribute__((constant))

typedef unsigned u32;
typedef unsigned long long u64;

struct Axpy {
	const u32 *x;
	u32 *y;
	u32 a;
	int n;
};

// Between times and y, and behind n, lie bytes that nobody writes.
struct Padded {
	const u32 *x;
	unsigned char times;
	u32 *y;
	int n;
};

// What a host knows of a tensor map: 128 bytes that begin with an address.
struct __attribute__((aligned(64))) Map {
	u64 word[16];
};

extern "C" __device__ u32 state[64];
extern "C" __device__ const u32 *where;
extern "C" __constant__ u32 factors[16];

__device__ u32 state[64] = {1, 2, 3};
__device__ const u32 *where = 0;
__constant__ u32 factors[16] = {3, 5, 7};

__device__ __forceinline__ int index() { return cta_x() * ntid_x() + tid_x(); }

extern "C" __global__ void axpy(Axpy p)
{
	int i = index();
	if (i < p.n)
		p.y[i] += p.a * p.x[i];
}

// The signature of axpy with another result: nodes of one template may differ in their kernel.
extern "C" __global__ void axmy(Axpy p)
{
	int i = index();
	if (i < p.n)
		p.y[i] = p.y[i] * 3 - p.a * p.x[i];
}

extern "C" __global__ void padded(Padded p)
{
	int i = index();
	if (i < p.n)
		p.y[i] += p.times * p.x[i];
}

extern "C" __global__ void add(const u32 *x, const u32 *y, u32 *out, int n)
{
	int i = index();
	if (i < n)
		out[i] = x[i] + 2 * y[i] + 1;
}

// out += the rows of a table of pointers in memory.
extern "C" __global__ void gather(const u32 *const *table, int rows, u32 *out, int n)
{
	int i = index();
	if (i >= n)
		return;
	for (int r = 0; r < rows; r++)
		out[i] += (r + 1) * table[r][i];
}

extern "C" __global__ void tag(u32 *out, u64 word, int n)
{
	int i = index();
	if (i < n)
		out[i] += (u32)(word >> (i % 33));
}

// As tag, with an address of the host's memory that it does not follow.
extern "C" __global__ void aside(u32 *out, u64 word, int n, const void *)
{
	int i = index();
	if (i < n)
		out[i] += (u32)(word >> (i % 33));
}

// Reads variables of its module, which no parameter leads to.
extern "C" __global__ void stateful(u32 *out, int n)
{
	int i = index();
	if (i < n)
		out[i] += state[i % 64] * factors[i % 16];
}

extern "C" __global__ void bump(int by)
{
	int i = index();
	if (i < 64)
		state[i] = state[i] * 5 + by;
}

// Follows a pointer in a variable of its module.
extern "C" __global__ void through(u32 *out, int n)
{
	int i = index();
	if (i < n)
		out[i] ^= where ? where[i] : 0x55555555u;
}

extern "C" __global__ void mapped(Map m, u32 *out, int n)
{
	int i = index();
	if (i < n)
		out[i] += ((const u32 *)m.word[0])[i] + (u32)m.word[1 + i % 15];
}

extern "C" __global__ void mapped_memory(const Map *m, u32 *out, int n)
{
	int i = index();
	if (i < n)
		out[i] += ((const u32 *)m->word[0])[i] + (u32)m->word[1 + i % 15];
}

extern __shared__ u32 row[];

extern "C" __global__ void shared_row(const u32 *x, u32 *out, int n, int far)
{
	int t = tid_x(), i = index();
	row[far + t] = i < n ? x[i] : 0;
	barrier();
	if (i < n)
		out[i] += row[far + (t + 1) % ntid_x()];
}
