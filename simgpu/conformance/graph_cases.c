/*
 * graph_cases.c: graphs as structures.
 */
#include "conformance.h"

#include <string.h>

static CUgraph g;
static CUdeviceptr p;

static CUresult open(void)
{
	CUresult r = cu.cuGraphCreate(&g, 0);
	return r ? r : cu.cuMemAlloc_v2(&p, 64);
}

static CUresult close(void)
{
	CUresult r = cu.cuGraphDestroy(g);
	return r ? r : cu.cuMemFree_v2(p);
}

static CUDA_MEMSET_NODE_PARAMS fill_params(unsigned value)
{
	return (CUDA_MEMSET_NODE_PARAMS){.dst = p, .value = value, .elementSize = 4, .width = 4, .height = 1};
}

static const char *create(void)
{
	CUgraph h;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphCreate(&h, 1));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphCreate(NULL, 0));
	return NULL;
}

static const char *types(void)
{
	CUgraphNode n[4];
	CUgraphNodeType type;
	CUDA_KERNEL_NODE_PARAMS kp;
	size_t count = 0;
	OK(open());
	kp = add_params(p, 1, 1);
	CUDA_MEMSET_NODE_PARAMS mp = fill_params(0);
	CUDA_MEMCPY3D cp = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = p, .srcPitch = 16, .srcHeight = 1,
	                    .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = p + 32, .dstPitch = 16, .dstHeight = 1,
	                    .WidthInBytes = 16, .Height = 1, .Depth = 1};
	OK(cu.cuGraphAddKernelNode_v2(&n[0], g, NULL, 0, &kp));
	OK(cu.cuGraphAddMemsetNode(&n[1], g, &n[0], 1, &mp, context));
	OK(cu.cuGraphAddMemcpyNode(&n[2], g, &n[1], 1, &cp, context));
	OK(cu.cuGraphAddEmptyNode(&n[3], g, n, 3));
	OK(cu.cuGraphGetNodes(g, NULL, &count));
	CHECK(count == 4);
	OK(cu.cuGraphNodeGetType(n[0], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_KERNEL);
	OK(cu.cuGraphNodeGetType(n[2], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_MEMCPY);
	OK(cu.cuGraphNodeGetType(n[3], &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_EMPTY);
	OK(cu.cuGraphNodeGetDependencies(n[3], NULL, &count));
	CHECK(count == 3);
	OK(close());
	return NULL;
}

static const char *more_room(void)
{
	CUgraphNode a, n[3] = {(CUgraphNode)1, (CUgraphNode)1, (CUgraphNode)1};
	size_t count = 3;
	OK(open());
	OK(cu.cuGraphAddEmptyNode(&a, g, NULL, 0));
	OK(cu.cuGraphGetNodes(g, n, &count));
	CHECK(count == 1 && n[0] == a && n[1] == NULL && n[2] == NULL);
	OK(close());
	return NULL;
}

static const char *edges(void)
{
	CUgraphNode a, b, c, from[2], to[2], root;
	size_t count = 2, roots = 1;
	OK(open());
	OK(cu.cuGraphAddEmptyNode(&a, g, NULL, 0));
	OK(cu.cuGraphAddEmptyNode(&b, g, &a, 1));
	OK(cu.cuGraphAddEmptyNode(&c, g, NULL, 0));
	OK(cu.cuGraphAddDependencies(g, &b, &c, 1));
	OK(cu.cuGraphGetEdges(g, from, to, &count));
	CHECK(count == 2);
	for (int i = 0; i < 2; i++)
		CHECK((from[i] == a && to[i] == b) || (from[i] == b && to[i] == c));
	OK(cu.cuGraphGetRootNodes(g, &root, &roots));
	CHECK(roots == 1 && root == a);
	OK(cu.cuGraphRemoveDependencies(g, &a, &b, 1));
	OK(cu.cuGraphGetEdges(g, NULL, NULL, &count));
	CHECK(count == 1);
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphRemoveDependencies(g, &a, &b, 1));
	OK(close());
	return NULL;
}

static const char *bad_edges(void)
{
	CUgraphNode a, b, far, two[2];
	CUgraph other;
	OK(open());
	OK(cu.cuGraphCreate(&other, 0));
	OK(cu.cuGraphAddEmptyNode(&a, g, NULL, 0));
	OK(cu.cuGraphAddEmptyNode(&far, other, NULL, 0));
	two[0] = two[1] = a;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddEmptyNode(&b, g, two, 2));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddEmptyNode(&b, g, &far, 1));
	OK(cu.cuGraphAddEmptyNode(&b, g, &a, 1));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddDependencies(g, &a, &b, 1));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddDependencies(g, &a, &a, 1));
	OK(cu.cuGraphDestroy(other));
	OK(close());
	return NULL;
}

