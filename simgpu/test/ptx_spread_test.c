/*
 * ptx_spread_test.c: the blocks of a launch on several processors.
 *
 * A thread asks for live memory once for each instruction of a launch: the threads that asked are those that ran blocks.
 */
#include "../driver/ptx/ptx_internal.h"
#include "ptx_test.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#define BLOCKS 2048
#define THREADS 128
#define LAUNCHES 32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t asked[64];
static int nasked;

/* The first asker waits so many seconds for a second thread, which takes a block in this time if it was started. */
static double patience;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int note(void)
{
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < nasked && !pthread_equal(asked[i], pthread_self()); i++)
		;
	if (i == nasked && nasked < 64)
		asked[nasked++] = pthread_self();
	i = nasked;
	pthread_mutex_unlock(&lock);
	return i;
}

static struct ptx_range find(void *ctx, uint64_t addr)
{
	for (double until = now() + patience; note() < 2 && now() < until;)
		sched_yield();
	return dev_memory.find(ctx, addr);
}

/* Each thread of a block writes its neighbour's value in shared memory, times the block's number; more follows in front of ret. */
#define KERNEL(more) ".version 8.7\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n" \
	".reg .b32 %r<12>;\n.reg .b64 %x<4>;\n.reg .pred %q<2>;\n.shared .align 4 .b8 tile[512];\n" \
	"ld.param.u64 %x1, [p];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, tile;\nmad.lo.u32 %r3, %r1, 4, %r2;\nmov.u32 %r7, %ctaid.x;\n" \
	"st.shared.u32 [%r3], %r1;\nbar.sync 0;\nadd.u32 %r4, %r1, 32;\nand.b32 %r4, %r4, 127;\nmad.lo.u32 %r5, %r4, 4, %r2;\n" \
	"ld.shared.u32 %r6, [%r5];\nmul.lo.u32 %r6, %r6, %r7;\nmad.lo.u32 %r8, %r7, 128, %r1;\nmul.wide.u32 %x2, %r8, 4;\nadd.u64 %x2, %x1, %x2;\n" \
	more "st.global.u32 [%x2], %r6;\nret;\n}\n"

static int run(const char *text, uint32_t blocks, uint64_t bytes, int threads, struct ptx_fault *fault, uint32_t **out)
{
	struct ptx_module *m = load_text(text);
	const uint32_t grid[3] = { blocks, 1, 1 }, block[3] = { THREADS, 1, 1 };
	const struct ptx_memory memory = { find, NULL, NULL };
	int rc;

	nasked = 0;
	ptx_threads = threads;
	*out = dev_alloc(bytes);
	rc = ptx_launch(kernel_named(m, "k"), grid, block, 0, out, &memory, fault);
	ptx_threads = 0;
	ptx_free(m);
	return rc;
}

static bool right(const uint32_t *p, uint32_t blocks)
{
	for (uint32_t i = 0; i < blocks * THREADS; i++)
		if (p[i] != ((i % THREADS + 32) & (THREADS - 1)) * (i / THREADS))
			return false;
	return true;
}

static void test_one(const char *text, uint32_t blocks, bool several, const char *what)
{
	struct ptx_fault f;
	uint32_t *p;
	int rc;

	patience = several ? 10 : 0.3;
	rc = run(text, blocks, 4ull * blocks * THREADS, 4, &f, &p);
	patience = 0;
	CHECK(rc == 0 && right(p, blocks), "%s: %s", what, f.text);
	CHECK(several ? nasked > 1 : nasked == 1, "%s: %d threads ran blocks", what, nasked);
	dev_free_all();
}

void test_spread(void)
{
	struct ptx_fault f;
	uint32_t *p;

	test_one(KERNEL(""), BLOCKS, true, "many blocks");
	test_one(KERNEL(""), 8, false, "few blocks");
	test_one(KERNEL("atom.global.add.u32 %r9, [%x2], 1;\n"), BLOCKS, false, "atomic sums");
	test_one(KERNEL("mov.u32 %r9, %clock;\n"), BLOCKS, false, "a clock");

	/* All blocks from one on write behind the end. The first of them is found by some thread before that thread takes a later one. */
	for (uint32_t bad = 1; bad < LAUNCHES; bad++) {
		int rc = run(KERNEL(""), BLOCKS, 4ull * bad * THREADS, 4, &f, &p);

		CHECK(rc == -1 && f.kind == PTX_ILLEGAL_ADDRESS && f.block[0] == bad, "fault of block %u: kind %d block %u", bad, (int)f.kind, f.block[0]);
		dev_free_all();
	}
}
