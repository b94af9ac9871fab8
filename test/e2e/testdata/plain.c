/* A program that knows nothing of Medusa: it captures a graph, replays it, and prints the results. */
#include <stdio.h>
#include <stdlib.h>

#include "cuda.h"

static const char ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
	".visible .entry twice(.param .u64 out, .param .u32 n)\n{\n"
	"\t.reg .pred %p<2>;\n\t.reg .b32 %r<8>;\n\t.reg .b64 %rd<5>;\n"
	"\tld.param.u64 %rd1, [out];\n\tld.param.u32 %r1, [n];\n"
	"\tmov.u32 %r2, %tid.x;\n\tsetp.ge.u32 %p1, %r2, %r1;\n\t@%p1 bra DONE;\n"
	"\tcvta.to.global.u64 %rd2, %rd1;\n\tmul.wide.u32 %rd3, %r2, 4;\n\tadd.s64 %rd4, %rd2, %rd3;\n"
	"\tld.global.u32 %r3, [%rd4];\n\tadd.u32 %r4, %r3, %r2;\n\tshl.b32 %r5, %r4, 1;\n\tst.global.u32 [%rd4], %r5;\n"
	"DONE:\n\tret;\n}\n";

#define CHECK(call) \
	do { \
		CUresult r = (call); \
		if (r != CUDA_SUCCESS) { \
			fprintf(stderr, "%s: %d\n", #call, (int)r); \
			exit(1); \
		} \
	} while (0)

int main(void)
{
	CUdevice dev;
	CUcontext ctx;
	CUmodule module;
	CUfunction twice;
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	CUdeviceptr first, buffer;
	unsigned n = 64, host[64];
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&dev, 0));
	CHECK(cuDevicePrimaryCtxRetain(&ctx, dev));
	CHECK(cuCtxSetCurrent(ctx));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&twice, module, "twice"));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc_v2(&first, 4096));
	CHECK(cuMemFree_v2(first));
	CHECK(cuMemAlloc_v2(&buffer, 4096));
	CUdeviceptr out = buffer + 256;
	void *params[] = {&out, &n};
	CHECK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuMemsetD32Async(out, 3, n, stream));
	CHECK(cuLaunchKernel(twice, 1, 1, 1, 64, 1, 1, 0, stream, params, NULL));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuMemcpyDtoH_v2(host, out, sizeof host));
	printf("%u %u\n", host[0], host[63]);
	return 0;
}
