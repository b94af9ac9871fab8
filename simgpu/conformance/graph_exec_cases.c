/*
 * graph_exec_cases.c: executable graphs.
 */
#include "conformance.h"

static CUgraph g;
static CUgraphExec x;
static CUgraphNode node;
static CUdeviceptr p;
static CUstream s;

/* One kernel that adds value to *p, which is 0 before. */
static CUresult open(float value)
{
	CUresult r = cu.cuGraphCreate(&g, 0);
	r = r ? r : cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
	r = r ? r : cu.cuMemAlloc_v2(&p, 64);
	r = r ? r : cu.cuMemsetD32_v2(p, 0, 16);
	r = r ? r : cu.cuCtxSynchronize();
	CUDA_KERNEL_NODE_PARAMS kp = add_params(p, 1, value);
	return r ? r : cu.cuGraphAddKernelNode_v2(&node, g, NULL, 0, &kp);
}

static CUresult close(void)
{
	CUresult r = cu.cuGraphDestroy(g);
	r = r ? r : cu.cuMemFree_v2(p);
	return r ? r : cu.cuStreamDestroy_v2(s);
}

static CUresult launched(float *v)
{
	CUresult r = cu.cuGraphLaunch(x, s);
	r = r ? r : cu.cuStreamSynchronize(s);
	return r ? r : cu.cuMemcpyDtoH_v2(v, p, 4);
}

static const char *instantiate(void)
{
	uint64_t flags = 99;
	float v = 0;
	OK(open(2));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphInstantiateWithFlags(&x, g, 1 << 20));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	OK(cu.cuGraphExecGetFlags(x, &flags));
	CHECK(flags == CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	OK(cu.cuGraphUpload(x, s));
	OK(launched(&v));
	CHECK(v == 2);
	OK(cu.cuGraphExecDestroy(x));
	OK(close());
	return NULL;
}

static const char *with_params(void)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS ip = {.flags = 0};
	OK(open(2));
	OK(cu.cuGraphInstantiateWithParams(&x, g, &ip));
	CHECK(ip.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
	OK(cu.cuGraphExecDestroy(x));
	OK(close());
	return NULL;
}

static const char *cycle(void)
{
	CUgraphNode a, b;
	CUgraph h;
	OK(cu.cuGraphCreate(&h, 0));
	OK(cu.cuGraphAddEmptyNode(&a, h, NULL, 0));
	OK(cu.cuGraphAddEmptyNode(&b, h, &a, 1));
	CUresult back = cu.cuGraphAddDependencies(h, &b, &a, 1);
	CUresult r = back ? back : cu.cuGraphInstantiateWithFlags(&x, h, 0);
	OK(cu.cuGraphDestroy(h));
	WANT(CUDA_ERROR_INVALID_VALUE, r);
	return NULL;
}

static const char *snapshot(void)
{
	float v = 0;
	OK(open(2));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	CUDA_KERNEL_NODE_PARAMS kp = add_params(p, 1, 50);
	OK(cu.cuGraphKernelNodeSetParams_v2(node, &kp));
	OK(launched(&v));
	CHECK(v == 2);
	OK(close());
	OK(cu.cuGraphExecDestroy(x)); /* x outlives its graph */
	return NULL;
}

static const char *set_params(void)
{
	float v = 0;
	CUDA_KERNEL_NODE_PARAMS got;
	OK(open(2));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	OK(cu.cuGraphLaunch(x, s));
	CUDA_KERNEL_NODE_PARAMS kp = add_params(p, 1, 50);
	OK(cu.cuGraphExecKernelNodeSetParams_v2(x, node, &kp)); /* must not affect the launch before */
	OK(launched(&v));
	CHECK(v == 52);
	OK(cu.cuGraphKernelNodeGetParams_v2(node, &got));
	CHECK(*(float *)got.kernelParams[2] == 2);
	OK(cu.cuGraphExecDestroy(x));
	OK(close());
	return NULL;
}

static const char *set_params_foreign(void)
{
	CUgraph h;
	CUgraphNode n;
	OK(open(2));
	OK(cu.cuGraphCreate(&h, 0));
	CUDA_KERNEL_NODE_PARAMS kp = add_params(p, 1, 1);
	OK(cu.cuGraphAddKernelNode_v2(&n, h, NULL, 0, &kp));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	CUresult r = cu.cuGraphExecKernelNodeSetParams_v2(x, n, &kp);
	OK(cu.cuGraphExecDestroy(x));
	OK(cu.cuGraphDestroy(h));
	OK(close());
	WANT(CUDA_ERROR_INVALID_VALUE, r);
	return NULL;
}

