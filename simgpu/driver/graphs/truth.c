/*
 * truth.c: every node at the moment of its capture, and every graph as it was instantiated, however it came to be, in the
 * ground truth.
 */
#include "graphs/graphs.h"

static void kernel(struct truth_line *l, const struct launch *k)
{
	const struct ptx_param *p;
	size_t n = ptx_kernel_params(k->function->code, &p);
	truth_append(l, "\t%s\t%u,%u,%u\t%u,%u,%u\t%u\t", function_name(k->function), k->grid[0], k->grid[1], k->grid[2], k->block[0],
	       k->block[1], k->block[2], k->shared);
	for (size_t i = 0; i < n; i++) {
		truth_append(l, "%s%u:", i ? "," : "", p[i].offset);
		for (uint32_t b = 0; b < p[i].size; b++)
			truth_append(l, "%02x", k->params[p[i].offset + b]);
	}
}

static const char *const names[] = {"kernel", "memcpy", "memset"};

static void node_text(struct truth_line *l, const struct node *n)
{
	if (n->type == CU_GRAPH_NODE_TYPE_KERNEL)
		kernel(l, n->launch);
	else if (n->type == CU_GRAPH_NODE_TYPE_MEMSET)
		truth_append(l, "\t0x%llx\t%zu\t%u\t%u\t%zu\t%zu", (unsigned long long)n->fill.dst, n->fill.pitch, n->fill.value,
		       n->fill.elementSize, n->fill.width, n->fill.height);
	else
		truth_append(l, "\t0x%llx\t0x%llx\t%zu\t%zu\t%zu",
		       (unsigned long long)(n->copy.dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)n->copy.dstHost
		                                                                         : n->copy.dstDevice),
		       (unsigned long long)(n->copy.srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)n->copy.srcHost
		                                                                         : n->copy.srcDevice),
		       n->copy.WidthInBytes, n->copy.Height, n->copy.Depth);
}

void truth_node(uint64_t capture, const struct node *n)
{
	if (!truth_wanted() || n->type > CU_GRAPH_NODE_TYPE_MEMSET)
		return;
	struct truth_line l = truth_start(names[n->type]);
	truth_append(&l, "\t%llu\t%zu", (unsigned long long)capture, n->slot);
	node_text(&l, n);
	truth_end(&l);
}

static void instance_node(unsigned long long number, const struct node *n)
{
	struct truth_line l = truth_start("instance-node");
	truth_append(&l, "\t%llu\t%zu", number, n->slot);
	if (n->type > CU_GRAPH_NODE_TYPE_MEMSET)
		truth_append(&l, "\ttype %d", (int)n->type);
	else {
		truth_append(&l, "\t%s", names[n->type]);
		node_text(&l, n);
	}
	for (unsigned i = 0; n->type == CU_GRAPH_NODE_TYPE_KERNEL && i < NODE_ATTRIBUTES; i++) {
		if (!(n->attr_set & 1u << i))
			continue;
		truth_append(&l, "\tattr %u=", i);
		for (size_t b = 0; b < sizeof(n->attrs[i]); b++)
			truth_append(&l, "%02x", (unsigned char)n->attrs[i].pad[b]);
	}
	int shared;
	if (n->type == CU_GRAPH_NODE_TYPE_KERNEL &&
	    function_attribute(n->launch->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &shared) == 0)
		truth_append(&l, "\tmax_dynamic_shared=%d", shared);
	truth_end(&l);
}

void truth_instance(const struct graph *g, const struct exec *e)
{
	static unsigned long long number;
	if (!truth_wanted())
		return;
	struct truth_line l = truth_start("instance");
	truth_append(&l, "\t%llu\t%zu\t%zu\t%llu\t%p", ++number, g->node_count, g->edge_count, (unsigned long long)e->flags, (const void *)e);
	truth_end(&l);
	for (size_t i = 0; i < g->node_count; i++)
		instance_node(number, g->nodes[i]);
	for (size_t i = 0; i < g->edge_count; i++) {
		const struct edge *e = g->edges[i];
		l = truth_start("instance-edge");
		truth_append(&l, "\t%llu\t%zu\t%zu\t%u,%u,%u", number, e->from->slot, e->to->slot, e->data.from_port, e->data.to_port,
		       e->data.type);
		truth_end(&l);
	}
}
