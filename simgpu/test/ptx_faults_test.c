/*
 * ptx_faults_test.c: faults that must stop a launch, and their descriptions.
 */
#include "ptx_test.h"
#include "../driver/ptx/ptx_internal.h"

#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_90a\n.address_size 64\n"
#define KERNEL(body) HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>;\n.reg .b64 %x<9>;\n.reg .f32 %f<9>;\n.reg .pred %p<9>;\nld.param.u64 %x1, [p];\n" body "\nret;\n}\n"

static struct ptx_fault run(const char *text, void *p, int want)
{
	struct ptx_module *m = load_text(text);
	struct ptx_fault f;
	int rc = launch(m, "k", 2, 64, 0, &f, &p);

	CHECK(rc == (want ? -1 : 0), "%s: returned %d", text, rc);
	CHECK((int)f.kind == want, "%s: kind %d, want %d (%s)", text, f.kind, want, f.text);
	ptx_free(m);
	return f;
}

static void addresses(void)
{
	struct ptx_module *m = load_sample("kernels.ptx");
	float *p = dev_alloc(400);
	struct ptx_fault f;
	long long i = 100;
	int j = 32;

	CHECK(launch(m, "store_at", 1, 1, 0, &f, &p, &i) == -1 && f.kind == PTX_ILLEGAL_ADDRESS, "kind %d %s", f.kind, f.text);
	CHECK(f.addr == (uint64_t)(uintptr_t)(p + 100), "address %llx", (unsigned long long)f.addr);
	CHECK(!strncmp(f.text, "st.global.u32 at line ", 22) && strstr(f.text, "in no live allocation"), "%s", f.text);
	i = -1;
	CHECK(launch(m, "store_at", 1, 1, 0, &f, &p, &i) == -1 && f.kind == PTX_ILLEGAL_ADDRESS, "kind %d %s", f.kind, f.text);
	i = 99;
	CHECK(launch(m, "store_at", 1, 1, 0, &f, &p, &i) == 0 && p[99] == 1, "%s", f.text);
	CHECK(launch(m, "shared_at", 1, 32, 0, &f, &p, &j) == -1 && f.kind == PTX_ILLEGAL_ADDRESS && strstr(f.text, "shared memory"), "%s", f.text);
	j = 31;
	CHECK(launch(m, "shared_at", 1, 32, 0, &f, &p, &j) == 0 && p[0] == 1, "%s", f.text);
	ptx_free(m);

	/* A vector access that ends beyond its allocation, a misaligned one, and the lane to blame. */
	f = run(KERNEL("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%x1+384];\nld.global.v2.f32 {%f1, %f2}, [%x1+400];"), p, PTX_ILLEGAL_ADDRESS);
	f = run(KERNEL("ld.global.v2.f32 {%f1, %f2}, [%x1+400];"), dev_alloc(404), PTX_ILLEGAL_ADDRESS);
	CHECK(strstr(f.text, "outside the allocation it starts in (404 bytes)"), "%s", f.text);
	f = run(KERNEL("mov.u32 %r1, %tid.x;\nmad.wide.u32 %x2, %r1, 8, %x1;\nld.global.v2.f32 {%f1, %f2}, [%x2];"), dev_alloc(404), PTX_ILLEGAL_ADDRESS);
	CHECK(f.thread[0] == 50 && strstr(f.text, "outside the allocation it starts in (404 bytes)"), "thread %u %s", f.thread[0], f.text);
	f = run(KERNEL("ld.global.f32 %f1, [%x1+2];"), p, PTX_MISALIGNED);
	CHECK(f.addr == (uint64_t)(uintptr_t)p + 2 && f.block[0] == 0 && f.thread[0] == 0, "%s", f.text);
	f = run(KERNEL("mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmul.lo.u32 %r2, %r2, 54;\nadd.u32 %r1, %r1, %r2;\nmad.wide.u32 %x2, %r1, 4, %x1;\nst.global.u32 [%x2], %r1;"),
	        p, PTX_ILLEGAL_ADDRESS);
	CHECK(f.block[0] == 1 && f.thread[0] == 46, "block %u thread %u", f.block[0], f.thread[0]);
	CHECK(f.addr == (uint64_t)(uintptr_t)(p + 100), "%llx", (unsigned long long)f.addr);
	run(KERNEL("st.global.u32 [%x1], 7;\nmov.u64 %x2, 0;\n ld.u32 %r1, [%x2];"), p, PTX_ILLEGAL_ADDRESS);
	CHECK(((uint32_t *)p)[0] == 7, "what was written before a fault stays");
	run(KERNEL(".local .align 4 .b8 a[16];\nmov.u64 %x2, a;\nst.local.u32 [%x2+12], 1;"), p, PTX_OK);
	run(KERNEL(".local .align 4 .b8 a[16];\nmov.u64 %x2, a;\nst.local.u32 [%x2+16], 1;"), p, PTX_ILLEGAL_ADDRESS);
	run(KERNEL(".local .align 4 .b8 a[16];\nmov.u64 %x2, a;\ncvta.local.u64 %x3, %x2;\nst.u32 [%x3+12], 1;\nld.u32 %r1, [%x3+12];\nst.global.u32 [%x1], %r1;"), p, PTX_OK);
	CHECK(((uint32_t *)p)[0] == 1, "generic access to local memory");
	run(KERNEL("atom.global.add.u32 %r1, [%x1+400], 1;"), p, PTX_ILLEGAL_ADDRESS);
}

