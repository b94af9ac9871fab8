/*
 * launch.c: kernel launches.
 *
 * In: a function, a grid and parameters. Out: queued work, or a node of the graph that the stream captures. Fails: at the
 * call with INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES or COOPERATIVE_LAUNCH_TOO_LARGE, as documented; what happens on the device
 * is reported later.
 */
#include "sim.h"

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
	f->loaded = true;
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

/* ---- attributes of one launch ------------------------------------------------------------------------------------ */

/* Sizes that every device takes, and those that a function may ask for by an attribute of its own. */
#define PORTABLE_CLUSTER 8
#define LARGEST_CLUSTER 16

/* A kernel that uses nothing of its cluster does the same in one of any size; instructions that do are not interpreted. */
CUresult cluster_check(const struct function *f, const CUlaunchAttributeValue *v)
{
	uint64_t size = (v->clusterDim.x ? v->clusterDim.x : 1) * (uint64_t)(v->clusterDim.y ? v->clusterDim.y : 1) *
	                (v->clusterDim.z ? v->clusterDim.z : 1);
	int allowed = 0;
	function_attribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &allowed);
	return size > (allowed ? LARGEST_CLUSTER : PORTABLE_CLUSTER) ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

static CUresult check_clusters(const struct launch *l, const CUlaunchAttribute *attrs, unsigned n)
{
	CUresult r = CUDA_SUCCESS;
	for (unsigned i = 0; i < n && !r; i++) {
		const CUlaunchAttributeValue *v = &attrs[i].value;
		if (attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			continue;
		r = cluster_check(l->function, v);
		if ((v->clusterDim.x && l->grid[0] % v->clusterDim.x) || (v->clusterDim.y && l->grid[1] % v->clusterDim.y) ||
		    (v->clusterDim.z && l->grid[2] % v->clusterDim.z))
			r = CUDA_ERROR_INVALID_CLUSTER_SIZE;
	}
	return r;
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
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		return v && v->deviceUpdatableKernelNode.deviceUpdatable ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult check_attributes(struct call *c, const CUlaunchAttribute *attrs, unsigned n, bool *cooperative)
{
	if (n && !attrs)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++) {
		CUlaunchAttributeID id = attrs[i].id;
		call_detail(c, "attr=%d", (int)id);
		if (id == CU_LAUNCH_ATTRIBUTE_IGNORE || id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
		    id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
			continue;
		if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT || id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
			return call_unsupported_part(c, "events triggered by kernels");
		CUresult r = node_attribute_check(id, &attrs[i].value);
		if (r == CUDA_ERROR_NOT_SUPPORTED)
			return call_unsupported_part(c, "a launch attribute (device-side updates)");
		if (r)
			return r;
		if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && attrs[i].value.cooperative)
			*cooperative = true;
	}
	return CUDA_SUCCESS;
}

static void set_node_attributes(struct node *n, const CUlaunchAttribute *attrs, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (node_attribute_check(attrs[i].id, NULL) == CUDA_SUCCESS) {
			n->attr_set |= 1u << attrs[i].id;
			n->attrs[attrs[i].id] = attrs[i].value;
		}
	if (n->launch->cooperative) {
		n->attr_set |= 1u << CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
		n->attrs[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative = 1;
	}
}

/* A kernel launched with programmatic stream serialization may start while the kernel before it still runs: such edges
 * say so. Running them in order is one of the orders allowed. */
static void programmatic_edges(struct stream *s, const CUlaunchAttribute *attrs, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
		    attrs[i].value.programmaticStreamSerializationAllowed)
			for (size_t d = 0; d < s->dep_count; d++)
				if (s->deps[d].node->type == CU_GRAPH_NODE_TYPE_KERNEL) {
					s->deps[d].edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
					s->deps[d].edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
				}
}

/* ---- entry points ------------------------------------------------------------------------------------------------ */

static CUresult submit(struct call *c, CUfunction handle, const CUlaunchConfig *cfg, bool cooperative, void **params,
                       void **extra)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct stream *s;
	bool capturing;
	if ((r = stream_resolve(c, cfg->hStream, &s)) || (r = capture_check(c, s, &capturing)) ||
	    (r = check_attributes(c, cfg->attrs, cfg->numAttrs, &cooperative)))
		return r;
	uint32_t grid[3] = {cfg->gridDimX, cfg->gridDimY, cfg->gridDimZ};
	uint32_t block[3] = {cfg->blockDimX, cfg->blockDimY, cfg->blockDimZ};
	struct launch *l;
	if ((r = launch_new(c->ctx, handle, grid, block, cfg->sharedMemBytes, params, extra, cooperative, &l)))
		return r;
	if ((r = check_clusters(l, cfg->attrs, cfg->numAttrs))) {
		launch_free(l);
		return r;
	}
	call_detail(c, "kernel=%s\tgrid=%u,%u,%u\tblock=%u,%u,%u\tshared=%u", function_name(l->function), grid[0], grid[1],
	            grid[2], block[0], block[1], block[2], cfg->sharedMemBytes);
	if (!capturing) {
		struct op *op = op_new(OP_KERNEL);
		op->launch = l;
		queue_add(s, op);
		return CUDA_SUCCESS;
	}
	call_detail(c, "capture=%llu", (unsigned long long)s->capture->id);
	struct node *n = node_new(CU_GRAPH_NODE_TYPE_KERNEL, c->ctx);
	n->launch = l;
	set_node_attributes(n, cfg->attrs, cfg->numAttrs);
	programmatic_edges(s, cfg->attrs, cfg->numAttrs);
	return capture_node(s, n);
}

CUresult sim_cuLaunchKernel(struct call *c, CUfunction f, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                            unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                            CUstream stream, void **params, void **extra)
{
	CUlaunchConfig cfg = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0};
	return submit(c, f, &cfg, false, params, extra);
}

CUresult sim_cuLaunchCooperativeKernel(struct call *c, CUfunction f, unsigned int grid_x, unsigned int grid_y,
                                       unsigned int grid_z, unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                       unsigned int shared, CUstream stream, void **params)
{
	CUlaunchConfig cfg = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0};
	return submit(c, f, &cfg, true, params, NULL);
}

CUresult sim_cuLaunchKernelEx(struct call *c, const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	return config ? submit(c, f, config, false, params, extra) : CUDA_ERROR_INVALID_VALUE;
}
