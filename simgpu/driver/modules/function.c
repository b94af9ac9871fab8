/*
 * function.c: kernels as functions: names, parameters, attributes, occupancy.
 *
 * In: CUfunction handles, or CUkernel handles in their place. Out: facts from the PTX and the program's settings. Fails:
 * INVALID_HANDLE; INVALID_VALUE for an attribute that cannot be set, or an index past the last parameter.
 */
#include "modules/modules.h"

#define NOT_SET (-2)

void attributes_reset(struct attributes *a)
{
	*a = (struct attributes){NOT_SET, NOT_SET, NOT_SET, 0};
}

CUresult function_resolve(struct context *ctx, const void *handle, struct function **out)
{
	if (object_live(handle, OBJECT_FUNCTION)) {
		*out = (struct function *)(uintptr_t)handle;
		return (*out)->module->ctx == ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	}
	if (!object_live(handle, OBJECT_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	const struct kernel *k = handle;
	struct module *m;
	CUresult r = library_module(ctx, k->library, &m);
	if (!r)
		*out = &m->functions[k->index];
	return r;
}

void function_load(struct function *f)
{
	if (!f->loaded)
		overhead_code(f->module->ctx->device);
	f->loaded = true;
}

const char *function_name(const struct function *f)
{
	return ptx_kernel_name(f->code);
}

static int limit(CUdevice_attribute attr)
{
	return device_attribute(attr);
}

/* The value set on the function, else on its kernel, else the default. */
static int chosen(const struct function *f, int own, int kernels, int fallback)
{
	return own != NOT_SET ? own : f->kernel && kernels != NOT_SET ? kernels : fallback;
}

int function_attribute(const struct function *f, CUfunction_attribute attr, int *value)
{
	const struct attributes *k = f->kernel ? &f->kernel->attrs : &f->attrs;
	int shared = (int)ptx_kernel_shared_bytes(f->code), v;
	switch (attr) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: v = (int)ptx_kernel_max_threads(f->code); break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: v = shared; break;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: v = 0; break;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: v = (int)ptx_kernel_local_bytes(f->code); break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS: v = 32; break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION: v = config_get()->cc_major * 10 + config_get()->cc_minor; break;
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: v = 0; break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		v = chosen(f, f->attrs.max_dynamic_shared, k->max_dynamic_shared,
		           limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) - shared);
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: v = chosen(f, f->attrs.carveout, k->carveout, -1); break;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		v = chosen(f, f->attrs.non_portable_cluster, k->non_portable_cluster, 0);
		break;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: v = 0; break;
	default: return -1;
	}
	*value = v;
	return 0;
}

static CUresult set(struct attributes *a, const struct ptx_kernel *code, CUfunction_attribute attr, int value)
{
	int room = limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) - (int)ptx_kernel_shared_bytes(code);
	switch (attr) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || value > room)
			return CUDA_ERROR_INVALID_VALUE;
		a->max_dynamic_shared = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		a->carveout = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		if (value != 0 && value != 1)
			return CUDA_ERROR_INVALID_VALUE;
		a->non_portable_cluster = value;
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult param_info(const struct ptx_kernel *code, size_t index, size_t *offset, size_t *size)
{
	const struct ptx_param *params;
	size_t n = ptx_kernel_params(code, &params);
	if (!offset || index >= n)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = params[index].offset;
	if (size)
		*size = params[index].size;
	return CUDA_SUCCESS;
}

static CUresult enter(struct call *c, CUfunction handle, struct function **f)
{
	CUresult r = call_context(c);
	return r ? r : function_resolve(c->ctx, handle, f);
}

