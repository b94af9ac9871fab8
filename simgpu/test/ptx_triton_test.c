/*
 * ptx_triton_test.c: instructions that compilers for matrices print (Triton, Inductor), each against plain C.
 *
 * Lists of one register, policies and hints of caches, asynchronous copies, matrices in shared memory and their products.
 */
#include "ptx_test.h"
#include "../driver/ptx/ptx_half.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define KERNEL(target, body) ".version 8.7\n.target " target "\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q)\n{\n" \
	".reg .b16 %h<9>;\n.reg .b32 %r<40>;\n.reg .b64 %x<9>;\n.reg .f32 %f<9>;\n.reg .pred %p<9>;\n.shared .align 16 .b8 tile[4096];\n" \
	"ld.param.u64 %x1, [p];\nld.param.u64 %x2, [q];\nmov.u32 %r1, %tid.x;\n" body "\nret;\n}\n"

static void run(const char *text, uint32_t threads, void *p, void *q)
{
	struct ptx_module *m = load_text(text);

	launch_ok(m, "k", 1, threads, 0, &p, &q);
	ptx_free(m);
}

/* The text with each $ replaced by the next string. */
static void compose(char *text, size_t cap, const char *form, ...)
{
	va_list ap;
	size_t n = 0;

	va_start(ap, form);
	for (; *form && n + 1 < cap; form++) {
		const char *s = *form == '$' ? va_arg(ap, const char *) : NULL;

		if (s)
			n += (size_t)snprintf(text + n, cap - n, "%s", s);
		else
			text[n++] = *form;
	}
	va_end(ap);
	text[n < cap ? n : cap - 1] = 0;
}

static void lists_and_hints(void)
{
	uint32_t *p = dev_alloc(1024), *q = dev_alloc(1024);

	for (uint32_t i = 0; i < 64; i++)
		p[i] = next_random();
	run(KERNEL("sm_80", "mad.wide.u32 %x3, %r1, 4, %x1;\nmad.wide.u32 %x4, %r1, 4, %x2;\n"
		"createpolicy.fractional.L2::evict_last.b64 %x5, 1.0;\n"
		"ld.global.L1::evict_last.L2::cache_hint.b32 {%r2}, [%x3], %x5;\nmov.b32 {%r3}, %r2;\nmov.b32 %r4, {%r3};\n"
		"st.shared.b32 [tile], {%r4};\nst.global.L2::cache_hint.b32 [%x4], {%r4}, %x5;\nprefetch.global.L2::evict_last [%x4];\n"
		"atom.global.add.L2::cache_hint.u32 %r5, [%x4], 3, %x5;"), 64, p, q);
	for (uint32_t i = 0; i < 64; i++)
		CHECK(q[i] == p[i] + 3, "%u: %x, not %x", i, q[i], p[i] + 3);
	dev_free_all();
}

/* A copy is there after its wait and not before: the program without the wait reads the old bytes of shared memory. */
static void copies(void)
{
	static const char *const waits[] = { "", "cp.async.commit_group;\ncp.async.wait_group 1;", "cp.async.commit_group;\ncp.async.wait_group 0;", "cp.async.wait_all;" };
	uint32_t *p = dev_alloc(1024), *q = dev_alloc(1024);

	for (uint32_t i = 0; i < 256; i++)
		p[i] = next_random();
	for (int k = 0; k < 4; k++) {
		char text[4096];

		compose(text, sizeof text, KERNEL("sm_80", "mad.wide.u32 %x3, %r1, 16, %x1;\nmad.wide.u32 %x4, %r1, 16, %x2;\nmov.u32 %r2, tile;\nmad.lo.u32 %r2, %r1, 16, %r2;\n"
			"st.shared.v4.u32 [%r2], {7, 7, 7, 7};\nadd.u32 %r9, %r1, 1;\ncp.async.cg.shared.global [%r2], [%x3], 16;\n$\n"
			"ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];\nst.global.v4.u32 [%x4], {%r3, %r4, %r5, %r6};"), waits[k]);
		run(text, 64, p, q);
		for (uint32_t i = 0; i < 256; i++)
			CHECK(q[i] == (k < 2 ? 7 : p[i]), "%s %u: %x", waits[k], i, q[i]);
	}
	/* The first of two groups, fewer bytes than the copy has, none at all by a predicate. */
	run(KERNEL("sm_80", "mad.wide.u32 %x3, %r1, 8, %x1;\nmad.wide.u32 %x4, %r1, 8, %x2;\nmov.u32 %r2, tile;\nmad.lo.u32 %r2, %r1, 32, %r2;\n"
		"st.shared.v4.u32 [%r2], {7, 7, 7, 7};\nst.shared.v4.u32 [%r2+16], {7, 7, 7, 7};\nsetp.ge.u32 %p1, %r1, 16;\n"
		"cp.async.ca.shared.global [%r2], [%x3], 8, 4;\ncp.async.commit_group;\ncp.async.ca.shared.global [%r2+8], [%x3], 8;\ncp.async.commit_group;\n"
		"cp.async.ca.shared.global [%r2+16], [%x3], 4, %p1;\ncp.async.wait_group 1;\n"
		"ld.shared.v2.u32 {%r3, %r4}, [%r2];\nld.shared.u32 %r5, [%r2+8];\ncp.async.wait_all;\nld.shared.u32 %r6, [%r2+16];\n"
		"add.u32 %r3, %r3, %r4;\nadd.u32 %r5, %r5, %r6;\nst.global.v2.u32 [%x4], {%r3, %r5};"), 32, p, q);
	for (uint32_t i = 0; i < 32; i++)
		CHECK(q[2 * i] == p[2 * i] && q[2 * i + 1] == 7 + (i < 16 ? p[2 * i] : 0), "%u: %x %x", i, q[2 * i], q[2 * i + 1]);
	dev_free_all();
}

