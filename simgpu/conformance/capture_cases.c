/*
 * capture_cases.c: the nodes and edges that stream capture makes of calls.
 */
#include "conformance.h"

#include <string.h>

static const char *status(void)
{
	CUstream s;
	CUgraph g = NULL;
	CUstreamCaptureStatus st = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuStreamIsCapturing(s, &st));
	CHECK(st == CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cu.cuStreamIsCapturing(s, &st));
	CHECK(st == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cu.cuStreamEndCapture(s, &g));
	CHECK(g != NULL);
	OK(cu.cuStreamIsCapturing(s, &st));
	CHECK(st == CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cu.cuGraphDestroy(g));
	OK(cu.cuStreamDestroy_v2(s));
	return NULL;
}

static const char *not_executed(void)
{
	CUstream s;
	CUgraph g;
	CUgraphExec x;
	CUdeviceptr p;
	float v = 9;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuMemAlloc_v2(&p, 4));
	OK(cu.cuMemsetD32_v2(p, 0, 1));
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(add(s, p, 1, 2));
	OK(add(s, p, 1, 3));
	OK(cu.cuStreamEndCapture(s, &g));
	OK(cu.cuMemcpyDtoH_v2(&v, p, 4));
	CHECK(v == 0);
	OK(cu.cuGraphInstantiateWithFlags(&x, g, 0));
	OK(cu.cuGraphLaunch(x, s));
	OK(cu.cuGraphLaunch(x, s));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(&v, p, 4));
	CHECK(v == 10);
	OK(cu.cuGraphExecDestroy(x));
	OK(cu.cuGraphDestroy(g));
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuStreamDestroy_v2(s));
	return NULL;
}

static const char *nodes_in_line(void)
{
	CUstream s;
	CUgraph g;
	CUgraphNode node[4], from[3], to[3];
	CUgraphNodeType type[4];
	CUdeviceptr p;
	size_t n = 4, e = 3;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuMemAlloc_v2(&p, 64));
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cu.cuMemsetD32Async(p, 0, 16, s));
	OK(add(s, p, 1, 2));
	OK(cu.cuMemcpyDtoDAsync_v2(p + 32, p, 32, s));
	OK(add(s, p, 1, 2));
	OK(cu.cuStreamEndCapture(s, &g));
	OK(cu.cuGraphGetNodes(g, node, &n));
	OK(cu.cuGraphGetEdges(g, from, to, &e));
	CHECK(n == 4 && e == 3);
	for (int i = 0; i < 4; i++)
		OK(cu.cuGraphNodeGetType(node[i], &type[i]));
	int kernels = 0, copies = 0, fills = 0;
	for (int i = 0; i < 4; i++) {
		kernels += type[i] == CU_GRAPH_NODE_TYPE_KERNEL;
		copies += type[i] == CU_GRAPH_NODE_TYPE_MEMCPY;
		fills += type[i] == CU_GRAPH_NODE_TYPE_MEMSET;
	}
	CHECK(kernels == 2 && copies == 1 && fills == 1);
	OK(cu.cuGraphDestroy(g));
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuStreamDestroy_v2(s));
	return NULL;
}

static const char *params_kept(void)
{
	CUstream s;
	CUgraph g;
	CUgraphNode node;
	CUDA_KERNEL_NODE_PARAMS kp;
	CUDA_MEMSET_NODE_PARAMS mp;
	CUdeviceptr p, seen;
	size_t n = 1;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuMemAlloc_v2(&p, 64));
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(add(s, p, 200, 2.5f));
	OK(cu.cuStreamEndCapture(s, &g));
	OK(cu.cuGraphGetNodes(g, &node, &n));
	OK(cu.cuGraphKernelNodeGetParams_v2(node, &kp));
	memcpy(&seen, kp.kernelParams[0], sizeof(seen));
	CHECK(seen == p && *(unsigned *)kp.kernelParams[1] == 200 && *(float *)kp.kernelParams[2] == 2.5f);
	CHECK(kp.gridDimX == 2 && kp.blockDimX == 128 && kp.blockDimZ == 1 && kp.sharedMemBytes == 0);
	OK(cu.cuGraphDestroy(g));
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cu.cuMemsetD16Async(p, 0x1234, 7, s));
	OK(cu.cuStreamEndCapture(s, &g));
	n = 1;
	OK(cu.cuGraphGetNodes(g, &node, &n));
	OK(cu.cuGraphMemsetNodeGetParams(node, &mp));
	CHECK(mp.dst == p && mp.value == 0x1234 && mp.elementSize == 2 && mp.width == 7 && mp.height == 1);
	OK(cu.cuGraphDestroy(g));
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuStreamDestroy_v2(s));
	return NULL;
}

