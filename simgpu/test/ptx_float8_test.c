/*
 * ptx_float8_test.c: cvt to and from numbers of 8 bits, and to TF32.
 *
 * The numbers come from tables that are made here by the definition of each type: sign, exponent, mantissa. Rounding is a search of the table.
 */
#include "ptx_test.h"
#include "../driver/ptx/ptx_half.h"

#include <math.h>
#include <string.h>

#define THREADS 256
#define HEAD ".version 8.7\n.target sm_89\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q)\n{\n" \
	".reg .b16 %h<4>;\n.reg .b32 %r<6>;\n.reg .b64 %x<6>;\n.reg .f32 %f<6>;\n" \
	"ld.param.u64 %x1, [p];\nld.param.u64 %x2, [q];\nmov.u32 %r1, %tid.x;\nmad.wide.u32 %x3, %r1, 8, %x1;\nmad.wide.u32 %x4, %r1, 4, %x2;\n"
#define TAIL "\nret;\n}\n"

struct type { const char *name; int digits, bias, last; }; /* last: the largest finite number */
static const struct type types[] = { { "e4m3x2", 3, 7, 0x7e }, { "e5m2x2", 2, 15, 0x7b } };

/* Of a number up to the largest one. */
static double value(const struct type *t, int v)
{
	int e = (v & 0x7f) >> t->digits, m = v & ((1 << t->digits) - 1);
	double d = e ? ldexp(1 + ldexp(m, -t->digits), e - t->bias) : ldexp(m, 1 - t->bias - t->digits);

	return v & 0x80 ? -d : d;
}

/* The nearest number, of two the one whose last digit is 0. */
static int nearest(const struct type *t, double d)
{
	int best = 0;

	if (isnan(d))
		return 0x7f;
	if (fabs(d) > value(t, t->last))
		return t->last | (signbit(d) ? 0x80 : 0);
	for (int v = 1; v <= t->last; v++) {
		double old = fabs(fabs(d) - value(t, best)), now = fabs(fabs(d) - value(t, v));

		if (now < old || (now == old && !(v & 1)))
			best = v;
	}
	return best | (signbit(d) ? 0x80 : 0);
}

static float number(const struct type *t, int i)
{
	static const float odd[] = { 0, -0.0f, INFINITY, -INFINITY, NAN, 448, 449, 464, 465, -480, 57344, 61440, -61441, 1e30f, 1e-30f, 0x1p-9f, 0x1p-10f, 0x1.8p-10f };

	if (i < (int)(sizeof odd / sizeof *odd))
		return odd[i];
	if (i < 128) { /* halfway between neighbours */
		int v = (int)(next_random() % (uint32_t)t->last);

		return (float)((value(t, v) + value(t, v + 1)) / 2) * (i & 1 ? 1 : -1);
	}
	return random_float() * ldexpf(1, (int)(next_random() % 40) - 20);
}

static void run(const char *text, void *p, void *q)
{
	struct ptx_module *m = load_text(text);

	launch_ok(m, "k", 1, THREADS, 0, &p, &q);
	ptx_free(m);
}

static void narrow(const struct type *t, bool halves, bool relu)
{
	float (*p)[2] = dev_alloc(8 * THREADS);
	uint32_t *q = dev_alloc(4 * THREADS);
	char text[2048];

	for (int i = 0; i < THREADS; i++)
		for (int k = 0; k < 2; k++)
			p[i][k] = halves ? half_float(float_half(number(t, (i + 7 * k) % THREADS))) : number(t, (i + 7 * k) % THREADS);
	snprintf(text, sizeof text, "%sld.global.v2.f32 {%%f1, %%f2}, [%%x3];\ncvt.rn.f16x2.f32 %%r2, %%f1, %%f2;\n"
		"cvt.rn.satfinite%s.%s.%s;\ncvt.u32.u16 %%r3, %%h1;\nst.global.u32 [%%x4], %%r3;" TAIL, HEAD, relu ? ".relu" : "", t->name, halves ? "f16x2 %h1, %r2" : "f32 %h1, %f1, %f2");
	run(text, p, q);
	for (int i = 0; i < THREADS; i++) {
		int hi = nearest(t, relu && p[i][0] < 0 ? 0 : p[i][0]), lo = nearest(t, relu && p[i][1] < 0 ? 0 : p[i][1]);

		CHECK(q[i] == (uint32_t)(hi << 8 | lo), "%s of %g and %g: %04x, not %02x%02x", t->name, p[i][0], p[i][1], q[i], hi, lo);
	}
	dev_free_all();
}

static void widen(const struct type *t, bool relu)
{
	uint32_t (*p)[2] = dev_alloc(8 * THREADS), *q = dev_alloc(4 * THREADS);
	char text[2048];

	for (int i = 0; i < THREADS; i++)
		p[i][0] = (uint32_t)(i << 8 | (i * 7 & 255));
	snprintf(text, sizeof text, "%sld.global.u32 %%r2, [%%x3];\ncvt.u16.u32 %%h1, %%r2;\ncvt.rn%s.f16x2.%s %%r3, %%h1;\nst.global.u32 [%%x4], %%r3;" TAIL, HEAD, relu ? ".relu" : "", t->name);
	run(text, p, q);
	for (int i = 0; i < THREADS; i++)
		for (int k = 0; k < 2; k++) {
			int v = (int)(p[i][0] >> 8 * k & 255);
			float want = (float)value(t, v), got = half_float(q[i] >> 16 * k & 0xffff);

			if ((v & 0x7f) > t->last)
				want = t->digits == 2 && (v & 0x7f) == 0x7c ? (v & 0x80 ? -INFINITY : INFINITY) : NAN;
			if (relu && want < 0)
				want = 0;
			CHECK(isnan(want) ? isnan(got) : got == want, "%s %02x: %g, not %g", t->name, v, got, want);
		}
	dev_free_all();
}

static void tf32(void)
{
	float (*p)[2] = dev_alloc(8 * THREADS);
	uint32_t *q = dev_alloc(4 * THREADS);

	for (int i = 0; i < THREADS; i++)
		p[i][0] = i == 0 ? NAN : i == 1 ? INFINITY : i == 2 ? 0x1.001p0f : i == 3 ? -0x1.001p0f : random_float() * ldexpf(1, i % 60 - 30);
	run(HEAD "ld.global.f32 %f1, [%x3];\ncvt.rna.tf32.f32 %r2, %f1;\nst.global.u32 [%x4], %r2;" TAIL, p, q);
	for (int i = 0; i < THREADS; i++) {
		int e;
		double m = frexp(p[i][0], &e), want = isfinite(p[i][0]) ? ldexp(round(ldexp(m, 11)), e - 11) : p[i][0]; /* round: away from zero */

		CHECK(isnan(want) ? isnan(bits_float(q[i])) : bits_float(q[i]) == want, "%a: %a, not %a", p[i][0], bits_float(q[i]), want);
	}
	dev_free_all();
}

void test_float8(void)
{
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 4; k++) {
			narrow(&types[i], k & 1, k & 2);
			widen(&types[i], k & 1);
		}
	tf32();
}