static const char *destroy_node(void)
{
	CUgraphNode a, b, c;
	size_t nodes = 0, count = 9;
	OK(open());
	OK(cu.cuGraphAddEmptyNode(&a, g, NULL, 0));
	OK(cu.cuGraphAddEmptyNode(&b, g, &a, 1));
	OK(cu.cuGraphAddEmptyNode(&c, g, &b, 1));
	OK(cu.cuGraphDestroyNode(b));
	OK(cu.cuGraphGetNodes(g, NULL, &nodes));
	OK(cu.cuGraphGetEdges(g, NULL, NULL, &count));
	CHECK(nodes == 2 && count == 0);
	OK(close());
	return NULL;
}

static const char *kernel_params(void)
{
	CUgraphNode n;
	CUDA_KERNEL_NODE_PARAMS kp, got;
	OK(open());
	kp = add_params(p, 300, 1.5f);
	OK(cu.cuGraphAddKernelNode_v2(&n, g, NULL, 0, &kp));
	*(float *)kp.kernelParams[2] = 99; /* the value was copied before */
	OK(cu.cuGraphKernelNodeGetParams_v2(n, &got));
	CHECK(got.func == add_kernel && got.gridDimX == 3 && got.blockDimX == 128 && got.extra == NULL);
	CHECK(*(CUdeviceptr *)got.kernelParams[0] == p && *(float *)got.kernelParams[2] == 1.5f);
	kp = add_params(p, 10, 7);
	OK(cu.cuGraphKernelNodeSetParams_v2(n, &kp));
	OK(cu.cuGraphKernelNodeGetParams_v2(n, &got));
	CHECK(got.gridDimX == 1 && *(float *)got.kernelParams[2] == 7);
	CUDA_MEMSET_NODE_PARAMS mp;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphMemsetNodeGetParams(n, &mp));
	OK(close());
	return NULL;
}

static const char *bad_kernel(void)
{
	CUgraphNode n;
	OK(open());
	CUDA_KERNEL_NODE_PARAMS kp = add_params(p, 1, 1);
	kp.blockDimX = 5000;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddKernelNode_v2(&n, g, NULL, 0, &kp));
	OK(close());
	return NULL;
}

static const char *memset_params(void)
{
	CUgraphNode n;
	OK(open());
	CUDA_MEMSET_NODE_PARAMS mp = fill_params(3), got;
	OK(cu.cuGraphAddMemsetNode(&n, g, NULL, 0, &mp, context));
	mp.value = 8;
	OK(cu.cuGraphMemsetNodeSetParams(n, &mp));
	OK(cu.cuGraphMemsetNodeGetParams(n, &got));
	CHECK(got.dst == p && got.value == 8 && got.elementSize == 4 && got.width == 4 && got.height == 1);
	mp.elementSize = 3;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphMemsetNodeSetParams(n, &mp));
	OK(close());
	return NULL;
}