/* s forks into t and joins it again: a, then b and c side by side, then d. */
static const char *fork_join(void)
{
	CUstream s, t;
	CUevent e, f;
	CUgraph g;
	CUgraphNode root, last[2];
	CUdeviceptr p;
	size_t nodes = 0, edges = 0, roots = 1, deps = 2;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	OK(cu.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	OK(cu.cuEventCreate(&f, CU_EVENT_DISABLE_TIMING));
	OK(cu.cuMemAlloc_v2(&p, 64));
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(add(s, p, 1, 1));
	OK(cu.cuEventRecord(e, s));
	OK(cu.cuStreamWaitEvent(t, e, 0));
	OK(add(s, p + 4, 1, 1));
	OK(add(t, p + 8, 1, 1));
	OK(cu.cuEventRecord(f, t));
	OK(cu.cuStreamWaitEvent(s, f, 0));
	OK(add(s, p, 1, 1));
	OK(cu.cuStreamEndCapture(s, &g));
	OK(cu.cuGraphGetNodes(g, NULL, &nodes));
	OK(cu.cuGraphGetEdges(g, NULL, NULL, &edges));
	OK(cu.cuGraphGetRootNodes(g, &root, &roots));
	CHECK(nodes == 4 && edges == 4 && roots == 1);
	OK(cu.cuGraphNodeGetDependentNodes(root, last, &deps));
	CHECK(deps == 2);
	OK(cu.cuGraphDestroy(g));
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuEventDestroy_v2(e));
	OK(cu.cuEventDestroy_v2(f));
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuStreamDestroy_v2(t));
	return NULL;
}

static const char *info(void)
{
	CUstream s;
	CUgraph g, during = NULL;
	CUstreamCaptureStatus st;
	const CUgraphNode *deps = NULL;
	CUdeviceptr p;
	uint64_t id = 0, other = 0;
	size_t n = 9;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuMemAlloc_v2(&p, 64));
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cu.cuStreamGetCaptureInfo_v2(s, &st, &id, &during, &deps, &n));
	CHECK(st == CU_STREAM_CAPTURE_STATUS_ACTIVE && n == 0 && during != NULL);
	OK(add(s, p, 1, 1));
	OK(cu.cuStreamGetCaptureInfo_v2(s, &st, &other, &during, &deps, &n));
	CHECK(other == id && n == 1);
	CUgraphNodeType type;
	OK(cu.cuGraphNodeGetType(deps[0], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_KERNEL);
	OK(cu.cuStreamEndCapture(s, &g));
	CHECK(g == during);
	OK(cu.cuGraphDestroy(g));
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cu.cuStreamGetCaptureInfo(s, &st, &other));
	CHECK(other != id);
	end_capture(s);
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuStreamDestroy_v2(s));
	return NULL;
}

