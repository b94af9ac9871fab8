/*
 * nodes.c: nodes other than plain launches: a parameter buffer instead of single parameters, node attributes, an edge with data,
 * a host node, a module variable. Also a graph that changes after its capture, a graph built by hand, and an executable graph
 * that changes.
 */
#include "common.h"

static const char variable_ptx[] =
	".version 7.0\n"
	".target sm_80\n"
	".address_size 64\n"
	".visible .global .align 4 .u32 counter[16];\n";

static void nothing(void *arg) { (void)arg; }

int main(int argc, char **argv)
{
	CUmodule module, variables;
	CUfunction add_one;
	CUstream s;
	CUdeviceptr p, counter;
	CUgraph graph, built;
	CUgraphExec exec;
	CUgraphNode nodes[8], by_hand[2];
	size_t n_nodes = 8, n_counter;
	unsigned int n = 7;
	(void)argv;
	start();
	CHECK(cuModuleLoadData(&module, module_ptx));
	CHECK(cuModuleGetFunction(&add_one, module, "add_one"));
	CHECK(cuModuleLoadData(&variables, variable_ptx));
	CHECK(cuModuleGetGlobal(&counter, &n_counter, variables, "counter"));
	PRINT("counter", counter);
	CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	p = alloc(4096);
	PRINT("p", p);

	CHECK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	{
		struct {
			CUdeviceptr p;
			unsigned int n;
		} buffer = {p, 3};
		size_t size = 12;
		void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
		CHECK(cuLaunchKernel(add_one, 1, 1, 1, 32, 1, 1, 0, s, NULL, extra));
	}
	{
		CUlaunchAttribute attrs[] = {
			{.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.programmaticStreamSerializationAllowed = 1},
			{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -3},
			{.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, .value.sharedMemCarveout = UINT32_MAX}, /* the default */
		};
		CUlaunchConfig config = {1, 1, 1, 32, 1, 1, 0, s, attrs, 3};
		void *params[] = {&p, &n};
		CHECK(cuLaunchKernelEx(&config, add_one, params, NULL));
	}
	CHECK(cuLaunchHostFunc(s, nothing, NULL));
	CHECK(cuStreamEndCapture(s, &graph));

	CHECK(cuGraphGetNodes(graph, nodes, &n_nodes));
	for (size_t i = 0; i < n_nodes; i++) {
		CUgraphNodeType type;
		CUDA_KERNEL_NODE_PARAMS kp;
		CHECK(cuGraphNodeGetType(nodes[i], &type));
		if (type != CU_GRAPH_NODE_TYPE_KERNEL)
			continue;
		CHECK(cuGraphKernelNodeGetParams(nodes[i], &kp));
		kp.gridDimX = 2;
		CHECK(cuGraphKernelNodeSetParams(nodes[i], &kp));
	}
	CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));

	{
		void *params[] = {&p, &n};
		CUDA_KERNEL_NODE_PARAMS kp = {.func = add_one, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1, .kernelParams = params};
		CHECK(cuGraphCreate(&built, 0));
		CHECK(cuGraphAddEmptyNode(&by_hand[0], built, NULL, 0));
		CHECK(cuGraphAddKernelNode(&by_hand[1], built, by_hand, 1, &kp));
		CHECK(cuGraphInstantiateWithFlags(&exec, built, 0));
		PRINT("built", (uintptr_t)built);
		if (argc > 1)
			CHECK(cuGraphExecKernelNodeSetParams(exec, by_hand[1], &kp));
	}
	return 0;
}