static const char *node_attributes(void)
{
	CUgraphNode a, b;
	CUlaunchAttributeValue v;
	int least, greatest;
	OK(open());
	OK(cu.cuCtxGetStreamPriorityRange(&least, &greatest));
	CUDA_KERNEL_NODE_PARAMS kp = add_params(p, 1, 1);
	OK(cu.cuGraphAddKernelNode_v2(&a, g, NULL, 0, &kp));
	OK(cu.cuGraphAddKernelNode_v2(&b, g, NULL, 0, &kp));
	memset(&v, 0, sizeof(v));
	v.priority = greatest;
	OK(cu.cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
	v.priority = 0;
	OK(cu.cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
	CHECK(v.priority == greatest);
	OK(cu.cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
	CHECK(v.cooperative == 0);
	OK(cu.cuGraphKernelNodeCopyAttributes(b, a));
	OK(cu.cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
	CHECK(v.priority == greatest);
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphKernelNodeGetAttribute(a, (CUlaunchAttributeID)1000, &v));
	OK(close());
	return NULL;
}

static const char *edge_data(void)
{
	CUgraphNode a, b, c, from, to, dep;
	CUgraphEdgeData d = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC}, got;
	CUgraphNodeParams np = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
	size_t n = 1;
	OK(open());
	np.kernel = add_params(p, 1, 1);
	OK(cu.cuGraphAddNode_v2(&a, g, NULL, NULL, 0, &np));
	OK(cu.cuGraphAddNode_v2(&b, g, &a, &d, 1, &np));
	WANT(CUDA_ERROR_LOSSY_QUERY, cu.cuGraphGetEdges(g, &from, &to, &n));
	n = 1;
	WANT(CUDA_ERROR_LOSSY_QUERY, cu.cuGraphGetEdges_v2(g, &from, &to, NULL, &n));
	n = 1;
	OK(cu.cuGraphGetEdges_v2(g, &from, &to, &got, &n));
	CHECK(n == 1 && from == a && to == b && got.from_port == d.from_port && got.type == d.type);
	n = 1;
	WANT(CUDA_ERROR_LOSSY_QUERY, cu.cuGraphNodeGetDependencies(b, &dep, &n));
	n = 1;
	OK(cu.cuGraphNodeGetDependencies_v2(b, &dep, &got, &n));
	CHECK(dep == a && got.type == d.type);
	OK(cu.cuGraphAddEmptyNode(&c, g, NULL, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddDependencies_v2(g, &c, &b, &d, 1)); /* not from a kernel */
	OK(cu.cuGraphRemoveDependencies_v2(g, &a, &b, &d, 1));
	OK(close());
	return NULL;
}

static const char *generic_node(void)
{
	CUgraphNode n;
	CUgraphNodeParams np = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = {.dst = 0, .elementSize = 4, .width = 4, .height = 1}};
	CUDA_MEMSET_NODE_PARAMS got;
	OK(open());
	np.memset.dst = p;
	np.memset.value = 5;
	np.memset.ctx = context;
	OK(cu.cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &np));
	OK(cu.cuGraphMemsetNodeGetParams(n, &got));
	CHECK(got.value == 5);
	np.reserved0[1] = 1;
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &np));
	OK(close());
	return NULL;
}

static const char *clone(void)
{
	CUgraph copy;
	CUgraphNode n, twin, foreign;
	CUDA_KERNEL_NODE_PARAMS got;
	OK(open());
	CUDA_KERNEL_NODE_PARAMS kp = add_params(p, 1, 4);
	OK(cu.cuGraphAddKernelNode_v2(&n, g, NULL, 0, &kp));
	OK(cu.cuGraphClone(&copy, g));
	OK(cu.cuGraphNodeFindInClone(&twin, n, copy));
	CHECK(twin != n);
	kp = add_params(p, 1, 5);
	OK(cu.cuGraphKernelNodeSetParams_v2(n, &kp));
	OK(cu.cuGraphKernelNodeGetParams_v2(twin, &got));
	CHECK(*(float *)got.kernelParams[2] == 4);
	OK(cu.cuGraphAddEmptyNode(&foreign, g, NULL, 0));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphNodeFindInClone(&twin, foreign, copy));
	OK(cu.cuGraphDestroy(copy));
	OK(close());
	return NULL;
}

