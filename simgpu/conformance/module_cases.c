/*
 * module_cases.c: modules, libraries, functions and their attributes.
 */
#include "conformance.h"

#include <string.h>

static const char *bad_ptx(void)
{
	CUmodule m;
	WANT(CUDA_ERROR_INVALID_PTX,
	     cu.cuModuleLoadData(&m, ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry f()\n{\nld.param.u64 %rd1, [ // wrong\n}\n"));
	return NULL;
}

static const char *no_file(void)
{
	CUmodule m;
	WANT(CUDA_ERROR_FILE_NOT_FOUND, cu.cuModuleLoad(&m, "/nonexistent/module.ptx"));
	return NULL;
}

static const char *jit_log(void)
{
	CUmodule m;
	char text[1024] = "";
	CUjit_option opt[] = {5, 6}; /* error log buffer and its size */
	void *val[] = {text, (void *)sizeof(text)};
	WANT(CUDA_ERROR_INVALID_PTX,
	     cu.cuModuleLoadDataEx(&m, ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry f()\n{\nld.param.u64 %rd1, [ // wrong\n}\n", 2,
	                           opt, val));
	CHECK(text[0] != 0);
	return NULL;
}

static const char *no_function(void)
{
	CUfunction f;
	WANT(CUDA_ERROR_NOT_FOUND, cu.cuModuleGetFunction(&f, module, "no_such_kernel"));
	return NULL;
}

static const char *function_facts(void)
{
	const char *name = NULL;
	CUmodule m = NULL;
	CUfunction again;
	OK(cu.cuFuncGetName(&name, add_kernel));
	CHECK(strcmp(name, "add") == 0);
	OK(cu.cuFuncGetModule(&m, add_kernel));
	CHECK(m == module);
	OK(cu.cuModuleGetFunction(&again, module, "add"));
	CHECK(again == add_kernel);
	return NULL;
}

static const char *param_layout(void)
{
	static const size_t want[][2] = {{0, 1}, {8, 8}, {16, 12}, {28, 2}};
	CUfunction f;
	size_t off, size;
	OK(cu.cuModuleGetFunction(&f, module, "layout"));
	for (size_t i = 0; i < 4; i++) {
		OK(cu.cuFuncGetParamInfo(f, i, &off, &size));
		CHECK(off == want[i][0] && size == want[i][1]);
	}
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuFuncGetParamInfo(f, 4, &off, &size));
	return NULL;
}

static const char *enumerate(void)
{
	unsigned n = 0;
	CUfunction f[8];
	const char *name;
	int found = 0;
	OK(cu.cuModuleGetFunctionCount(&n, module));
	CHECK(n == 5);
	OK(cu.cuModuleEnumerateFunctions(f, n, module));
	for (unsigned i = 0; i < n; i++) {
		OK(cu.cuFuncGetName(&name, f[i]));
		found += strcmp(name, "add") == 0 || strcmp(name, "layout") == 0;
	}
	CHECK(found == 2);
	return NULL;
}

static const char *function_loading(void)
{
	CUmodule m;
	CUfunction f;
	CUfunctionLoadingState st = CU_FUNCTION_LOADING_STATE_UNLOADED;
	OK(cu.cuModuleLoadData(&m, fixture_ptx));
	OK(cu.cuModuleEnumerateFunctions(&f, 1, m));
	OK(cu.cuFuncLoad(f));
	OK(cu.cuFuncIsLoaded(&st, f));
	CHECK(st == CU_FUNCTION_LOADING_STATE_LOADED);
	OK(cu.cuModuleUnload(m));
	return NULL;
}

static const char *loading_mode(void)
{
	CUmoduleLoadingMode mode = 0;
	OK(cu.cuModuleGetLoadingMode(&mode));
	CHECK(mode == CU_MODULE_EAGER_LOADING || mode == CU_MODULE_LAZY_LOADING);
	return NULL;
}

static const char *globals(void)
{
	CUdeviceptr p, t;
	size_t size = 0;
	unsigned v = 0;
	unsigned char table[24];
	OK(cu.cuModuleGetGlobal_v2(&p, &size, module, "counter"));
	CHECK(size == 4);
	OK(cu.cuMemcpyDtoH_v2(&v, p, 4));
	CHECK(v == 7);
	OK(cu.cuModuleGetGlobal_v2(&t, &size, module, "table"));
	CHECK(size == 24);
	OK(cu.cuMemcpyDtoH_v2(table, t, 24));
	for (int i = 0; i < 24; i++)
		CHECK(table[i] == 0);
	OK(cu.cuModuleGetGlobal_v2(NULL, &size, module, "table"));
	WANT(CUDA_ERROR_NOT_FOUND, cu.cuModuleGetGlobal_v2(&p, &size, module, "no_such_variable"));
	return NULL;
}

static const char *two_loads(void)
{
	CUmodule m;
	CUfunction f;
	CUdeviceptr a, b;
	OK(cu.cuModuleLoadData(&m, fixture_ptx));
	OK(cu.cuModuleGetFunction(&f, m, "add"));
	OK(cu.cuModuleGetGlobal_v2(&a, NULL, module, "counter"));
	OK(cu.cuModuleGetGlobal_v2(&b, NULL, m, "counter"));
	CHECK(m != module && f != add_kernel && a != b);
	OK(cu.cuModuleUnload(m));
	return NULL;
}

static const char *library(void)
{
	CUlibrary lib, back = NULL;
	CUkernel k, list[8];
	CUfunction f;
	CUmodule m, of = NULL;
	const char *name = NULL;
	unsigned n = 0;
	size_t off, size;
	OK(cu.cuLibraryLoadData(&lib, fixture_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cu.cuLibraryGetKernel(&k, lib, "scale"));
	WANT(CUDA_ERROR_NOT_FOUND, cu.cuLibraryGetKernel(&list[0], lib, "no_such_kernel"));
	OK(cu.cuKernelGetName(&name, k));
	CHECK(strcmp(name, "scale") == 0);
	OK(cu.cuKernelGetLibrary(&back, k));
	CHECK(back == lib);
	OK(cu.cuLibraryGetKernelCount(&n, lib));
	CHECK(n == 5);
	OK(cu.cuLibraryEnumerateKernels(list, n, lib));
	OK(cu.cuKernelGetParamInfo(k, 2, &off, &size));
	CHECK(off == 12 && size == 4);
	OK(cu.cuKernelGetFunction(&f, k));
	OK(cu.cuLibraryGetModule(&m, lib));
	OK(cu.cuFuncGetModule(&of, f));
	CHECK(of == m);
	OK(cu.cuLibraryUnload(lib));
	return NULL;
}

/* A node takes a kernel as its kern alone. */
static const char *kernel_in_a_node(void)
{
	CUlibrary lib;
	CUkernel k;
	CUgraph g;
	CUgraphNode n;
	CUDA_KERNEL_NODE_PARAMS params = add_params(0, 64, 1);
	OK(cu.cuLibraryLoadData(&lib, fixture_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cu.cuLibraryGetKernel(&k, lib, "add"));
	OK(cu.cuGraphCreate(&g, 0));
	params.func = (CUfunction)k;
	WANT(CUDA_ERROR_INVALID_HANDLE, cu.cuGraphAddKernelNode_v2(&n, g, NULL, 0, &params));
	params.func = NULL;
	params.kern = k;
	params.ctx = context;
	OK(cu.cuGraphAddKernelNode_v2(&n, g, NULL, 0, &params));
	OK(cu.cuGraphDestroy(g));
	OK(cu.cuLibraryUnload(lib));
	return NULL;
}

static const char *kernel_as_function(void)
{
	CUlibrary lib;
	CUkernel k;
	CUdeviceptr p;
	float v[4] = {1, 2, 3, 4}, by = 3;
	unsigned n = 4;
	void *params[] = {&p, &n, &by};
	OK(cu.cuLibraryLoadData(&lib, fixture_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cu.cuLibraryGetKernel(&k, lib, "scale"));
	OK(cu.cuMemAlloc_v2(&p, sizeof(v)));
	OK(cu.cuMemcpyHtoD_v2(p, v, sizeof(v)));
	OK(cu.cuLaunchKernel((CUfunction)k, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	OK(cu.cuMemcpyDtoH_v2(v, p, sizeof(v)));
	OK(cu.cuMemFree_v2(p));
	OK(cu.cuLibraryUnload(lib));
	CHECK(v[0] == 3 && v[3] == 12);
	return NULL;
}

static const char *attributes(void)
{
	int v = 0;
	OK(cu.cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add_kernel));
	CHECK(v >= 1 && v <= 1024);
	OK(cu.cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bounded_kernel));
	CHECK(v == 64);
	OK(cu.cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, add_kernel));
	CHECK(v == 0);
	OK(cu.cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, add_kernel));
	CHECK(v == 48 << 10);
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuFuncGetAttribute(&v, (CUfunction_attribute)10000, add_kernel));
	return NULL;
}

static const char *attribute_read_only(void)
{
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuFuncSetAttribute(add_kernel, CU_FUNC_ATTRIBUTE_NUM_REGS, 10));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuFuncSetAttribute(add_kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 10));
	return NULL;
}

static const char *shared_opt_in(void)
{
	int limit = 0;
	OK(cu.cuDeviceGetAttribute(&limit, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
	CHECK(limit > 48 << 10);
	WANT(CUDA_ERROR_INVALID_VALUE,
	     cu.cuFuncSetAttribute(shared_kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, limit + 1));
	CUdeviceptr p;
	float by = 2;
	unsigned n = 1;
	void *params[] = {&p, &n, &by};
	OK(cu.cuMemAlloc_v2(&p, 64));
	WANT(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernel(shared_kernel, 1, 1, 1, 32, 1, 1, 64 << 10, NULL, params, NULL));
	OK(cu.cuFuncSetAttribute(shared_kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10));
	OK(cu.cuLaunchKernel(shared_kernel, 1, 1, 1, 32, 1, 1, 64 << 10, NULL, params, NULL));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuFuncSetAttribute(shared_kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 48 << 10));
	OK(cu.cuMemFree_v2(p));
	return NULL;
}

static const char *kernel_attribute(void)
{
	CUlibrary lib;
	CUkernel k;
	CUfunction f;
	int v = 0;
	OK(cu.cuLibraryLoadData(&lib, fixture_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cu.cuLibraryGetKernel(&k, lib, "shared"));
	OK(cu.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536, k, 0));
	OK(cu.cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0));
	CHECK(v == 65536);
	OK(cu.cuKernelGetFunction(&f, k));
	OK(cu.cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
	CHECK(v == 65536);
	OK(cu.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 70000));
	OK(cu.cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
	CHECK(v == 70000);
	OK(cu.cuLibraryUnload(lib));
	return NULL;
}

static const char *occupancy(void)
{
	int n = 0;
	OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, add_kernel, 256, 0));
	CHECK(n >= 1);
	return NULL;
}

static const struct conformance_case cases[] = {
	{"module/bad_ptx", "cuModuleLoadData: INVALID_PTX", bad_ptx, SHARED},
	{"module/no_file", "cuModuleLoad: FILE_NOT_FOUND", no_file, SHARED},
	{"module/jit_log", "cuModuleLoadDataEx: CU_JIT_ERROR_LOG_BUFFER holds the message", jit_log, SHARED},
	{"module/no_function", "cuModuleGetFunction: NOT_FOUND", no_function, SHARED},
	{"module/two_loads", "cuModuleLoadData: each load is a module of its own", two_loads, SHARED},
	{"module/enumerate", "cuModuleGetFunctionCount, cuModuleEnumerateFunctions", enumerate, SHARED},
	{"module/globals", "cuModuleGetGlobal: address and size, either may be NULL; NOT_FOUND", globals, SHARED},
	{"module/loading_mode", "cuModuleGetLoadingMode", loading_mode, SHARED},
	{"function/facts", "cuFuncGetName, cuFuncGetModule; cuModuleGetFunction: the same handle each time", function_facts, SHARED},
	{"function/params", "cuFuncGetParamInfo: offsets and sizes; INVALID_VALUE past the last", param_layout, SHARED},
	{"function/loading", "cuFuncLoad, cuFuncIsLoaded", function_loading, SHARED},
	{"function/attributes", "cuFuncGetAttribute", attributes, SHARED},
	{"function/read_only", "cuFuncSetAttribute: INVALID_VALUE for an attribute that cannot be set", attribute_read_only, SHARED},
	{"function/shared_opt_in", "cuFuncSetAttribute, MAX_DYNAMIC_SHARED_SIZE_BYTES: beyond 48 KiB only after opting in", shared_opt_in, SHARED},
	{"library/kernels", "cuLibraryLoadData, cuLibraryGetKernel, cuKernelGetFunction, cuLibraryGetModule", library, SHARED},
	{"library/kernel_as_function", "cuLaunchKernel: f may be a CUkernel cast to CUfunction", kernel_as_function, SHARED},
	{"library/kernel_in_a_node", "cuGraphAddKernelNode: a CUkernel is kern, and func is a CUfunction", kernel_in_a_node, SHARED},
	{"library/attributes", "cuKernelSetAttribute: per device, overridden by cuFuncSetAttribute", kernel_attribute, SHARED},
	{"function/occupancy", "cuOccupancyMaxActiveBlocksPerMultiprocessor", occupancy, SHARED},
};
GROUP(module_cases, cases);
