/*
 * truth.c: every node at the moment of its capture, and every graph as it was instantiated, however it came to be, in the
 * ground truth.
 */
#include "graphs/graphs.h"

static void kernel(struct truth_line *l, const struct launch *k)
{
	const struct ptx_param *p;
	size_t n = ptx_kernel_params(k->function->code, &p);
	truth_append(l, "\t%s\t%016llx\t%u,%u,%u\t%u,%u,%u\t%u\t", function_name(k->function),
	       (unsigned long long)k->function->module->image, k->grid[0], k->grid[1], k->grid[2], k->block[0],
	       k->block[1], k->block[2], k->shared);
	for (size_t i = 0; i < n; i++) {
		truth_append(l, "%s%u:", i ? "," : "", p[i].offset);
		for (uint32_t b = 0; b < p[i].size; b++)
			truth_append(l, "%02x", k->params[p[i].offset + b]);
	}
}

/* One side of a copy: its address, and how it is walked. */
static void side(struct truth_line *l, uint64_t addr, size_t x, size_t y, size_t z, size_t pitch, size_t height)
{
	truth_append(l, "\t0x%llx\t%zu,%zu,%zu,%zu,%zu", (unsigned long long)addr, x, y, z, pitch, height);
}

/* Kinds by CUgraphNodeType; the others are not restored. */
static const char *kind(const struct node *n)
{
	switch (n->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: return "kernel";
	case CU_GRAPH_NODE_TYPE_MEMCPY: return "memcpy";
	case CU_GRAPH_NODE_TYPE_MEMSET: return "memset";
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return "memops";
	case CU_GRAPH_NODE_TYPE_GRAPH: return "child";
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "event-record";
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "event-wait";
	default: return NULL;
	}
}

static void node_text(struct truth_line *l, const struct node *n)
{
	const CUDA_MEMCPY3D *c = &n->copy;
	switch (n->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: kernel(l, n->launch); break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		truth_append(l, "\t0x%llx\t%zu\t%u\t%u\t%zu\t%zu", (unsigned long long)n->fill.dst, n->fill.pitch, n->fill.value,
		       n->fill.elementSize, n->fill.width, n->fill.height);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		side(l, copy_target(c), c->dstXInBytes, c->dstY, c->dstZ, c->dstPitch, c->dstHeight);
		side(l, copy_source(c), c->srcXInBytes, c->srcY, c->srcZ, c->srcPitch, c->srcHeight);
		truth_append(l, "\t%zu\t%zu\t%zu", c->WidthInBytes, c->Height, c->Depth);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		for (unsigned i = 0; i < n->mem_ops->count; i++) {
			const CUstreamMemOpValue *v = &n->mem_ops->ops[i].waitValue;
			bool wide = v->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || v->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
			truth_append(l, "\t%d,0x%llx,%llu,%u", (int)v->operation, (unsigned long long)v->address,
			             (unsigned long long)(wide ? v->value64 : v->value), v->flags);
		}
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH: truth_append(l, "\t%zu\t%zu", n->child->node_count, n->child->edge_count); break;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT: truth_append(l, "\t%p", (const void *)n->event); break;
	default: break;
	}
}

void truth_node(uint64_t capture, const struct node *n)
{
	if (!truth_wanted() || !kind(n))
		return;
	struct truth_line l = truth_start(kind(n));
	truth_append(&l, "\t%llu\t%zu", (unsigned long long)capture, n->slot);
	node_text(&l, n);
	truth_end(&l);
}

static void attributes(struct truth_line *l, const struct node *n)
{
	for (unsigned i = 0; i < NODE_ATTRIBUTES; i++) {
		CUlaunchAttributeValue v = n->attrs[i];
		if (!(n->attr_set & 1u << i))
			continue;
		if (i == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) {
			truth_append(l, "\twindow %p", v.accessPolicyWindow.base_ptr);
			v.accessPolicyWindow.base_ptr = NULL;
		}
		truth_append(l, "\tattr %u=", i);
		for (size_t b = 0; b < node_attribute_size(i); b++)
			truth_append(l, "%02x", (unsigned char)v.pad[b]);
	}
	int shared;
	if (function_attribute(n->launch->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &shared) == 0)
		truth_append(l, "\tmax_dynamic_shared=%d", shared);
}

#define PATH 64 /* characters of the places of a node in its graphs */

static void instance_body(unsigned long long number, const struct graph *g, const char *in);

static void instance_node(unsigned long long number, const struct node *n, const char *in)
{
	struct truth_line l = truth_start("instance-node");
	truth_append(&l, "\t%llu\t%s%zu", number, in, n->slot);
	if (kind(n))
		truth_append(&l, "\t%s", kind(n));
	else
		truth_append(&l, "\ttype %d", (int)n->type);
	node_text(&l, n);
	if (n->type == CU_GRAPH_NODE_TYPE_KERNEL)
		attributes(&l, n);
	truth_end(&l);
	if (n->type == CU_GRAPH_NODE_TYPE_GRAPH) {
		char within[PATH];
		snprintf(within, sizeof(within), "%s%zu/", in, n->slot);
		instance_body(number, n->child, within);
	}
}

static void instance_body(unsigned long long number, const struct graph *g, const char *in)
{
	for (size_t i = 0; i < g->node_count; i++)
		instance_node(number, g->nodes[i], in);
	for (size_t i = 0; i < g->edge_count; i++) {
		const struct edge *e = g->edges[i];
		struct truth_line l = truth_start("instance-edge");
		truth_append(&l, "\t%llu\t%s%zu\t%s%zu\t%u,%u,%u", number, in, e->from->slot, in, e->to->slot, e->data.from_port,
		       e->data.to_port, e->data.type);
		truth_end(&l);
	}
}

void truth_instance(const struct graph *g, const struct exec *e)
{
	static unsigned long long number;
	if (!truth_wanted())
		return;
	struct truth_line l = truth_start("instance");
	truth_append(&l, "\t%llu\t%zu\t%zu\t%llu\t%p", ++number, g->node_count, g->edge_count, (unsigned long long)e->flags, (const void *)e);
	truth_end(&l);
	instance_body(number, g, "");
}
