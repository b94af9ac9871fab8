/*
 * ptx_order_test.c: the order of warps between barriers, and sleeps.
 *
 * Warps that run from the first to the last would hide a missing barrier from all that read the writes of an earlier warp, and from
 * all whose memory a later warp overwrites.
 */
#include "ptx_test.h"

#include <string.h>
#include <time.h>

#define LAUNCHES 64 /* a mistake stays unseen once in 2^64 runs */
#define THREADS 128

/* Each warp writes a row of shared memory, and reads that of its neighbour on one side, before and after. */
#define KERNEL(barrier, neighbour) ".version 8.7\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n" \
	".reg .b32 %r<9>;\n.reg .b64 %x<4>;\n.reg .pred %q<2>;\n.shared .align 4 .b8 tile[512];\n" \
	"ld.param.u64 %x1, [p];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, tile;\nmad.lo.u32 %r3, %r1, 4, %r2;\n" \
	"st.shared.u32 [%r3], %r1;\n" barrier "\nadd.u32 %r4, %r1, " neighbour ";\nand.b32 %r4, %r4, 127;\nmad.lo.u32 %r5, %r4, 4, %r2;\n" \
	"ld.shared.u32 %r6, [%r5];\nmad.wide.u32 %x2, %r1, 4, %x1;\nst.global.u32 [%x2], %r6;\nret;\n}\n"

/* How many launches gave each thread its neighbour's number. */
static int right(const char *text, uint32_t neighbour)
{
	struct ptx_module *m = load_text(text);
	uint32_t *p = dev_alloc(4 * THREADS);
	int n = 0;

	for (int i = 0; i < LAUNCHES; i++) {
		bool all = true;

		launch_ok(m, "k", 1, THREADS, 0, &p);
		for (uint32_t t = 0; t < THREADS; t++)
			all = all && p[t] == ((t + neighbour) & (THREADS - 1));
		n += all;
	}
	ptx_free(m);
	dev_free_all();
	return n;
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Threads add floats of different sizes: the sum depends on the order of the warps. */
static uint32_t sum(uint64_t seed)
{
	struct ptx_module *m = load_text(".version 8.7\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
		".reg .b32 %r<5>;\n.reg .b64 %x<3>;\n.reg .f32 %f<3>;\nld.param.u64 %x1, [p];\nmov.u32 %r1, %tid.x;\ncvt.rn.f32.u32 %f1, %r1;\n"
		"mul.f32 %f1, %f1, %f1;\nmul.f32 %f1, %f1, 0f3DCCCCCD;\natom.global.add.f32 %f2, [%x1], %f1;\nret;\n}\n");
	uint32_t *p = dev_alloc(4), n;

	ptx_order_seed = seed;
	launch_ok(m, "k", 1, 1024, 0, &p);
	n = *p;
	ptx_free(m);
	dev_free_all();
	return n;
}

/* Half of the threads sleep a millisecond, eight times, at least half as long as asked; the processor has other work meanwhile. */
static void sleeping(void)
{
	struct ptx_module *m = load_text(".version 8.7\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
		".reg .b32 %r<5>;\n.reg .pred %p<3>;\nmov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 1;\nmul.lo.u32 %r2, %r2, 1000000;\nmov.u32 %r3, 8;\n"
		"L:\nnanosleep.u32 %r2;\nsub.u32 %r3, %r3, 1;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra L;\nret;\n}\n");
	uint32_t *p = dev_alloc(4);
	double wall = seconds(CLOCK_MONOTONIC), own = seconds(CLOCK_PROCESS_CPUTIME_ID);

	launch_ok(m, "k", 1, 32, 0, &p);
	wall = seconds(CLOCK_MONOTONIC) - wall;
	own = seconds(CLOCK_PROCESS_CPUTIME_ID) - own;
	CHECK(wall > 0.004 && own < wall / 2, "8 sleeps of 1 ms took %.4f s, and %.4f s of the processor", wall, own);
	ptx_free(m);
	dev_free_all();
}

void test_order(void)
{
	sleeping();


	int before = right(KERNEL("", "96"), 96), after = right(KERNEL("", "32"), 32);

	CHECK(before < LAUNCHES && after < LAUNCHES, "a missing barrier went unseen: %d and %d of %d launches were right", before, after, LAUNCHES);
	CHECK(right(KERNEL("bar.sync 0;", "96"), 96) == LAUNCHES, "with a barrier");
	CHECK(right(KERNEL("bar.sync 0;", "32"), 32) == LAUNCHES, "with a barrier");

	bool varies = false;
	uint32_t first = sum(1);

	for (uint64_t seed = 2; seed < 2 + LAUNCHES; seed++)
		varies |= sum(seed) != first;
	CHECK(varies, "sums of any order are equal");
	ptx_order_seed = 0;
}