static const char *update_dependencies(void)
{
	CUstream s;
	CUgraph g;
	CUdeviceptr p;
	size_t roots = 0, edges = 0;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuMemAlloc_v2(&p, 64));
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(add(s, p, 1, 1));
	OK(cu.cuStreamUpdateCaptureDependencies(s, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	OK(add(s, p + 4, 1, 1));
	OK(cu.cuStreamEndCapture(s, &g));
	OK(cu.cuGraphGetRootNodes(g, NULL, &roots));
	OK(cu.cuGraphGetEdges(g, NULL, NULL, &edges));
	CHECK(roots == 2 && edges == 0);
	OK(cu.cuGraphDestroy(g));
	WANT(CUDA_ERROR_ILLEGAL_STATE, cu.cuStreamUpdateCaptureDependencies(s, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuStreamDestroy_v2(s));
	return NULL;
}

static const char *add_to_captured(void)
{
	CUstream s;
	CUgraph g, during;
	CUgraphNode mine;
	CUstreamCaptureStatus st;
	const CUgraphNode *deps;
	CUdeviceptr p;
	size_t n, edges = 0;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuMemAlloc_v2(&p, 64));
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(add(s, p, 1, 1));
	OK(cu.cuStreamGetCaptureInfo_v2(s, &st, NULL, &during, &deps, &n));
	OK(cu.cuGraphAddEmptyNode(&mine, during, deps, n));
	OK(cu.cuStreamUpdateCaptureDependencies(s, &mine, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	OK(add(s, p, 1, 1));
	OK(cu.cuStreamEndCapture(s, &g));
	OK(cu.cuGraphGetEdges(g, NULL, NULL, &edges));
	CHECK(edges == 2);
	OK(cu.cuGraphDestroy(g));
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuStreamDestroy_v2(s));
	return NULL;
}

static void on_host(void *p)
{
	(void)p;
}

static const char *host_node(void)
{
	CUstream s;
	CUgraph g;
	CUgraphNode node;
	CUDA_HOST_NODE_PARAMS hp;
	size_t n = 1;
	int mark;
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cu.cuLaunchHostFunc(s, on_host, &mark));
	OK(cu.cuStreamEndCapture(s, &g));
	OK(cu.cuGraphGetNodes(g, &node, &n));
	OK(cu.cuGraphHostNodeGetParams(node, &hp));
	CHECK(hp.fn == on_host && hp.userData == &mark);
	OK(cu.cuGraphDestroy(g));
	OK(cu.cuStreamDestroy_v2(s));
	return NULL;
}

static const char *programmatic(void)
{
	CUstream s;
	CUgraph g;
	CUgraphNode from, to;
	CUgraphEdgeData data;
	CUdeviceptr p;
	unsigned n = 1;
	float by = 1;
	size_t e = 1;
	void *params[] = {&p, &n, &by};
	CUlaunchAttribute attr = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
	                          .value = {.programmaticStreamSerializationAllowed = 1}};
	OK(cu.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	OK(cu.cuMemAlloc_v2(&p, 64));
	OK(cu.cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(add(s, p, 1, 1));
	CUlaunchConfig cfg = {1, 1, 1, 32, 1, 1, 0, s, &attr, 1};
	OK(cu.cuLaunchKernelEx(&cfg, add_kernel, params, NULL));
	OK(cu.cuStreamEndCapture(s, &g));
	WANT(CUDA_ERROR_LOSSY_QUERY, cu.cuGraphGetEdges(g, &from, &to, &e));
	e = 1;
	OK(cu.cuGraphGetEdges_v2(g, &from, &to, &data, &e));
	CHECK(e == 1 && data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
	      data.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
	OK(cu.cuGraphDestroy(g));
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuStreamDestroy_v2(s));
	return NULL;
}

static const struct conformance_case cases[] = {
	{"capture/status", "cuStreamIsCapturing", status, SHARED},
	{"capture/not_executed", "cuStreamBeginCapture: captured work is not executed but becomes a graph", not_executed, SHARED},
	{"capture/line", "cuStreamBeginCapture: kernels, copies and fills become nodes in stream order", nodes_in_line, SHARED},
	{"capture/params", "cuGraphKernelNodeGetParams, cuGraphMemsetNodeGetParams: the captured parameters", params_kept, SHARED},
	{"capture/fork_join", "Programming guide, cross-stream dependencies: fork and join by events", fork_join, SHARED},
	{"capture/info", "cuStreamGetCaptureInfo: one id a sequence, graph and dependencies while active", info, SHARED},
	{"capture/update", "cuStreamUpdateCaptureDependencies: SET replaces; ILLEGAL_STATE outside of a capture", update_dependencies, SHARED},
	{"capture/add_node", "cuStreamGetCaptureInfo: nodes may be added to the graph during capture", add_to_captured, SHARED},
	{"capture/host", "cuLaunchHostFunc in a capture: a host node", host_node, SHARED},
	{"capture/programmatic", "Programmatic dependent launch: the edge says so; cuGraphGetEdges: LOSSY_QUERY", programmatic, SHARED},
};
GROUP(capture_cases, cases);