CUresult sim_cuFuncGetAttribute(struct call *c, int *value, CUfunction_attribute attr, CUfunction func)
{
	struct function *f;
	CUresult r = enter(c, func, &f);
	if (r)
		return r;
	call_detail(c, "attr=%d", (int)attr);
	return value && function_attribute(f, attr, value) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuFuncSetAttribute(struct call *c, CUfunction func, CUfunction_attribute attr, int value)
{
	struct function *f;
	CUresult r = enter(c, func, &f);
	if (r)
		return r;
	call_detail(c, "kernel=%s\tattr=%d\tvalue=%d", function_name(f), (int)attr, value);
	return set(&f->attrs, f->code, attr, value);
}

/* Cache preferences are hints to caches that are not simulated. */
CUresult sim_cuFuncSetCacheConfig(struct call *c, CUfunction func, int config)
{
	struct function *f;
	CUresult r = enter(c, func, &f);
	if (r)
		return r;
	if (config < 0 || config > 3)
		return CUDA_ERROR_INVALID_VALUE;
	f->attrs.cache_config = config;
	return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetModule(struct call *c, CUmodule *module, CUfunction func)
{
	struct function *f;
	CUresult r = enter(c, func, &f);
	if (r)
		return r;
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	*module = (CUmodule)f->module;
	return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetName(struct call *c, const char **name, CUfunction func)
{
	struct function *f;
	CUresult r = enter(c, func, &f);
	if (r)
		return r;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = function_name(f);
	return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetParamInfo(struct call *c, CUfunction func, size_t index, size_t *offset, size_t *size)
{
	struct function *f;
	CUresult r = enter(c, func, &f);
	return r ? r : param_info(f->code, index, offset, size);
}

CUresult sim_cuFuncIsLoaded(struct call *c, CUfunctionLoadingState *state, CUfunction func)
{
	struct function *f;
	CUresult r = enter(c, func, &f);
	if (r)
		return r;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	*state = f->loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
	return CUDA_SUCCESS;
}

CUresult sim_cuFuncLoad(struct call *c, CUfunction func)
{
	struct function *f;
	CUresult r = enter(c, func, &f);
	if (!r)
		function_load(f);
	return r;
}

/* ---- kernels --------------------------------------------------------------------------------------------------- */

static CUresult kernel_resolve(CUkernel handle, struct kernel **k, const struct ptx_kernel **code)
{
	if (!object_live(handle, OBJECT_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	*k = (struct kernel *)handle;
	*code = ptx_kernel_at((*k)->library->ptx, (*k)->index);
	return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetAttribute(struct call *c, int *value, CUfunction_attribute attr, CUkernel kernel, CUdevice dev)
{
	struct kernel *k;
	const struct ptx_kernel *code;
	CUresult r = kernel_resolve(kernel, &k, &code);
	if (r || (r = device_check(dev)))
		return r;
	call_detail(c, "attr=%d", (int)attr);
	struct function f = {.code = code, .attrs = k->attrs};
	return value && function_attribute(&f, attr, value) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuKernelSetAttribute(struct call *c, CUfunction_attribute attr, int val, CUkernel kernel, CUdevice dev)
{
	struct kernel *k;
	const struct ptx_kernel *code;
	CUresult r = kernel_resolve(kernel, &k, &code);
	if (r || (r = device_check(dev)))
		return r;
	call_detail(c, "kernel=%s\tattr=%d\tvalue=%d", ptx_kernel_name(code), (int)attr, val);
	return set(&k->attrs, code, attr, val);
}

CUresult sim_cuKernelSetCacheConfig(struct call *c, CUkernel kernel, int config, CUdevice dev)
{
	(void)c;
	struct kernel *k;
	const struct ptx_kernel *code;
	CUresult r = kernel_resolve(kernel, &k, &code);
	if (r || (r = device_check(dev)))
		return r;
	if (config < 0 || config > 3)
		return CUDA_ERROR_INVALID_VALUE;
	k->attrs.cache_config = config;
	return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetParamInfo(struct call *c, CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
	(void)c;
	struct kernel *k;
	const struct ptx_kernel *code;
	CUresult r = kernel_resolve(kernel, &k, &code);
	return r ? r : param_info(code, index, offset, size);
}

/* ---- occupancy: limited by threads, blocks and shared memory; registers are not simulated ----------------------- */

int occupancy(const struct function *f, uint64_t threads, uint64_t dynamic_shared)
{
	uint64_t shared = ptx_kernel_shared_bytes(f->code) + dynamic_shared;
	uint64_t warps = (threads + 31) / 32;
	uint64_t n = (uint64_t)limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
	uint64_t by_threads = (uint64_t)limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / (warps * 32);
	uint64_t by_shared = (uint64_t)limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) /
	                     (shared + (uint64_t)limit(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
	n = by_threads < n ? by_threads : n;
	n = by_shared < n ? by_shared : n;
	return threads > ptx_kernel_max_threads(f->code) ? 0 : (int)n;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(struct call *c, int *num_blocks, CUfunction func, int block_size,
                                                         size_t dynamic_shared)
{
	struct function *f;
	CUresult r = enter(c, func, &f);
	if (r)
		return r;
	if (!num_blocks || block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	*num_blocks = occupancy(f, (uint64_t)block_size, dynamic_shared);
	return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(struct call *c, int *num_blocks, CUfunction func,
                                                                  int block_size, size_t dynamic_shared, unsigned int flags)
{
	if (flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	return sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(c, num_blocks, func, block_size, dynamic_shared);
}