static const char *child(void)
{
	CUgraph outer, inside;
	CUgraphNode n, c;
	size_t count = 0;
	OK(open());
	CUDA_KERNEL_NODE_PARAMS kp = add_params(p, 1, 4);
	OK(cu.cuGraphAddKernelNode_v2(&n, g, NULL, 0, &kp));
	OK(cu.cuGraphCreate(&outer, 0));
	OK(cu.cuGraphAddChildGraphNode(&c, outer, NULL, 0, g));
	OK(cu.cuGraphAddEmptyNode(&n, g, NULL, 0)); /* the child is a copy, so it has not changed */
	OK(cu.cuGraphChildGraphNodeGetGraph(c, &inside));
	OK(cu.cuGraphGetNodes(inside, NULL, &count));
	CHECK(inside != g && count == 1);
	OK(cu.cuGraphDestroy(outer));
	OK(close());
	return NULL;
}

static const char *event_nodes(void)
{
	CUevent e, got = NULL;
	CUgraphNode n, w;
	CUgraphNodeType type;
	OK(open());
	OK(cu.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	OK(cu.cuGraphAddEventRecordNode(&n, g, NULL, 0, e));
	OK(cu.cuGraphEventRecordNodeGetEvent(n, &got));
	CHECK(got == e);
	OK(cu.cuGraphAddEventWaitNode(&w, g, &n, 1, e));
	OK(cu.cuGraphNodeGetType(w, &type));
	CHECK(type == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuGraphEventRecordNodeGetEvent(w, &got));
	OK(close());
	OK(cu.cuEventDestroy_v2(e));
	return NULL;
}

static const struct conformance_case cases[] = {
	{"graph/create", "cuGraphCreate: the flags must be 0", create, SHARED},
	{"graph/types", "cuGraphAdd*Node, cuGraphNodeGetType, cuGraphNodeGetDependencies", types, SHARED},
	{"graph/more_room", "cuGraphGetNodes: entries beyond the last are set to NULL, the count is returned", more_room, SHARED},
	{"graph/edges", "cuGraphAddDependencies, cuGraphGetEdges, cuGraphGetRootNodes, cuGraphRemoveDependencies", edges, SHARED},
	{"graph/bad_edges", "cuGraphAddDependencies: INVALID_VALUE for an existing edge, another graph, a node itself", bad_edges, SHARED},
	{"graph/destroy_node", "cuGraphDestroyNode: removes its edges", destroy_node, SHARED},
	{"graph/kernel_params", "cuGraphAddKernelNode: parameters are copied; cuGraphKernelNodeGetParams, SetParams", kernel_params, SHARED},
	{"graph/bad_kernel", "cuGraphAddKernelNode: INVALID_VALUE as for cuLaunchKernel", bad_kernel, SHARED},
	{"graph/memset_params", "cuGraphMemsetNodeSetParams: element sizes 1, 2 and 4", memset_params, SHARED},
	{"graph/attributes", "cuGraphKernelNodeSetAttribute, GetAttribute, CopyAttributes", node_attributes, SHARED},
	{"graph/edge_data", "cuGraphGetEdges_v2: edge data; CUDA_ERROR_LOSSY_QUERY without room for it", edge_data, SHARED},
	{"graph/generic", "cuGraphAddNode: one form for all types; reserved fields must be 0", generic_node, SHARED},
	{"graph/clone", "cuGraphClone, cuGraphNodeFindInClone", clone, SHARED},
	{"graph/child", "cuGraphAddChildGraphNode: the child is cloned", child, SHARED},
	{"graph/events", "cuGraphAddEventRecordNode, cuGraphAddEventWaitNode", event_nodes, SHARED},
};
GROUP(graph_cases, cases);
