/*
 * kernels.cu: the kinds of code that kernels of language models are made of, for the interpreter's tests.
 *
 * kernels.ptx is made from it by
 *   clang++-19 -x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -nocudainc -nocudalib -Xclang -target-feature -Xclang +ptx71 -O2 -S
 */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define tx ((int)__nvvm_read_ptx_sreg_tid_x())
#define nx ((int)__nvvm_read_ptx_sreg_ntid_x())
#define bx ((int)__nvvm_read_ptx_sreg_ctaid_x())
#define by ((int)__nvvm_read_ptx_sreg_ctaid_y())
#define gx ((int)__nvvm_read_ptx_sreg_nctaid_x())
#define sync() __syncthreads()
#define noinline __attribute__((noinline))
typedef _Float16 half;

extern "C" {

__global__ void vadd(const float *a, const float *b, float *c, int n)
{
	int i = bx * nx + tx;
	if (i < n)
		c[i] = a[i] + b[i];
}

/* 64 x 64 a block of 256 threads, 4 x 4 a thread; m, n multiples of 64, k of 16 */
__global__ void gemm(const float *A, const float *B, float *C, int m, int n, int k)
{
	__shared__ float As[16][64], Bs[16][64];
	int x = tx & 15, y = tx >> 4, row = by * 64, col = bx * 64;
	float acc[4][4] = {};
	for (int k0 = 0; k0 < k; k0 += 16) {
		for (int i = tx; i < 1024; i += 256)
			As[i & 15][i >> 4] = A[(row + (i >> 4)) * k + k0 + (i & 15)];
		for (int i = tx; i < 1024; i += 256)
			Bs[i >> 6][i & 63] = B[(k0 + (i >> 6)) * n + col + (i & 63)];
		sync();
#pragma unroll
		for (int l = 0; l < 16; l++)
#pragma unroll
			for (int i = 0; i < 4; i++)
#pragma unroll
				for (int j = 0; j < 4; j++)
					acc[i][j] = __builtin_fmaf(As[l][y * 4 + i], Bs[l][x * 4 + j], acc[i][j]);
		sync();
	}
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++)
			C[(row + y * 4 + i) * n + col + x * 4 + j] = acc[i][j];
}

__global__ void rmsnorm(const half *x, const half *w, half *o, int n, float eps)
{
	__shared__ float part[32];
	float s = 0, t = 0;
	for (int i = tx; i < n; i += nx) {
		float v = x[bx * n + i];
		s += v * v;
	}
	for (int d = 16; d; d >>= 1)
		s += __nvvm_shfl_sync_bfly_f32(-1, s, d, 31);
	if ((tx & 31) == 0)
		part[tx >> 5] = s;
	sync();
	for (int i = 0; i < nx / 32; i++)
		t += part[i];
	float r = __nvvm_rsqrt_approx_f(t / n + eps);
	for (int i = tx; i < n; i += nx)
		o[bx * n + i] = (half)((float)x[bx * n + i] * r * (float)w[i]);
}

__global__ void softmax(float *x, int n)
{
	extern __shared__ float e[];
	float v = x[bx * nx + tx], t = 0;
	e[tx] = __nvvm_ex2_approx_f(v * 1.44269504f);
	sync();
	for (int i = 0; i < n; i++)
		t += e[i];
	x[bx * nx + tx] = e[tx] / t;
}

/* Calls with parameters by value, in registers' place and in memory. */
struct Pair { float a[3]; int n; };
static __device__ noinline float horner(float x, int n)
{
	float s = 0;
	for (int i = 0; i < n; i++)
		s = s * x + (float)i;
	return s;
}
static __device__ noinline Pair scale(Pair p, float f)
{
	for (int i = 0; i < 3; i++)
		p.a[i] *= f;
	p.n += (int)horner(f, 2);
	return p;
}
__global__ void calls(float *o, int n)
{
	float v = o[tx];
	if (tx & 1)
		v = horner(v, n);
	Pair p = scale(Pair{{v, 1, 2}, tx}, 2);
	o[tx] = p.a[0] + p.a[2] + (float)p.n + horner(2, tx & 7);
}

struct Args { float *p[4]; int n; short h; char c; };
__global__ void by_value(Args s, const Args *q)
{
	for (int i = 0; i < s.n; i++)
		s.p[i & 3][tx] += (float)(q->h + s.c + s.h);
}

/* An array in local memory, indexed by data. */
__global__ void local_array(const int *in, int *out, int n)
{
	int count[16];
	for (int i = 0; i < 16; i++)
		count[i] = 0;
	for (int i = 0; i < n; i++)
		count[in[i * nx + tx] & 15] += i;
	for (int i = 0; i < 16; i++)
		out[i * nx + tx] = count[i];
}

