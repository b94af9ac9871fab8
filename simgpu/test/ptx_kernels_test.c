/*
 * ptx_kernels_test.c: whole kernels (ptx/kernels.cu) against host references.
 *
 * Exact if the arithmetic is determined (integers, fma chains), within a stated tolerance for approximations.
 */
#include "ptx_test.h"
#include "../driver/ptx/ptx_half.h"

#include <math.h>
#include <string.h>

#define GRID(x, y) ((uint32_t)(x) | (uint32_t)(y) << 16)

static void fill(float *p, int n)
{
	for (int i = 0; i < n; i++)
		p[i] = random_float();
}

static void vadd(const struct ptx_module *m)
{
	int n = 1000;
	float *a = dev_alloc(4000), *b = dev_alloc(4000), *c = dev_alloc(4000);
	uint64_t before = ptx_instructions();

	fill(a, n);
	fill(b, n);
	launch_ok(m, "vadd", 4, 256, 0, &a, &b, &c, &n);
	for (int i = 0; i < n; i++)
		CHECK(c[i] == a[i] + b[i], "element %d: %g", i, c[i]);
	/* 8 instructions up to the branch and ret for all of 1024 threads, the rest for 1000 of them */
	CHECK(ptx_instructions() - before > 20 * 1000 && ptx_instructions() - before < 24 * 1024, "%llu", (unsigned long long)(ptx_instructions() - before));
}

static void gemm(const struct ptx_module *m)
{
	int r = 128, n = 64, k = 96, wrong = 0;
	float *a = dev_alloc(4 * 128 * 96), *b = dev_alloc(4 * 96 * 64), *c = dev_alloc(4 * 128 * 64);

	fill(a, r * k);
	fill(b, k * n);
	launch_ok(m, "gemm", GRID(n / 64, r / 64), 256, 0, &a, &b, &c, &r, &n, &k);
	for (int i = 0; i < r; i++)
		for (int j = 0; j < n; j++) {
			float s = 0;

			for (int l = 0; l < k; l++)
				s = fmaf(a[i * k + l], b[l * n + j], s);
			wrong += s != c[i * n + j];
		}
	CHECK(!wrong, "%d elements differ", wrong);
}

static void rmsnorm(const struct ptx_module *m)
{
	int n = 200;
	float eps = 1e-5f;
	uint16_t *x = dev_alloc(2 * 3 * 200), *w = dev_alloc(400), *o = dev_alloc(2 * 3 * 200);

	for (int i = 0; i < 3 * n; i++)
		x[i] = (uint16_t)float_half(random_float() * 4);
	for (int i = 0; i < n; i++)
		w[i] = (uint16_t)float_half(random_float());
	launch_ok(m, "rmsnorm", 3, 128, 0, &x, &w, &o, &n, &eps);
	for (int r = 0; r < 3; r++) {
		double s = 0;

		for (int i = 0; i < n; i++)
			s += (double)half_float(x[r * n + i]) * half_float(x[r * n + i]);
		for (int i = 0; i < n; i++) {
			double want = half_float(x[r * n + i]) / sqrt(s / n + eps) * half_float(w[i]), got = half_float(o[r * n + i]);

			/* half of a half's last place, and the float sum's error */
			CHECK(fabs(got - want) <= fabs(want) * 0x1p-10 + 1e-7, "row %d element %d: %g, want %g", r, i, got, want);
		}
	}
}

static void softmax(const struct ptx_module *m)
{
	int n = 96;
	float *x = dev_alloc(4 * 96);
	double t = 0, e[96];

	fill(x, n);
	for (int i = 0; i < n; i++)
		t += e[i] = exp(x[i]);
	launch_ok(m, "softmax", 1, 96, 96 * 4, &x, &n);
	for (int i = 0; i < n; i++)
		CHECK(fabs(x[i] - e[i] / t) < 1e-6 * e[i] / t, "%d: %g, want %g", i, x[i], e[i] / t);
}

static float horner(float x, int n)
{
	float s = 0;

	for (int i = 0; i < n; i++)
		s = fmaf(s, x, (float)i);
	return s;
}