static const char *update(void)
{
	CUgraph h;
	CUgraphNode n;
	CUgraphExecUpdateResultInfo info;
	float v = 0;
	OK(open(2));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	OK(cu.cuGraphCreate(&h, 0));
	CUDA_KERNEL_NODE_PARAMS kp = add_params(p, 1, 30);
	OK(cu.cuGraphAddKernelNode_v2(&n, h, NULL, 0, &kp));
	OK(cu.cuGraphExecUpdate_v2(x, h, &info));
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
	OK(launched(&v));
	CHECK(v == 30);
	OK(cu.cuGraphAddEmptyNode(&n, h, NULL, 0));
	WANT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cu.cuGraphExecUpdate_v2(x, h, &info));
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cu.cuGraphDestroy(h));
	OK(cu.cuGraphExecDestroy(x));
	OK(close());
	return NULL;
}

static const char *update_type(void)
{
	CUgraph h;
	CUgraphNode n;
	CUgraphExecUpdateResultInfo info;
	OK(open(2));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	OK(cu.cuGraphCreate(&h, 0));
	OK(cu.cuGraphAddEmptyNode(&n, h, NULL, 0));
	WANT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cu.cuGraphExecUpdate_v2(x, h, &info));
	CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
	OK(cu.cuGraphDestroy(h));
	OK(cu.cuGraphExecDestroy(x));
	OK(close());
	return NULL;
}

/* add, then memset, then add again: the result depends on the order. */
static const char *order(void)
{
	CUgraphNode fill, last;
	float v = 0;
	OK(open(2));
	CUDA_MEMSET_NODE_PARAMS mp = {.dst = p, .value = 0x40400000 /* 3.0 */, .elementSize = 4, .width = 1, .height = 1};
	CUDA_KERNEL_NODE_PARAMS kp = add_params(p, 1, 4);
	OK(cu.cuGraphAddMemsetNode(&fill, g, &node, 1, &mp, context));
	OK(cu.cuGraphAddKernelNode_v2(&last, g, &fill, 1, &kp));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	for (int i = 0; i < 20; i++) {
		OK(launched(&v));
		CHECK(v == 7);
	}
	OK(cu.cuGraphExecDestroy(x));
	OK(close());
	return NULL;
}

static const char *copies(void)
{
	CUgraphNode n;
	float v[2] = {0, 0};
	OK(open(2));
	CUDA_MEMCPY3D cp = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = p, .srcPitch = 4, .srcHeight = 1,
	                    .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = p + 4, .dstPitch = 4, .dstHeight = 1,
	                    .WidthInBytes = 4, .Height = 1, .Depth = 1};
	OK(cu.cuGraphAddMemcpyNode(&n, g, &node, 1, &cp, context));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	OK(cu.cuGraphLaunch(x, s));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(v, p, 8));
	CHECK(v[0] == 2 && v[1] == 2);
	OK(cu.cuGraphExecDestroy(x));
	OK(close());
	return NULL;
}

/* The same copy, by several launches on streams in turn. */
static const char *copied_again(CUdeviceptr from, CUdeviceptr to, size_t height, size_t depth)
{
	CUgraphNode n;
	CUstream other;
	unsigned in[64], out[64];
	const size_t width = sizeof(in) / height / depth;
	OK(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(open(2));
	CUDA_MEMCPY3D cp = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from, .srcPitch = width, .srcHeight = height,
	                    .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to, .dstPitch = width, .dstHeight = height,
	                    .WidthInBytes = width, .Height = height, .Depth = depth};
	OK(cu.cuGraphAddMemcpyNode(&n, g, &node, 1, &cp, context));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	for (unsigned round = 1; round <= 6; round++) {
		CUstream on = round % 2 ? s : other;
		for (unsigned i = 0; i < 64; i++)
			in[i] = round * 1000 + i;
		OK(cu.cuMemcpyHtoD_v2(from, in, sizeof(in)));
		OK(cu.cuCtxSynchronize());
		OK(cu.cuGraphLaunch(x, on));
		OK(cu.cuStreamSynchronize(on));
		OK(cu.cuMemcpyDtoH_v2(out, to, sizeof(out)));
		for (unsigned i = 0; i < 64; i++)
			CHECK(out[i] == in[i]);
	}
	OK(cu.cuGraphExecDestroy(x));
	OK(close());
	OK(cu.cuStreamDestroy_v2(other));
	return NULL;
}

static const char *copies_in_depth(void)
{
	CUdeviceptr from, to;
	OK(cu.cuMemAlloc_v2(&from, 256));
	OK(cu.cuMemAlloc_v2(&to, 256));
	const char *failed = copied_again(from, to, 2, 4);
	OK(cu.cuMemFree_v2(from));
	OK(cu.cuMemFree_v2(to));
	return failed;
}

static const char *copies_of_pools(void)
{
	CUdeviceptr from, to;
	OK(cu.cuMemAllocAsync(&from, 256, NULL));
	OK(cu.cuMemAllocAsync(&to, 256, NULL));
	OK(cu.cuCtxSynchronize());
	const char *failed = copied_again(from, to, 1, 1);
	OK(cu.cuMemFreeAsync(from, NULL));
	OK(cu.cuMemFreeAsync(to, NULL));
	OK(cu.cuCtxSynchronize());
	return failed;
}

