/*
 * ptx_parser_test.c: a module's account of itself, and texts that are refused as no PTX.
 */
#include "ptx_test.h"

#include <string.h>

#define HEAD ".version 7.8\n.target sm_80\n.address_size 64\n"

static void layouts(void)
{
	struct ptx_module *m = load_text(HEAD
		".shared .align 16 .b8 unused[4096];\n.shared .align 4 .b8 tile[100];\n.extern .shared .align 16 .b8 dyn[];\n"
		".visible .entry a(.param .u32 x, .param .align 8 .b8 s[20], .param .u8 c, .param .u64 .ptr .global .align 4 p, .param .u32 .ptr .global .align 16 q)\n"
		".maxntid 16, 8, 2\n.minnctapersm 1\n{\n.reg .b64 %d<3>;\n.local .align 8 .b8 depot[40];\n.shared .align 8 .b64 inner[2];\n"
		"mov.u64 %d1, tile;\nst.shared.u64 [inner+8], %d1;\nmov.u64 %d2, dyn;\nst.shared.u64 [%d2+8], %d1;\nret;\n}\n"
		"// a comment\n.weak .entry b()\n{ /* nothing\n */ ret; }\n"
		".func f(.param .b32 q) .noreturn { trap; exit; }\n"
		"\t.section .debug_str {\n.b8 1, 2, 3\n}\n");
	const struct ptx_param *p;
	struct ptx_kernel *a = kernel_named(m, "a");
	struct ptx_fault fault;

	CHECK(ptx_kernel_count(m) == 2, "%zu", ptx_kernel_count(m));
	CHECK(!strcmp(ptx_kernel_name(ptx_kernel_at(m, 1)), "b") && !ptx_kernel_at(m, 2), "order of kernels");
	CHECK(ptx_kernel_params(a, &p) == 5, "%zu", ptx_kernel_params(a, &p));
	CHECK(p[0].offset == 0 && p[0].size == 4, "u32 at %u", p[0].offset);
	CHECK(p[1].offset == 8 && p[1].size == 20 && p[1].align == 8, "struct at %u", p[1].offset);
	CHECK(p[2].offset == 28 && p[2].size == 1, "u8 at %u", p[2].offset);
	CHECK(p[3].offset == 32 && p[3].size == 8, "u64 at %u", p[3].offset);
	CHECK(p[4].offset == 40 && p[4].align == 4, "pointer at %u, aligned to %u", p[4].offset, p[4].align);
	CHECK(ptx_kernel_param_bytes(a) == 44, "%u", ptx_kernel_param_bytes(a));
	CHECK(ptx_kernel_max_threads(a) == 256 && ptx_kernel_max_threads(kernel_named(m, "b")) == 1024, "%u", ptx_kernel_max_threads(a));
	/* tile and inner, not the variable that no instruction names */
	CHECK(ptx_kernel_shared_bytes(a) >= 116 && ptx_kernel_shared_bytes(a) <= 120, "%u", ptx_kernel_shared_bytes(a));
	CHECK(ptx_kernel_local_bytes(a) >= 40 && ptx_kernel_local_bytes(kernel_named(m, "b")) == 0, "%u", ptx_kernel_local_bytes(a));
	CHECK(launch(m, "a", 1, 32, 8, &fault, "xxxx", "xxxxxxxxxxxxxxxxxxxx", "c", "pppppppp", "qqqq") == -1 && fault.kind == PTX_ILLEGAL_ADDRESS, "dynamic memory of 8 bytes");
	CHECK(launch(m, "a", 1, 32, 16, &fault, "xxxx", "xxxxxxxxxxxxxxxxxxxx", "c", "pppppppp", "qqqq") == 0, "%s", fault.text);
	ptx_free(m);
}