static void calls(const struct ptx_module *m)
{
	float *o = dev_alloc(4 * 96), in[96];
	int n = 5;

	for (int i = 0; i < 96; i++)
		in[i] = o[i] = (float)(i % 4);
	launch_ok(m, "calls", 1, 96, 0, &o, &n);
	for (int i = 0; i < 96; i++) {
		float v = i & 1 ? horner(in[i], n) : in[i], want = v * 2 + 4 + (float)(i + 1) + horner(2, i & 7);

		CHECK(o[i] == want, "thread %d: %g, want %g", i, o[i], want);
	}
}

static void by_value(const struct ptx_module *m)
{
	struct { float *p[4]; int n; short h; char c; } s = { .n = 6, .h = -300, .c = -5 }, *q = dev_alloc(sizeof s);

	for (int i = 0; i < 4; i++)
		s.p[i] = dev_alloc(4 * 64);
	q->h = 1000;
	launch_ok(m, "by_value", 1, 64, 0, &s, &q);
	for (int i = 0; i < 4; i++)
		for (int t = 0; t < 64; t++)
			CHECK(s.p[i][t] == 695 * (i < 2 ? 2 : 1), "%d %d: %g", i, t, s.p[i][t]);
}

static void local_array(const struct ptx_module *m)
{
	int n = 20, *in = dev_alloc(4 * 20 * 64), *out = dev_alloc(4 * 16 * 64);

	for (int i = 0; i < n * 64; i++)
		in[i] = (int)next_random();
	launch_ok(m, "local_array", 1, 64, 0, &in, &out, &n);
	for (int t = 0; t < 64; t++) {
		int count[16] = { 0 };

		for (int i = 0; i < n; i++)
			count[in[i * 64 + t] & 15] += i;
		for (int i = 0; i < 16; i++)
			CHECK(out[i * 64 + t] == count[i], "thread %d count %d: %d", t, i, out[i * 64 + t]);
	}
}

static void globals(struct ptx_module *m)
{
	int *o = dev_alloc(256), again;
	uint64_t p = 0;

	CHECK(ptx_global_count(m) == 3, "%zu", ptx_global_count(m));
	launch_ok(m, "globals", 2, 64, 0, &o);
	for (int i = 0; i < 64; i++)
		CHECK(o[i] == i % 4 + 1, "%d: %d", i, o[i]);
	for (size_t i = 0; i < ptx_global_count(m); i++) {
		const struct ptx_global *g = ptx_global_at(m, i);

		if (!strcmp(g->name, "counter"))
			ptx_init_global(m, i, &again);
		else if (!strcmp(g->name, "pointer"))
			ptx_init_global(m, i, &p);
		else
			CHECK(g->is_const && g->size == 16 && !strcmp(g->name, "table"), "%s", g->name);
	}
	CHECK(again == 5, "initial value %d", again);
	CHECK(p && *(int *)(uintptr_t)p == 5 + 128, "counter is %d", *(int *)(uintptr_t)p);
}

static void divergent(const struct ptx_module *m)
{
	int *in = dev_alloc(4 * 320), *out = dev_alloc(4 * 320);

	for (int i = 0; i < 320; i++) {
		in[i] = 1 + (int)(next_random() % 3000);
		out[i] = -77;
	}
	launch_ok(m, "divergent", 2, 160, 0, &in, &out);
	for (int i = 0; i < 320; i++) {
		int n = in[i], s = 0, want;

		while (n != 1) {
			n = n & 1 ? 3 * n + 1 : n >> 1;
			if (++s > 200)
				break;
		}
		want = in[i] % 5 == 0 ? s + 1000 : in[i] % 5 == 1 ? s * 3 : in[i] % 5 == 2 ? s ^ 0x55 : in[i] % 5 == 3 ? -77 : -s;
		CHECK(out[i] == want, "%d -> %d, want %d", in[i], out[i], want);
	}
}

