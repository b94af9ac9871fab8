/*
 * outside.c: nodes and parameters that refer to objects outside of their graph: events, embedded graphs, host memory, module
 * variables, tensor maps. With an argument, the process may not call process_vm_readv, as in some sandboxes.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "common.h"

static void forbid_reading(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static const char variable_ptx[] =
	".version 7.0\n"
	".target sm_80\n"
	".address_size 64\n"
	".visible .global .align 4 .u32 counter[4] = {1, 2, 3, 4};\n";

int main(int argc, char **argv)
{
	static uint8_t kept[32], scribbled[16];
	static CUtensorMap map;
	static const uint64_t dim[] = {64, 2}, strides[] = {256};
	static const uint32_t box[] = {16, 1}, steps[] = {1, 1};
	CUmodule variables;
	CUevent events[3];
	CUgraph graph, inner;
	CUgraphNode node, child;
	CUgraphExec exec;
	CUdeviceptr p, counter;
	CUcontext ctx;
	size_t size;
	(void)argv;
	if (argc > 1)
		forbid_reading();
	start();
	CHECK(cuCtxGetCurrent(&ctx));
	MARK(medusa_mark_phase, "structure");
	CHECK(cuEventCreate(&events[0], 0));
	MARK(medusa_trigger_begin);
	CHECK(cuEventCreate(&events[1], 0)); /* does not count */
	MARK(medusa_trigger_end);
	p = alloc(4096);
	CHECK(cuEventCreate(&events[2], CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventDestroy_v2(events[0]));
	CHECK(cuModuleLoadData(&variables, variable_ptx));
	CHECK(cuModuleGetGlobal_v2(&counter, NULL, variables, "counter")); /* each value without the other */
	CHECK(cuModuleGetGlobal_v2(NULL, &size, variables, "counter"));
	CHECK(cuMemsetD32_v2(counter, 9, 1));
	CHECK(cuTensorMapEncodeTiled(&map, 2, 2, (void *)(uintptr_t)p, dim, strides, box, steps, 0, 2, 0, 0));
	CHECK(cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)(p + 1024)));
	PRINT("p", p);
	PRINT("counter", counter);

	CHECK(cuGraphCreate(&inner, 0));
	CHECK(cuGraphAddEmptyNode(&node, inner, NULL, 0));
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddEventWaitNode(&node, graph, NULL, 0, events[2]));
	CHECK(cuGraphAddEventRecordNode(&node, graph, &node, 1, events[2]));
	CHECK(cuGraphAddEventRecordNode(&node, graph, &node, 1, events[1])); /* an event of the trigger scope: opaque */
	CHECK(cuGraphAddChildGraphNode(&child, graph, &node, 1, inner));
	for (int i = 0; i < 32; i++)
		kept[i] = (uint8_t)i;
	{
		CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = kept, .srcXInBytes = 1, .srcPitch = 16, .srcHeight = 2,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = p, .dstPitch = 4, .dstHeight = 2, .WidthInBytes = 4, .Height = 2, .Depth = 1};
		CHECK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &c, ctx));
		c.srcHost = scribbled;
		c.srcXInBytes = 0;
		c.Height = 1;
		CHECK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &c, ctx));
		PRINT("changed", (uintptr_t)node);
	}
	MARK(medusa_mark_graph, "outside", 3);
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	scribbled[0] = 1;
	MARK(medusa_mark_phase, "ready");
	return 0;
}