static void initialisers(void)
{
	struct ptx_module *m = load_text(HEAD
		".global .align 4 .b8 bytes[6] = {1, 2, 255};\n.global .align 8 .u64 where[3] = {bytes, generic(bytes)+4, 7};\n"
		".const .f32 ratio = 0f3F000000;\n.global .align 2 .s16 grid[2][2] = {{1, -2}, {3, 4}};\n.global .f64 d = -0d3FF0000000000000;\n.global .u32 zero;\n");
	uint8_t b[6];
	uint64_t w[3];
	float f;
	double d;
	int16_t g[4];
	uint32_t z = 1;

	ptx_bind(m, 0, 0x1000);
	ptx_init_global(m, 0, b);
	ptx_init_global(m, 1, w);
	ptx_init_global(m, 2, &f);
	ptx_init_global(m, 3, g);
	ptx_init_global(m, 4, &d);
	ptx_init_global(m, 5, &z);
	CHECK(b[0] == 1 && b[2] == 255 && b[5] == 0, "%u %u %u", b[0], b[2], b[5]);
	CHECK(w[0] == 0x1000 && w[1] == 0x1004 && w[2] == 7, "%llx %llx", (unsigned long long)w[0], (unsigned long long)w[1]);
	CHECK(f == 0.5f && d == -1 && z == 0 && g[1] == -2 && g[3] == 4, "%g %g %u %d", f, d, z, g[1]);
	CHECK(ptx_global_at(m, 2)->is_const && !ptx_global_at(m, 0)->is_const && !ptx_global_at(m, 6), "spaces");
	ptx_free(m);
	dev_free_all();
}

/* Jumps by table, nested scopes with registers of the same name, labels in inner scopes, vectors and sinks. */
static void forms(void)
{
	struct ptx_module *m = load_text(HEAD
		".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>;\n.reg .b64 %x<9>;\n.reg .b16 %h<4>;\n.reg .pred %p;\nld.param.u64 %x1, [p];\nmov.u32 %r1, %tid.x;\n"
		"mad.wide.u32 %x1, %r1, 16, %x1;\nand.b32 %r2, %r1, 3;\nT: .branchtargets A, B, C, A;\nbrx.idx %r2, T;\n"
		"A: { .reg .b32 %r1; mov.u32 %r1, 10; mov.u32 %r3, %r1; bra D; }\nB: mov.u32 %r3, 20;\nbra.uni D;\nC: { bra E;\n.loc 1 7 8 // a line has no semicolon\n{ mov.u32 %r3, 31; } E: mov.u32 %r3, 30; }\n"
		"D: mov.b32 {%h1, %h2}, 0x00050003;\nmov.b32 {_, %h3}, 0x00070001;\ncvt.u32.u16 %r4, %h3;\nadd.u16 %h1, %h1, %h2;\ncvt.u32.u16 %r5, %h1;\n"
		"mov.u32 %r6, %r1;\nst.global.v4.u32 [%x1], {%r3, %r4, %r5, %r6};\nld.global.v2.u32 {_, %r7}, [%x1+8];\n"
		"setp.ne.u32 %p, %r7, %r1;\n@%p trap;\nret;\n}\n");
	uint32_t *o = dev_alloc(16 * 40);

	launch_ok(m, "k", 1, 40, 0, &o);
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t want = i % 4 == 1 ? 20 : i % 4 == 2 ? 30 : 10;

		CHECK(o[4 * i] == want && o[4 * i + 1] == 7 && o[4 * i + 2] == 8 && o[4 * i + 3] == i, "thread %u: %u %u %u %u", i, o[4 * i], o[4 * i + 1], o[4 * i + 2], o[4 * i + 3]);
	}
	ptx_free(m);
	dev_free_all();
}

/* Values that only some lanes replace, or that are needed again around a loop, must keep their rows; lanes that wait for
 * others in a .sync instruction go on when those exit. */
