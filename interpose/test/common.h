/*
 * common.h: shared by the test programs: checked calls, a module of two kernels, marks that may be missing.
 *
 * Every program prints its own facts as `name value` lines. The tests compare the trace with them.
 */
#ifndef COMMON_H
#define COMMON_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "medusa.h"

#define CHECK(call) \
	do { \
		int check_rc = (int)(call); \
		if (check_rc) { \
			fprintf(stderr, "%s:%d: %s: result %d\n", __FILE__, __LINE__, #call, check_rc); \
			exit(3); \
		} \
	} while (0)

/* A function of medusa.h, or NULL if the process runs without Medusa. */
#define MEDUSA(name) ((__typeof__(&name))dlsym(RTLD_DEFAULT, #name))
#define MARK(name, ...) \
	do { \
		if (MEDUSA(name)) \
			MEDUSA(name)(__VA_ARGS__); \
	} while (0)

#define PRINT(name, value) printf("%s %llu\n", name, (unsigned long long)(value))

/* add_one(p, n): p[i]++.  add(dst, src, n): dst[i] += src[i], with a different parameter layout. */
static const char module_ptx[] =
	".version 7.0\n"
	".target sm_80\n"
	".address_size 64\n"
	".visible .entry add_one(.param .u64 add_one_p, .param .u32 add_one_n)\n"
	"{\n"
	"	.reg .pred %p<2>;\n"
	"	.reg .b32 %r<7>;\n"
	"	.reg .b64 %rd<5>;\n"
	"	ld.param.u64 %rd1, [add_one_p];\n"
	"	ld.param.u32 %r1, [add_one_n];\n"
	"	mov.u32 %r2, %ctaid.x;\n"
	"	mov.u32 %r3, %ntid.x;\n"
	"	mov.u32 %r4, %tid.x;\n"
	"	mad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"	setp.ge.u32 %p1, %r5, %r1;\n"
	"	@%p1 bra DONE;\n"
	"	cvta.to.global.u64 %rd2, %rd1;\n"
	"	mul.wide.u32 %rd3, %r5, 4;\n"
	"	add.s64 %rd4, %rd2, %rd3;\n"
	"	ld.global.u32 %r6, [%rd4];\n"
	"	add.s32 %r6, %r6, 1;\n"
	"	st.global.u32 [%rd4], %r6;\n"
	"DONE:\n"
	"	ret;\n"
	"}\n"
	".visible .entry add(.param .u64 add_dst, .param .u32 add_n, .param .u64 add_src)\n"
	"{\n"
	"	.reg .pred %p<2>;\n"
	"	.reg .b32 %r<8>;\n"
	"	.reg .b64 %rd<8>;\n"
	"	ld.param.u64 %rd1, [add_dst];\n"
	"	ld.param.u32 %r1, [add_n];\n"
	"	ld.param.u64 %rd2, [add_src];\n"
	"	mov.u32 %r2, %ctaid.x;\n"
	"	mov.u32 %r3, %ntid.x;\n"
	"	mov.u32 %r4, %tid.x;\n"
	"	mad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"	setp.ge.u32 %p1, %r5, %r1;\n"
	"	@%p1 bra DONE;\n"
	"	cvta.to.global.u64 %rd3, %rd1;\n"
	"	cvta.to.global.u64 %rd4, %rd2;\n"
	"	mul.wide.u32 %rd5, %r5, 4;\n"
	"	add.s64 %rd6, %rd3, %rd5;\n"
	"	add.s64 %rd7, %rd4, %rd5;\n"
	"	ld.global.u32 %r6, [%rd6];\n"
	"	ld.global.u32 %r7, [%rd7];\n"
	"	add.s32 %r6, %r6, %r7;\n"
	"	st.global.u32 [%rd6], %r6;\n"
	"DONE:\n"
	"	ret;\n"
	"}\n";

static inline void start(void)
{
	CUcontext ctx;
	CHECK(cuInit(0));
	CHECK(cuDevicePrimaryCtxRetain(&ctx, 0));
	CHECK(cuCtxSetCurrent(ctx));
}

static inline CUdeviceptr alloc(size_t bytes)
{
	CUdeviceptr p;
	CHECK(cuMemAlloc(&p, bytes));
	return p;
}

static inline void launch_add_one(CUfunction f, CUstream s, CUdeviceptr p, unsigned int n)
{
	void *params[] = {&p, &n};
	CHECK(cuLaunchKernel(f, (n + 31) / 32, 1, 1, 32, 1, 1, 0, s, params, NULL));
}

#endif