__device__ int counter = 5;
__constant__ float table[4] = { 1, 2, 3, 4 };
__device__ int *pointer = &counter;
__global__ void globals(int *o)
{
	__nvvm_atom_add_gen_i(pointer, 1);
	o[tx] = (int)table[tx & 3];
}

__global__ void divergent(const int *in, int *out)
{
	int i = bx * nx + tx, n = in[i], s = 0;
	while (n != 1) {
		if (n & 1)
			n = 3 * n + 1;
		else
			n >>= 1;
		s++;
		if (s > 200)
			break;
	}
	switch (in[i] % 5) {
	case 0: s += 1000; break;
	case 1: s *= 3; break;
	case 2: s ^= 0x55; break;
	case 3: return;
	default: s = -s;
	}
	out[i] = s;
}

/* Blocks of a row wait for the one before them, from the last to the first: the block that is waited for starts later. */
__global__ void chain(volatile int *flag, int *order)
{
	if (tx == 0) {
		if (bx + 1 < gx)
			while (!flag[bx + 1])
				;
		order[bx] = __nvvm_atom_add_gen_i((int *)&flag[gx], 1);
		__nvvm_membar_gl();
		flag[bx] = 1;
	}
}

/* Every thread takes a lock that others of its warp hold. */
__global__ void lock(int *mutex, int *sum)
{
	while (__nvvm_atom_cas_gen_i(mutex, 0, 1) != 0)
		;
	*(volatile int *)sum = *(volatile int *)sum + tx;
	__nvvm_membar_gl();
	__nvvm_atom_xchg_gen_i(mutex, 0);
}

__global__ void warp_ops(unsigned *o)
{
	unsigned v = (unsigned)tx * 7 % 32;
	o[tx] = __nvvm_vote_ballot_sync(-1, v > 15);
	o[nx + tx] = (unsigned)__nvvm_shfl_sync_up_i32(-1, (int)v, 3, 0);
	o[2 * nx + tx] = (unsigned)__nvvm_shfl_sync_down_i32(-1, (int)v, 5, 31);
	o[3 * nx + tx] = (unsigned)__nvvm_shfl_sync_idx_i32(-1, (int)v, tx * 3, (24 << 8) | 31);
	o[4 * nx + tx] = (unsigned)__nvvm_redux_sync_add((int)v, -1);
	o[5 * nx + tx] = __nvvm_match_any_sync_i32(-1, v & 3);
	o[6 * nx + tx] = (unsigned)__nvvm_bar0_popc((int)(v & 1));
	/* Half of the warp gets here late. */
	if (tx & 1)
		v = v * v + 1;
	o[7 * nx + tx] = (unsigned)__nvvm_shfl_sync_bfly_i32(-1, (int)v, 1, 31);
}

__global__ void atomics(int *i, float *f, unsigned *u)
{
	__nvvm_atom_add_gen_f(f, 0.5f);
	__nvvm_atom_max_gen_i(i, tx * 13 % 97);
	__nvvm_atom_min_gen_i(i + 1, tx * 13 % 97 - 50);
	__nvvm_atom_inc_gen_ui(u, 9);
	__nvvm_atom_or_gen_i((int *)u + 1, 1 << (tx & 31));
	__nvvm_atom_add_gen_ll((long long *)(u + 2), 1ll << 33);
}

/* Warps hand work to each other through named barriers: one half produces, the other consumes. */
__global__ void named(int *o)
{
	__shared__ int box[64];
	if (tx < 64) {
		box[tx] = tx * tx;
		asm volatile("bar.arrive 1, 128;" ::: "memory");
	} else {
		asm volatile("bar.sync 1, 128;" ::: "memory");
		o[tx - 64] = box[tx - 64];
	}
}

/* Threads of a block leave early; the others still meet. */
__global__ void early(int *o, int n)
{
	__shared__ int s[256];
	if (tx >= n)
		return;
	s[tx] = tx;
	sync();
	o[tx] = s[n - 1 - tx];
}

__global__ void spin(int *o)
{
	while (*(volatile int *)o == 0)
		;
}

__global__ void store_at(float *p, long long i) { p[i] = 1; }
__global__ void shared_at(float *p, int i)
{
	__shared__ float s[32];
	s[tx] = 1;
	sync();
	*p = s[i];
}
__global__ void stop(int *o) { if (o[tx]) __builtin_trap(); }
}