/* Four matrices of 8 rows of 8 elements lie in p one after another. Lane 4i + j holds elements 2j and 2j + 1 of row i. */
static void rows_of_matrices(void)
{
	static const char *const load[] = {
		"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r2];", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r3, %r4, %r5, %r6}, [%r2];",
		"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r3, %r4}, [%r2];\nldmatrix.sync.aligned.m8n8.x1.trans.b16 {%r5}, [%x5+0];\nmov.b32 %r6, %r5;",
	};
	uint16_t *p = dev_alloc(512), *q = dev_alloc(512);

	for (uint32_t i = 0; i < 256; i++)
		p[i] = (uint16_t)next_random();
	for (int v = 0; v < 3; v++) {
		char text[4096];

		compose(text, sizeof text, KERNEL("sm_90", "mad.wide.u32 %x3, %r1, 16, %x1;\nmad.wide.u32 %x4, %r1, 16, %x2;\nmov.u64 %x5, tile;\nmov.u32 %r2, tile;\nmad.lo.u32 %r2, %r1, 16, %r2;\n"
			"mad.wide.u32 %x5, %r1, 16, %x5;\ncvta.shared.u64 %x5, %x5;\nld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%x3];\nst.shared.v4.b32 [%r2], {%r3, %r4, %r5, %r6};\nbar.warp.sync -1;\n$\n"
			"st.global.v4.b32 [%x4], {%r3, %r4, %r5, %r6};"), load[v]);
		run(text, 32, p, q);
		for (uint32_t lane = 0; lane < 32; lane++)
			for (uint32_t e = 0; e < 8; e++) {
				bool trans = v == 1 || (v == 2 && e >= 4);
				uint32_t i = lane / 4, j = lane % 4 * 2 + e % 2, m = v == 2 && e >= 4 ? 0 : e / 2;

				CHECK(q[lane * 8 + e] == p[m * 64 + (trans ? j * 8 + i : i * 8 + j)], "load %d lane %u element %u: %x", v, lane, e, q[lane * 8 + e]);
			}
	}
	for (int v = 0; v < 2; v++) {
		char text[4096];

		compose(text, sizeof text, KERNEL("sm_90", "mad.wide.u32 %x3, %r1, 16, %x1;\nmad.wide.u32 %x4, %r1, 16, %x2;\nmov.u32 %r2, tile;\nmad.lo.u32 %r2, %r1, 16, %r2;\n"
			"ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%x3];\nstmatrix.sync.aligned.m8n8.x4$.shared.b16 [%r2], {%r3, %r4, %r5, %r6};\nbar.warp.sync -1;\n"
			"ld.shared.v4.b32 {%r3, %r4, %r5, %r6}, [%r2];\nst.global.v4.b32 [%x4], {%r3, %r4, %r5, %r6};"), v ? ".trans" : "");
		run(text, 32, p, q);
		for (uint32_t lane = 0; lane < 32; lane++)
			for (uint32_t e = 0; e < 8; e++) {
				uint32_t i = lane / 4, j = lane % 4 * 2 + e % 2, m = e / 2;

				CHECK(q[m * 64 + (v ? j * 8 + i : i * 8 + j)] == p[lane * 8 + e], "store %d lane %u element %u", v, lane, e);
			}
	}
	dev_free_all();
}

