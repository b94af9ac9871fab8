/*
 * launch.c: kernel launches, attributes of kernels, occupancy.
 *
 * In: host functions that stand for kernels. Out: the driver's launch calls. Fails: as in registration.c, and driver
 * calls.
 */
#include "cudart.h"

struct configuration { dim3 grid, block; size_t shared; CUstream stream; };
enum { MAX_PUSHED = 16 };
static _Thread_local struct configuration pushed[MAX_PUSHED];
static _Thread_local int depth;

EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
	if (depth == MAX_PUSHED)
		return 1;
	pushed[depth++] = (struct configuration){grid, block, shared, stream};
	return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	if (!depth)
		return result(cudaErrorMissingConfiguration);
	const struct configuration *c = &pushed[--depth];
	*grid = c->grid;
	*block = c->block;
	*shared = c->shared;
	*(CUstream *)stream = c->stream;
	return cudaSuccess;
}

EXPORT cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared, CUstream stream)
{
	NEED_CONTEXT();
	CUfunction f;
	cudaError_t r = function_of(func, &f);
	if (r)
		return result(r);
	return CALL(cuLaunchKernel, f, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, stream, args, NULL);
}

EXPORT cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                                               CUstream stream)
{
	NEED_CONTEXT();
	CUfunction f;
	cudaError_t r = function_of(func, &f);
	if (r)
		return result(r);
	return CALL(cuLaunchCooperativeKernel, f, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, stream,
	            args);
}

/* Code from CUDA 13's compiler asks once per kernel for an opaque handle. Here the handle is the host function. */
EXPORT cudaError_t __cudaGetKernel(const void **kernel, const void *func)
{
	if (!kernel)
		return result(cudaErrorInvalidValue);
	*kernel = func;
	return cudaSuccess;
}

EXPORT cudaError_t __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared, CUstream stream)
{
	return cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

struct launch_config {
	dim3 grid, block;
	size_t shared;
	CUstream stream;
	CUlaunchAttribute *attrs;
	unsigned int attr_count;
};

EXPORT cudaError_t cudaLaunchKernelExC(const struct launch_config *c, const void *func, void **args)
{
	NEED_CONTEXT();
	CUfunction f;
	if (!c)
		return result(cudaErrorInvalidValue);
	cudaError_t r = function_of(func, &f);
	if (r)
		return result(r);
	CUlaunchConfig cfg = {c->grid.x, c->grid.y, c->grid.z, c->block.x, c->block.y, c->block.z, (unsigned)c->shared, c->stream,
	                      c->attrs, c->attr_count};
	return CALL(cuLaunchKernelEx, &cfg, f, args, NULL);
}

EXPORT cudaError_t cudaLaunchHostFunc(CUstream stream, CUhostFn fn, void *data)
{
	NEED_CONTEXT();
	return CALL(cuLaunchHostFunc, stream, fn, data);
}

struct function_attributes {
	size_t shared, constant, local;
	int max_threads, registers, ptx, binary, cache_ca, max_dynamic_shared, carveout, cluster_must_be_set, cluster_width,
	    cluster_height, cluster_depth, cluster_policy, non_portable_cluster, reserved[16];
};
_Static_assert(sizeof(struct function_attributes) == 144, "cudaFuncAttributes");

EXPORT cudaError_t cudaFuncGetAttributes(struct function_attributes *a, const void *func)
{
	NEED_CONTEXT();
	CUfunction f;
	if (!a)
		return result(cudaErrorInvalidValue);
	cudaError_t r = function_of(func, &f);
	if (r)
		return result(r);
	int shared = 0, constant = 0, local = 0;
	*a = (struct function_attributes){0};
	const struct { CUfunction_attribute id; int *value; } wanted[] = {
		{CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared},
		{CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &constant},
		{CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local},
		{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &a->max_threads},
		{CU_FUNC_ATTRIBUTE_NUM_REGS, &a->registers},
		{CU_FUNC_ATTRIBUTE_PTX_VERSION, &a->ptx},
		{CU_FUNC_ATTRIBUTE_BINARY_VERSION, &a->binary},
		{CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &a->cache_ca},
		{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &a->max_dynamic_shared},
		{CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &a->carveout},
		{CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &a->cluster_must_be_set},
		{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &a->cluster_width},
		{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &a->cluster_height},
		{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &a->cluster_depth},
		{CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &a->cluster_policy},
		{CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &a->non_portable_cluster},
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		if ((r = CALL(cuFuncGetAttribute, wanted[i].value, wanted[i].id, f)))
			return r;
	a->shared = (size_t)shared;
	a->constant = (size_t)constant;
	a->local = (size_t)local;
	return cudaSuccess;
}

/* The runtime and the driver use the same numbers for settable attributes. */
EXPORT cudaError_t cudaFuncSetAttribute(const void *func, int attr, int value)
{
	NEED_CONTEXT();
	CUfunction f;
	cudaError_t r = function_of(func, &f);
	return r ? result(r) : CALL(cuFuncSetAttribute, f, (CUfunction_attribute)attr, value);
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *func, int block_size,
                                                                          size_t shared, unsigned int flags)
{
	NEED_CONTEXT();
	CUfunction f;
	cudaError_t r = function_of(func, &f);
	return r ? result(r) : CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, f, block_size, shared, flags);
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func, int block_size, size_t shared)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, block_size, shared, 0);
}