static void unsupported(void)
{
	uint32_t *p = dev_alloc(64);
	struct ptx_fault f;

	/* Only reaching such an instruction is an error. */
	run(KERNEL("bra END;\nwgmma.fence.sync.aligned;\ncp.async.ca.shared.global [%x1], [%x1], 16;\nEND:"), p, PTX_OK);
	f = run(KERNEL("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r1, %r2, %r3, %r4};"), p, PTX_UNSUPPORTED);
	CHECK(!strcmp(f.text, "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 at line 11: is not supported"), "%s", f.text);
	f = run(KERNEL("wgmma.fence.sync.aligned;"), p, PTX_UNSUPPORTED);
	CHECK(!strncmp(f.text, "wgmma.fence.sync.aligned at line 11: ", 37), "%s", f.text);
	f = run(KERNEL("fns.b32 %r1, %r2, %r3, %r4;"), p, PTX_UNSUPPORTED);
	f = run(HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.visible .entry k(.param .u64 p)\n{\n.param .b64 a0;\n.param .b64 a1;\n.param .b32 r0;\ncall.uni (r0), vprintf, (a0, a1);\nret;\n}\n",
	        p, PTX_UNSUPPORTED);
	CHECK(strstr(f.text, "without a body"), "%s", f.text);
	f = run(HEAD ".func f()\n{\ncall f;\nret;\n}\n.visible .entry k(.param .u64 p)\n{\ncall f;\nret;\n}\n", p, PTX_UNSUPPORTED);
	CHECK(strstr(f.text, "recursive"), "%s", f.text);
}

static void endless(void)
{
	uint32_t *p = dev_alloc(64);
	struct ptx_fault f;
	uint64_t budget = ptx_block_budget;

	ptx_block_budget = 1 << 20;
	f = run(KERNEL("L:\nbra L;"), p, PTX_DEADLOCK);
	CHECK(strstr(f.text, "without end"), "%s", f.text);
	f = run(KERNEL("L:\nld.volatile.global.u32 %r1, [%x1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;"), p, PTX_DEADLOCK);
	ptx_block_budget = budget;
	/* One warp of two waits for a barrier that the other can never reach. */
	f = run(KERNEL("mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 0;\n@!%p1 bar.sync 1;"), p, PTX_DEADLOCK);
	CHECK(!strncmp(f.text, "bar.sync at line ", 17), "%s", f.text);
	f = run(KERNEL("mov.u32 %r1, %laneid;\nsetp.lt.u32 %p1, %r1, 16;\n@%p1 bar.warp.sync 0xffffffff;\n@!%p1 bar.sync 0;"), p, PTX_DEADLOCK);
	f = run(KERNEL("mov.u32 %r1, %laneid;\nsetp.lt.u32 %p1, %r1, 16;\n@%p1 bar.warp.sync 65535;\n@!%p1 bar.warp.sync 0xffff0000;"), p, PTX_OK);
	f = run(KERNEL("mov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 37;\n@%p1 bra A;\ntrap;\nA:"), p, PTX_TRAP);
	CHECK(f.thread[0] == 37 && f.block[0] == 0, "thread %u", f.thread[0]);
}

void test_faults(void)
{
	addresses();
	unsupported();
	endless();
	dev_free_all();
}
