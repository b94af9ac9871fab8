/*
 * fixture.c: the context and the kernels of the cases, and small helpers.
 */
#include "conformance.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

CUcontext context;
CUmodule module;
CUfunction add_kernel, scale_kernel, bounded_kernel, shared_kernel;

/* One thread per element, with a bounds check: ELEMENT computes the index and exits if it is out of bounds. */
#define REGISTERS ".reg .pred %p<2>;\n.reg .f32 %f<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n"
#define ELEMENT                                                                     \
	"ld.param.u64 %rd1, [buf];\nld.param.u32 %r1, [n];\nld.param.f32 %f1, [v];\n"   \
	"mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"         \
	"mad.lo.s32 %r5, %r2, %r3, %r4;\nsetp.ge.u32 %p1, %r5, %r1;\n@%p1 bra DONE;\n"  \
	"cvta.to.global.u64 %rd2, %rd1;\nmul.wide.u32 %rd3, %r5, 4;\nadd.s64 %rd4, %rd2, %rd3;\n" \
	"ld.global.f32 %f2, [%rd4];\n"
#define PARAMS "(.param .u64 buf, .param .u32 n, .param .f32 v)"

const char fixture_ptx[] =
	".version 7.0\n.target sm_80\n.address_size 64\n"
	".visible .global .align 4 .u32 counter = 7;\n"
	".visible .global .align 8 .b8 table[24];\n"
	".visible .entry add" PARAMS "\n{\n" REGISTERS ELEMENT "add.f32 %f3, %f2, %f1;\nst.global.f32 [%rd4], %f3;\nDONE:\nret;\n}\n"
	".visible .entry scale" PARAMS "\n{\n" REGISTERS ELEMENT "mul.f32 %f3, %f2, %f1;\nst.global.f32 [%rd4], %f3;\nDONE:\nret;\n}\n"
	".visible .entry bounded" PARAMS "\n.maxntid 64, 1, 1\n{\n" REGISTERS ELEMENT
	"st.global.f32 [%rd4], %f1;\nDONE:\nret;\n}\n"
	".extern .shared .align 16 .b8 dynamic[];\n"
	".visible .entry shared" PARAMS "\n{\n" REGISTERS ELEMENT
	"mov.u64 %rd5, dynamic;\ncvt.u32.u64 %r6, %rd5;\nst.shared.f32 [%r6], %f1;\nst.global.f32 [%rd4], %f1;\nDONE:\nret;\n}\n"
	".visible .entry layout(.param .u8 a, .param .u64 b, .param .align 4 .b8 c[12], .param .u16 d)\n{\nret;\n}\n";

CUresult fixture_open(void)
{
	CUresult r = CUDA_SUCCESS;
	if (context)
		return r;
	if ((r = cu.cuInit(0)) || (r = cu.cuDevicePrimaryCtxRetain(&context, 0)) || (r = cu.cuCtxSetCurrent(context)) ||
	    (r = cu.cuModuleLoadData(&module, fixture_ptx)) || (r = cu.cuModuleGetFunction(&add_kernel, module, "add")) ||
	    (r = cu.cuModuleGetFunction(&scale_kernel, module, "scale")) ||
	    (r = cu.cuModuleGetFunction(&bounded_kernel, module, "bounded")) ||
	    (r = cu.cuModuleGetFunction(&shared_kernel, module, "shared")))
		context = NULL;
	return r;
}

const char *message(const char *format, ...)
{
	static char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

#define SKIPPED "skipped: "
const char *skip(const char *why) { return message(SKIPPED "%s", why); }
bool is_skip(const char *bad) { return bad && strncmp(bad, SKIPPED, sizeof(SKIPPED) - 1) == 0; }

const char *result(CUresult r)
{
	static char unknown[4][16];
	static int next;
	const char *name = NULL;
	if (cu.cuGetErrorName(r, &name) == CUDA_SUCCESS && name)
		return name;
	char *text = unknown[next++ % 4];
	snprintf(text, sizeof(unknown[0]), "%d", (int)r);
	return text;
}

CUresult add(CUstream s, CUdeviceptr buf, unsigned n, float value)
{
	void *params[] = {&buf, &n, &value};
	return cu.cuLaunchKernel(add_kernel, (n + 127) / 128, 1, 1, 128, 1, 1, 0, s, params, NULL);
}

CUDA_KERNEL_NODE_PARAMS add_params(CUdeviceptr buf, unsigned n, float value)
{
	static struct { CUdeviceptr buf; unsigned n; float value; void *params[3]; } a;
	a.buf = buf;
	a.n = n;
	a.value = value;
	a.params[0] = &a.buf;
	a.params[1] = &a.n;
	a.params[2] = &a.value;
	return (CUDA_KERNEL_NODE_PARAMS){
		.func = add_kernel, .gridDimX = (n + 127) / 128, .gridDimY = 1, .gridDimZ = 1,
		.blockDimX = 128, .blockDimY = 1, .blockDimZ = 1, .kernelParams = a.params,
	};
}

struct thread_call { void (*fn)(void *); void *arg; };

static void *thread_main(void *p)
{
	struct thread_call *call = p;
	call->fn(call->arg);
	return NULL;
}

void on_thread(void (*fn)(void *), void *arg)
{
	pthread_t t;
	struct thread_call call = {fn, arg};
	if (pthread_create(&t, NULL, thread_main, &call) == 0)
		pthread_join(t, NULL);
}

void end_capture(CUstream s)
{
	CUgraph g = NULL;
	if (cu.cuStreamEndCapture(s, &g) == CUDA_SUCCESS && g)
		cu.cuGraphDestroy(g);
}