/* One kind of product: A is 16 x k, B is k x 8, registers of a and b per lane, elements in a register. */
struct product { const char *shape, *d, *a, *b, *c; uint32_t k, na, nb, per; bool half, whole; const char *mods; };

static float value(const char *type, uint32_t bits)
{
	uint32_t e, m;

	switch (type[0]) {
	case 'b': return bfloat_float(bits & 0xffff);
	case 'f': return half_float(bits & 0xffff);
	case 't': return bits_float(bits & 0xffffe000);
	case 's': return (int8_t)bits;
	case 'u': return (uint8_t)bits;
	default:
		e = type[1] == '4' ? bits >> 3 & 15 : bits >> 2 & 31;
		m = type[1] == '4' ? bits & 7 : bits & 3;
		return (bits & 0x80 ? -1.0f : 1.0f) * (type[1] == '4' ? (e ? ldexpf(1 + (float)m / 8, (int)e - 7) : ldexpf((float)m / 8, -6))
		                                                      : (e ? ldexpf(1 + (float)m / 4, (int)e - 15) : ldexpf((float)m / 4, -14)));
	}
}

/* Small numbers, so that sums in any order are near each other. */
static uint32_t number(const char *type)
{
	uint32_t r = next_random();

	switch (type[0]) {
	case 'b': return float_bfloat(random_float());
	case 'f': return float_half(random_float());
	case 't': return float_bits(random_float());
	case 'e': return r & (type[1] == '4' ? 0xbf : 0xbf);
	default: return r & 0xff;
	}
}

static void product(const struct product *t)
{
	uint32_t bits = 32 / t->per, mask = bits == 32 ? UINT32_MAX : (1u << bits) - 1, nc = t->half ? 2 : 4;
	uint32_t a[16][64], b[64][8], *p = dev_alloc(32 * 64), *q = dev_alloc(32 * 64);
	char text[4096], lists[4][64];
	float c[16][8];
	const uint32_t from[] = { 20, 3, 7, 9 }, count[] = { nc, t->na, t->nb, nc };

	for (uint32_t i = 0; i < 16; i++)
		for (uint32_t k = 0; k < t->k; k++)
			a[i][k] = number(t->a) & mask;
	for (uint32_t k = 0; k < t->k; k++)
		for (uint32_t j = 0; j < 8; j++)
			b[k][j] = number(t->b) & mask;
	for (uint32_t i = 0; i < 16; i++)
		for (uint32_t j = 0; j < 8; j++)
			c[i][j] = *t->mods ? (next_random() & 1 ? -1 : 1) * 0x1.fffffep30f : t->whole ? (float)(int32_t)(next_random() % 2000) - 1000 : half_float(float_half(random_float()));
	/* Where each element lies, from the tables of the manual: group g = lane / 4, thread t = lane % 4. */
	memset(p, 0, 32 * 64);
	for (uint32_t lane = 0; lane < 32; lane++) {
		uint32_t g = lane / 4, th = lane % 4, *r = p + lane * 16;

		for (uint32_t n = 0; n < t->na; n++)
			for (uint32_t e = 0; e < t->per; e++)
				r[n] |= a[n % 2 ? g + 8 : g][th * t->per + e + (n >= 2 ? 4 * t->per : 0)] << e * bits;
		for (uint32_t n = 0; n < t->nb; n++)
			for (uint32_t e = 0; e < t->per; e++)
				r[4 + n] |= b[th * t->per + e + (n ? 4 * t->per : 0)][g] << e * bits;
		for (uint32_t n = 0; n < 4; n++) {
			float v = c[n < 2 ? g : g + 8][th * 2 + n % 2];

			if (t->half)
				r[6 + n / 2] |= float_half(v) << n % 2 * 16;
			else
				r[6 + n] = t->whole ? (uint32_t)(int32_t)v : float_bits(v);
		}
	}
	for (int l = 0; l < 4; l++) {
		size_t at = 0;

		for (uint32_t n = 0; n < count[l]; n++)
			at += (size_t)snprintf(lists[l] + at, sizeof lists[l] - at, "%s%%%s%u", n ? ", " : "", t->d[0] == 'f' && !t->half && l % 3 == 0 ? "f" : "r", t->d[0] == 'f' && !t->half && l % 3 == 0 ? n + 1 + (l ? 4 : 0) : from[l] + n);
	}
	bool f = t->d[0] == 'f' && !t->half;

	compose(text, sizeof text, KERNEL("sm_89", "mad.wide.u32 %x3, %r1, 64, %x1;\nmad.wide.u32 %x4, %r1, 64, %x2;\nld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%x3];\n"
		"ld.global.v2.b32 {%r7, %r8}, [%x3+16];\nld.global.v2.b32 {$}, [%x3+24];\nld.global.v2.b32 {$}, [%x3+32];\n"
		"mma.sync.aligned.$.row.col$.$.$.$.$ {$}, {$}, {$}, {$};\nst.global.v2.b32 [%x4], {$};\nst.global.v2.b32 [%x4+8], {$};"),
		f ? "%f5, %f6" : "%r9, %r10", f ? "%f7, %f8" : "%r11, %r12", t->shape, t->mods, t->d, t->a, t->b, t->c, lists[0], lists[1], lists[2], lists[3],
		f ? "%f1, %f2" : "%r20, %r21", f ? "%f3, %f4" : t->half ? "%r20, %r21" : "%r22, %r23");
	run(text, 32, p, q);
	for (uint32_t lane = 0; lane < 32; lane++)
		for (uint32_t n = 0; n < 4; n++) {
			uint32_t i = n < 2 ? lane / 4 : lane / 4 + 8, j = lane % 4 * 2 + n % 2, got = q[lane * 16 + (t->half ? n / 2 : n)];
			double want = c[i][j], have = t->half ? half_float(got >> n % 2 * 16 & 0xffff) : t->whole ? (double)(int32_t)got : bits_float(got), size = fabs(want);

			for (uint32_t k = 0; k < t->k; k++) {
				want += (double)value(t->a, a[i][k]) * value(t->b, b[k][j]);
				size += fabs((double)value(t->a, a[i][k]) * value(t->b, b[k][j]));
			}
			if (*t->mods)
				want = want > INT32_MAX ? INT32_MAX : want < INT32_MIN ? INT32_MIN : want;
			CHECK(fabs(have - want) <= size * (t->whole ? 0 : t->half ? 1e-3 : 1e-6), "%s.%s.%s [%u][%u]: %g, not %g", t->shape, t->a, t->b, i, j, have, want);
		}
	dev_free_all();
}

