/*
 * launch.c: kernel launches.
 *
 * In: a function, a grid and parameters. Out: queued work, or a node of the graph that the stream captures. Fails: at the
 * call with INVALID_VALUE, LAUNCH_OUT_OF_RESOURCES or COOPERATIVE_LAUNCH_TOO_LARGE, as documented; errors on the device
 * are reported later.
 */
#include "calls/calls.h"

#include <stdlib.h>
#include <string.h>

/* ---- attributes of one launch ------------------------------------------------------------------------------------ */

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
	if (s->ctx->device != c->ctx->device) /* copies alone may go to another device's stream */
		return CUDA_ERROR_INVALID_HANDLE;
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