static void waiting(const struct ptx_module *m)
{
	int *flag = dev_alloc(4 * 6), *order = dev_alloc(4 * 5), *mutex = dev_alloc(4), *sum = dev_alloc(4);

	launch_ok(m, "chain", 5, 32, 0, &flag, &order);
	for (int i = 0; i < 5; i++)
		CHECK(order[i] == 4 - i, "block %d came %d.", i, order[i]);
	launch_ok(m, "lock", 2, 64, 0, &mutex, &sum);
	CHECK(*sum == 2 * 63 * 32, "%d", *sum);
}

static void warp_ops(const struct ptx_module *m)
{
	unsigned *o = dev_alloc(4 * 8 * 64), v[32], w[32];

	launch_ok(m, "warp_ops", 1, 64, 0, &o);
	for (unsigned i = 0; i < 64; i++) {
		unsigned ballot = 0, sum = 0, match = 0, count = 0, l = i % 32, seg = l & 24;

		for (unsigned k = 0; k < 32; k++) {
			v[k] = (i / 32 * 32 + k) * 7 % 32;
			w[k] = k & 1 ? v[k] * v[k] + 1 : v[k];
			ballot |= (unsigned)(v[k] > 15) << k;
			sum += v[k];
		}
		for (unsigned k = 0; k < 32; k++)
			match |= (unsigned)((v[k] & 3) == (v[l] & 3)) << k;
		for (unsigned k = 0; k < 64; k++)
			count += k * 7 % 32 & 1;
		CHECK(o[i] == ballot, "ballot %u: %x", i, o[i]);
		CHECK(o[64 + i] == v[l >= 3 ? l - 3 : l], "up %u: %u", i, o[64 + i]);
		CHECK(o[128 + i] == v[l + 5 < 32 ? l + 5 : l], "down %u: %u", i, o[128 + i]);
		CHECK(o[192 + i] == v[seg | (i * 3 & 7)], "idx %u: %u", i, o[192 + i]);
		CHECK(o[256 + i] == sum, "redux %u: %u", i, o[256 + i]);
		CHECK(o[320 + i] == match, "match %u: %x", i, o[320 + i]);
		CHECK(o[384 + i] == count, "popc %u: %u", i, o[384 + i]);
		CHECK(o[448 + i] == w[l ^ 1], "late %u: %u", i, o[448 + i]);
	}
}

static void atomics(const struct ptx_module *m)
{
	int *i = dev_alloc(8), most = 0;
	float *f = dev_alloc(4);
	unsigned *u = dev_alloc(16);

	launch_ok(m, "atomics", 3, 40, 0, &i, &f, &u);
	CHECK(*f == 60, "sum %g", *f);
	for (int t = 0; t < 40; t++)
		most = t * 13 % 97 > most ? t * 13 % 97 : most;
	CHECK(i[0] == most && i[1] == -50, "max %d min %d", i[0], i[1]);
	CHECK(u[0] == 120 % 10, "inc %u", u[0]);
	CHECK(u[1] == UINT32_MAX, "or %x", u[1]);
	CHECK(u[2] == 0 && u[3] == 240, "add.u64 %x %x", u[2], u[3]);
}

static void barriers(const struct ptx_module *m)
{
	int *o = dev_alloc(4 * 256), n = 77;

	launch_ok(m, "named", 1, 128, 0, &o);
	for (int i = 0; i < 64; i++)
		CHECK(o[i] == i * i, "%d: %d", i, o[i]);
	launch_ok(m, "early", 1, 200, 0, &o, &n);
	for (int i = 0; i < n; i++)
		CHECK(o[i] == n - 1 - i, "%d: %d", i, o[i]);
}

void test_kernels(void)
{
	struct ptx_module *m = load_sample("kernels.ptx");

	vadd(m);
	gemm(m);
	rmsnorm(m);
	softmax(m);
	calls(m);
	by_value(m);
	local_array(m);
	divergent(m);
	waiting(m);
	warp_ops(m);
	atomics(m);
	barriers(m);
	globals(m);
	ptx_free(m);
	dev_free_all();
}