static void products(void)
{
	static const struct product all[] = {
		{ "m16n8k16", "f32", "bf16", "bf16", "f32", 16, 4, 2, 2, false, false, "" }, { "m16n8k8", "f32", "bf16", "bf16", "f32", 8, 2, 1, 2, false, false, "" },
		{ "m16n8k16", "f32", "f16", "f16", "f32", 16, 4, 2, 2, false, false, "" }, { "m16n8k8", "f32", "f16", "f16", "f32", 8, 2, 1, 2, false, false, "" },
		{ "m16n8k16", "f16", "f16", "f16", "f16", 16, 4, 2, 2, true, false, "" }, { "m16n8k8", "f32", "tf32", "tf32", "f32", 8, 4, 2, 1, false, false, "" },
		{ "m16n8k4", "f32", "tf32", "tf32", "f32", 4, 2, 1, 1, false, false, "" }, { "m16n8k32", "s32", "s8", "s8", "s32", 32, 4, 2, 4, false, true, "" },
		{ "m16n8k32", "s32", "u8", "s8", "s32", 32, 4, 2, 4, false, true, ".satfinite" }, { "m16n8k16", "s32", "s8", "u8", "s32", 16, 2, 1, 4, false, true, "" },
		{ "m16n8k32", "f32", "e4m3", "e4m3", "f32", 32, 4, 2, 4, false, false, "" }, { "m16n8k32", "f32", "e5m2", "e4m3", "f32", 32, 4, 2, 4, false, false, "" },
		{ "m16n8k16", "f32", "e4m3", "e5m2", "f32", 16, 2, 1, 4, false, false, "" },
	};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		product(&all[i]);
}

/* Half of a warp takes no part in an operation that needs all of it. */
static void half_a_warp(void)
{
	struct ptx_module *m = load_text(KERNEL("sm_90", "setp.ge.u32 %p1, %r1, 16;\n@%p1 ret;\nmov.u32 %r2, tile;\n"
		"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r2];"));
	uint32_t *p = dev_alloc(64);
	struct ptx_fault fault;

	CHECK(launch(m, "k", 1, 32, 0, &fault, &p, &p) && fault.kind == PTX_ILLEGAL_ADDRESS, "fault %d: %s", fault.kind, fault.text);
	ptx_free(m);
	dev_free_all();
}

void test_triton(void)
{
	half_a_warp();
	lists_and_hints();
	copies();
	rows_of_matrices();
	products();
}
