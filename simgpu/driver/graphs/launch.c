/*
 * launch.c: descriptions of kernel launches, as calls, nodes and queued work hold them.
 *
 * In: a function, a grid and parameters. Out: a copy of all of it. Fails: with INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES or
 * COOPERATIVE_LAUNCH_TOO_LARGE, as documented for the call.
 */
#include "graphs/graphs.h"

#include <stdlib.h>
#include <string.h>

static CUresult check_shape(const struct function *f, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                            bool cooperative)
{
	static const CUdevice_attribute grid_max[3] = {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
	                                               CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
	static const CUdevice_attribute block_max[3] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
	                                                CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
	uint64_t threads = 1, blocks = 1;
	for (int i = 0; i < 3; i++) {
		if (!grid[i] || grid[i] > (uint32_t)device_attribute(grid_max[i]) || !block[i] ||
		    block[i] > (uint32_t)device_attribute(block_max[i]))
			return CUDA_ERROR_INVALID_VALUE;
		threads *= block[i];
		blocks *= grid[i];
	}
	int dynamic;
	function_attribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &dynamic);
	if (threads > (uint32_t)device_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) || (int64_t)shared > dynamic)
		return CUDA_ERROR_INVALID_VALUE;
	if (threads > ptx_kernel_max_threads(f->code))
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (cooperative && blocks > (uint64_t)occupancy(f, threads, shared) *
	                                (uint64_t)device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT))
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return CUDA_SUCCESS;
}

static void set_pointers(struct launch *l)
{
	const struct ptx_param *params;
	size_t n = ptx_kernel_params(l->function->code, &params);
	l->pointers = xalloc((n + 1) * sizeof(void *));
	for (size_t i = 0; i < n; i++)
		l->pointers[i] = l->params + params[i].offset;
	if (!l->extra_size)
		return;
	void *list[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, l->params, CU_LAUNCH_PARAM_BUFFER_SIZE, &l->extra_size, CU_LAUNCH_PARAM_END};
	memcpy(l->extra, list, sizeof(list));
}

/* The parameters as one buffer, from an array of pointers or from the `extra` list. */
static CUresult fill_params(struct launch *l, void **params, void **extra)
{
	const struct ptx_param *p;
	size_t n = ptx_kernel_params(l->function->code, &p), bytes = ptx_kernel_param_bytes(l->function->code);
	l->params = xalloc(bytes);
	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (extra) {
		const void *buffer = NULL;
		size_t size = 0;
		for (; *extra != CU_LAUNCH_PARAM_END; extra += 2)
			if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
				buffer = extra[1];
			else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
				size = *(const size_t *)extra[1];
			else
				return CUDA_ERROR_INVALID_VALUE;
		if (bytes && (!buffer || size < bytes))
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(l->params, buffer ? buffer : "", bytes);
		l->extra_size = bytes;
		return CUDA_SUCCESS;
	}
	if (n && !params)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		if (!params[i])
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(l->params + p[i].offset, params[i], p[i].size);
	}
	return CUDA_SUCCESS;
}

CUresult launch_new(struct context *ctx, const void *handle, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                    void **params, void **extra, bool cooperative, struct launch **out)
{
	struct function *f;
	CUresult r = function_resolve(ctx, handle, &f);
	if (r || (r = check_shape(f, grid, block, shared, cooperative)))
		return r;
	struct launch *l = xalloc(sizeof(*l));
	l->function = f;
	f->module->refs++;
	l->handle = (CUfunction)(uintptr_t)handle;
	memcpy(l->grid, grid, sizeof(l->grid));
	memcpy(l->block, block, sizeof(l->block));
	l->shared = shared;
	l->cooperative = cooperative;
	if ((r = fill_params(l, params, extra))) {
		launch_free(l);
		return r;
	}
	set_pointers(l);
	function_load(f);
	*out = l;
	return CUDA_SUCCESS;
}

struct launch *launch_copy(const struct launch *l)
{
	struct launch *n = xalloc(sizeof(*n));
	*n = *l;
	n->function->module->refs++;
	size_t bytes = ptx_kernel_param_bytes(l->function->code);
	n->params = xalloc(bytes);
	memcpy(n->params, l->params, bytes);
	set_pointers(n);
	return n;
}

void launch_free(struct launch *l)
{
	module_release(l->function->module);
	free(l->params);
	free(l->pointers);
	free(l);
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

/* Sizes that every device takes, and those that a function may ask for by an attribute of its own. */
#define PORTABLE_CLUSTER 8
#define LARGEST_CLUSTER 16

/* Kernels that do not use their cluster work in one of any size; instructions that use it are not interpreted. */
CUresult cluster_check(const struct function *f, const CUlaunchAttributeValue *v)
{
	uint64_t size = (v->clusterDim.x ? v->clusterDim.x : 1) * (uint64_t)(v->clusterDim.y ? v->clusterDim.y : 1) *
	                (v->clusterDim.z ? v->clusterDim.z : 1);
	int allowed = 0;
	function_attribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &allowed);
	return size > (allowed ? LARGEST_CLUSTER : PORTABLE_CLUSTER) ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

/* The bytes of the value that belong to the attribute. A node keeps all 64 as it got them. */
size_t node_attribute_size(CUlaunchAttributeID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: return 28; /* a pointer, a size, a float and two numbers */
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: return 12;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: return 2;
	default: return 4;
	}
}

/* INVALID_VALUE: no attribute of kernels; NOT_SUPPORTED: one that is not simulated. */
CUresult node_attribute_check(CUlaunchAttributeID id, const CUlaunchAttributeValue *v)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		return v && v->deviceUpdatableKernelNode.deviceUpdatable ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: /* devices of compute capability 9.0 refuse it */
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}