static const char *child(void)
{
	CUgraph outer;
	CUgraphNode a, b;
	float v = 0;
	OK(open(2));
	OK(cu.cuGraphCreate(&outer, 0));
	OK(cu.cuGraphAddChildGraphNode(&a, outer, NULL, 0, g));
	OK(cu.cuGraphAddChildGraphNode(&b, outer, &a, 1, g));
	OK(cu.cuGraphInstantiateWithFlags(&x, outer, 0));
	OK(launched(&v));
	CHECK(v == 4);
	OK(cu.cuGraphExecDestroy(x));
	OK(cu.cuGraphDestroy(outer));
	OK(close());
	return NULL;
}

static void count(void *arg)
{
	++*(int *)arg;
}

static const char *host(void)
{
	CUgraphNode n;
	int calls = 0;
	OK(open(2));
	CUDA_HOST_NODE_PARAMS hp = {count, &calls};
	OK(cu.cuGraphAddHostNode(&n, g, &node, 1, &hp));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	OK(cu.cuGraphLaunch(x, s));
	OK(cu.cuGraphLaunch(x, s));
	OK(cu.cuStreamSynchronize(s));
	CHECK(calls == 2);
	OK(cu.cuGraphExecDestroy(x));
	OK(close());
	return NULL;
}

static const char *disabled(void)
{
	float v = 9;
	unsigned on = 9;
	OK(open(2));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	OK(cu.cuGraphNodeSetEnabled(x, node, 0));
	OK(cu.cuGraphNodeGetEnabled(x, node, &on));
	CHECK(on == 0);
	OK(launched(&v));
	CHECK(v == 0);
	OK(cu.cuGraphExecDestroy(x));
	OK(close());
	return NULL;
}

static const char *destroyed_in_flight(void)
{
	float v = 0;
	OK(open(2));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	OK(cu.cuGraphLaunch(x, s));
	OK(cu.cuGraphExecDestroy(x));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(&v, p, 4));
	CHECK(v == 2);
	OK(close());
	return NULL;
}

static const char *same_exec_twice(void)
{
	CUstream t;
	float v = 0;
	OK(open(2));
	OK(cu.cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	for (int i = 0; i < 10; i++) {
		OK(cu.cuGraphLaunch(x, s));
		OK(cu.cuGraphLaunch(x, t));
	}
	OK(cu.cuStreamSynchronize(t)); /* the last one waited for all others */
	OK(cu.cuMemcpyDtoH_v2(&v, p, 4));
	CHECK(v == 40);
	OK(cu.cuGraphExecDestroy(x));
	OK(cu.cuStreamDestroy_v2(t));
	OK(close());
	return NULL;
}

static const struct conformance_case cases[] = {
	{"exec/instantiate", "cuGraphInstantiateWithFlags: INVALID_VALUE for unknown flags; cuGraphExecGetFlags; cuGraphUpload", instantiate, SHARED},
	{"exec/with_params", "cuGraphInstantiateWithParams: result_out", with_params, SHARED},
	{"exec/cycle", "cuGraphInstantiate: INVALID_VALUE for a cycle (here or when the edge is added)", cycle, SHARED},
	{"exec/snapshot", "cuGraphInstantiate: later changes of the graph have no effect", snapshot, SHARED},
	{"exec/set_params", "cuGraphExecKernelNodeSetParams: for future launches, the graph is unchanged", set_params, SHARED},
	{"exec/set_params_foreign", "cuGraphExecKernelNodeSetParams: the node must be of the instantiated graph", set_params_foreign, SHARED},
	{"exec/update", "cuGraphExecUpdate: same topology; GRAPH_EXEC_UPDATE_FAILURE and TOPOLOGY_CHANGED", update, SHARED},
	{"exec/update_type", "cuGraphExecUpdate: NODE_TYPE_CHANGED", update_type, SHARED},
	{"exec/order", "cuGraphLaunch: nodes run after their dependencies", order, SHARED},
	{"exec/copies", "cuGraphAddMemcpyNode", copies, SHARED},
	{"exec/copies_in_depth", "cuGraphLaunch: a copy with depth, by several launches", copies_in_depth, SHARED},
	{"exec/copies_of_pools", "cuGraphLaunch: a copy of stream-ordered memory, by several launches", copies_of_pools, SHARED},
	{"exec/child", "cuGraphAddChildGraphNode", child, SHARED},
	{"exec/host", "cuGraphAddHostNode: called once a launch", host, SHARED},
	{"exec/disabled", "cuGraphNodeSetEnabled: a disabled node does nothing", disabled, SHARED},
	{"exec/in_flight", "cuGraphExecDestroy: launches in flight complete", destroyed_in_flight, SHARED},
	{"exec/one_at_a_time", "cuGraphLaunch: ordered after earlier launches of the same executable graph", same_exec_twice, SHARED},
};
GROUP(graph_exec_cases, cases);