static void lanes(void)
{
	struct ptx_module *m = load_text(HEAD
		".visible .entry kept(.param .u64 p)\n{\n.reg .b32 %r<20>;\n.reg .b64 %x<3>;\n.reg .pred %p<3>;\nld.param.u64 %x1, [p];\nmov.u32 %r1, %tid.x;\n"
		"mad.wide.u32 %x1, %r1, 4, %x1;\nmov.u32 %r2, 100;\nmov.u32 %r3, 0;\nmov.u32 %r4, 0;\n"
		"L: setp.eq.u32 %p1, %r3, %r1;\n@%p1 mov.u32 %r2, 200;\nadd.u32 %r4, %r4, %r2;\nmul.lo.u32 %r5, %r3, 7;\nmul.lo.u32 %r6, %r5, 5;\nadd.u32 %r7, %r5, %r6;\n"
		"add.u32 %r4, %r4, %r7;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, 8;\n@%p2 bra L;\nst.global.u32 [%x1], %r4;\nret;\n}\n"
		".visible .entry left(.param .u64 p)\n{\n.reg .b32 %r<9>;\n.reg .b64 %x<3>;\n.reg .pred %p<3>;\nld.param.u64 %x1, [p];\nmov.u32 %r1, %tid.x;\n"
		"mad.wide.u32 %x1, %r1, 4, %x1;\nsetp.lt.u32 %p1, %r1, 20;\n@%p1 bra A;\nadd.u32 %r2, %r1, 1;\nadd.u32 %r2, %r2, 1;\nexit;\n"
		"A: shfl.sync.idx.b32 %r3, %r1, 3, 31, -1;\nst.global.u32 [%x1], %r3;\nret;\n}\n"
		".visible .entry leaves(.param .u64 p)\n{\n.reg .b32 %r<9>;\n.reg .b64 %x<3>;\n.reg .pred %p<3>;\nld.param.u64 %x1, [p];\nmov.u32 %r1, %tid.x;\n"
		"mad.wide.u32 %x1, %r1, 4, %x1;\nsetp.ge.u32 %p1, %r1, 20;\n@%p1 bra B;\nshfl.sync.idx.b32 %r3, %r1, 3, 31, -1;\nst.global.u32 [%x1], %r3;\nret;\nB: exit;\n}\n");
	uint32_t *o = dev_alloc(128);

	launch_ok(m, "kept", 1, 32, 0, &o);
	for (uint32_t i = 0; i < 32; i++)
		CHECK(o[i] == 42 * 28 + 800 + (i < 8 ? (8 - i) * 100 : 0), "kept %u: %u", i, o[i]);
	for (int k = 0; k < 2; k++) {
		for (uint32_t i = 0; i < 32; i++)
			o[i] = 77;
		launch_ok(m, k ? "left" : "leaves", 1, 32, 0, &o);
		for (uint32_t i = 0; i < 32; i++)
			CHECK(o[i] == (i < 20 ? 3 : 77), "%d lane %u: %u", k, i, o[i]);
	}
	ptx_free(m);
	dev_free_all();
}

static void refused(void)
{
	static const struct { const char *text, *message; } bad[] = {
		{ HEAD "hello", "line 4: expected a directive" },
		{ HEAD ".entry k()\n{\nadd.s32 %r1, %r2, %r3;\nret;\n}", "line 6: undeclared name %r1" },
		{ HEAD ".entry k()\n{\nbra NOWHERE;\n}", "undeclared label NOWHERE" },
		{ HEAD ".entry k()\n{\nL: L: ret;\n}", "label L is placed twice" },
		{ HEAD ".entry k()\n{\nret\n}", "line 7: expected an operand" },
		{ HEAD ".entry k()\n{\nret;\n", "'}' missing" },
		{ HEAD ".entry k() { ret; }\n.entry k() { ret; }", "defined twice" },
		{ HEAD ".entry k(.param .u32 x y)\n{ ret; }", "expected ')'" },
		{ HEAD ".global .u32 x = \"a\";", "unsupported initialiser" },
		{ HEAD ".global .u32 x[2] = {1, 2, 3};", "too many initialisers" },
		{ HEAD ".extern .global .u32 x;", "not defined in the module" },
		{ HEAD ".global .u32 x[99999999999];", "array of" },
		{ HEAD "/* open", "comment does not end" },
		{ HEAD ".entry k() { .reg .b32 %r<99999999>; ret; }", "99999999 registers" },
		{ HEAD ".entry k() { .reg .b32 r; mov.b32 r, 0f3F80; ret; }", "malformed floating-point constant" },
		{ HEAD "\x01", "unexpected character 0x01" },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char err[128] = "";
		struct ptx_module *m = ptx_parse(bad[i].text, strlen(bad[i].text), err, sizeof err);

		CHECK(!m, "accepted: %s", bad[i].text);
		CHECK(!strncmp(err, "line ", 5) && strstr(err, bad[i].message), "%s: %s", bad[i].text, err);
		ptx_free(m);
	}
	CHECK(!ptx_parse("x", 1, NULL, 0), "accepted without room for a message");
}

void test_parser(void)
{
	layouts();
	initialisers();
	forms();
	lanes();
	refused();
}
