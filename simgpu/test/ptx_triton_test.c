/*
 * ptx_triton_test.c: instructions that compilers for matrices print (Triton, Inductor), each against plain C.
 *
 * Lists of one register, policies and hints of caches, asynchronous copies, matrices in shared memory and their products.
 */
#include "ptx_test.h"
#include "../driver/ptx/ptx_half.h"

#include <math.h>
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

void test_triton(void)
{
	lists_and_hints();
}
