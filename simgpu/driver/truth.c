/*
 * truth.c: ground truth for tests: every allocation and free in order, every node at the moment of its capture, and every
 * graph as it was instantiated, however it came to be.
 *
 * In: the driver's own view. Out: the file named by SIMGPU_TRUTH; format in README.md. It shares no code with anything that
 * records or restores graphs, so that a test can hold one against the other. Fails: like the logs.
 */
#include "sim.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd = -2;
static uint64_t sequence;

static bool enabled(void)
{
	if (fd != -2)
		return fd >= 0;
	const char *path = config_get()->truth;
	fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644) : -1;
	if (path && fd < 0)
		fprintf(stderr, "simgpu: open %s: no ground truth will be written\n", path);
	return fd >= 0;
}

struct line { char *text; size_t len, cap; };

__attribute__((format(printf, 2, 3))) static void append(struct line *l, const char *format, ...)
{
	char piece[512];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof(piece) ? (size_t)n : sizeof(piece) - 1;
	l->text = grow(l->text, &l->cap, l->len + len + 1, 1);
	memcpy(l->text + l->len, piece, len);
	l->len += len;
}

static void end_line(struct line *l)
{
	append(l, "\n");
	for (size_t at = 0; at < l->len;) {
		ssize_t n = write(fd, l->text + at, l->len - at);
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	free(l->text);
}

static struct line start_line(const char *kind)
{
	struct line l = {0};
	append(&l, "%s\t%llu", kind, (unsigned long long)sequence++);
	return l;
}

static const char *kind_name(enum alloc_kind kind)
{
	switch (kind) {
	case ALLOC_DEVICE: return "device";
	case ALLOC_MANAGED: return "managed";
	case ALLOC_PINNED: return "pinned";
	case ALLOC_REGISTERED: return "registered";
	case ALLOC_ASYNC: return "async";
	case ALLOC_POOL: return "pool";
	case ALLOC_VMM: return "vmm";
	case ALLOC_PITCH: return "pitch";
	case ALLOC_GLOBAL: return "global";
	}
	return "unknown";
}

void truth_alloc(const struct allocation *a)
{
	if (!enabled())
		return;
	struct line l = start_line("alloc");
	append(&l, "\t%lld\t%s\t0x%llx\t%llu", (long long)a->index, kind_name(a->kind), (unsigned long long)a->base,
	       (unsigned long long)a->size);
	end_line(&l);
}

void truth_free(const struct allocation *a)
{
	if (!enabled())
		return;
	struct line l = start_line("free");
	append(&l, "\t%lld\t0x%llx", (long long)a->index, (unsigned long long)a->base);
	end_line(&l);
}

static void kernel(struct line *l, const struct launch *k)
{
	const struct ptx_param *p;
	size_t n = ptx_kernel_params(k->function->code, &p);
	append(l, "\t%s\t%u,%u,%u\t%u,%u,%u\t%u\t", function_name(k->function), k->grid[0], k->grid[1], k->grid[2], k->block[0],
	       k->block[1], k->block[2], k->shared);
	for (size_t i = 0; i < n; i++) {
		append(l, "%s%u:", i ? "," : "", p[i].offset);
		for (uint32_t b = 0; b < p[i].size; b++)
			append(l, "%02x", k->params[p[i].offset + b]);
	}
}

static const char *const names[] = {"kernel", "memcpy", "memset"};

static void node_text(struct line *l, const struct node *n)
{
	if (n->type == CU_GRAPH_NODE_TYPE_KERNEL)
		kernel(l, n->launch);
	else if (n->type == CU_GRAPH_NODE_TYPE_MEMSET)
		append(l, "\t0x%llx\t%zu\t%u\t%u\t%zu\t%zu", (unsigned long long)n->fill.dst, n->fill.pitch, n->fill.value,
		       n->fill.elementSize, n->fill.width, n->fill.height);
	else
		append(l, "\t0x%llx\t0x%llx\t%zu\t%zu\t%zu",
		       (unsigned long long)(n->copy.dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)n->copy.dstHost
		                                                                         : n->copy.dstDevice),
		       (unsigned long long)(n->copy.srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)n->copy.srcHost
		                                                                         : n->copy.srcDevice),
		       n->copy.WidthInBytes, n->copy.Height, n->copy.Depth);
}

void truth_node(const struct capture *cap, const struct node *n)
{
	if (!enabled() || n->type > CU_GRAPH_NODE_TYPE_MEMSET)
		return;
	struct line l = start_line(names[n->type]);
	append(&l, "\t%llu\t%zu", (unsigned long long)cap->id, n->slot);
	node_text(&l, n);
	end_line(&l);
}

static void instance_node(unsigned long long number, const struct node *n)
{
	struct line l = start_line("instance-node");
	append(&l, "\t%llu\t%zu", number, n->slot);
	if (n->type > CU_GRAPH_NODE_TYPE_MEMSET)
		append(&l, "\ttype %d", (int)n->type);
	else {
		append(&l, "\t%s", names[n->type]);
		node_text(&l, n);
	}
	for (unsigned i = 0; n->type == CU_GRAPH_NODE_TYPE_KERNEL && i < NODE_ATTRIBUTES; i++) {
		if (!(n->attr_set & 1u << i))
			continue;
		append(&l, "\tattr %u=", i);
		for (size_t b = 0; b < sizeof(n->attrs[i]); b++)
			append(&l, "%02x", (unsigned char)n->attrs[i].pad[b]);
	}
	int shared;
	if (n->type == CU_GRAPH_NODE_TYPE_KERNEL &&
	    function_attribute(n->launch->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &shared) == 0)
		append(&l, "\tmax_dynamic_shared=%d", shared);
	end_line(&l);
}

void truth_instance(const struct graph *g, const struct exec *e)
{
	static unsigned long long number;
	if (!enabled())
		return;
	struct line l = start_line("instance");
	append(&l, "\t%llu\t%zu\t%zu\t%llu\t%p", ++number, g->node_count, g->edge_count, (unsigned long long)e->flags, (const void *)e);
	end_line(&l);
	for (size_t i = 0; i < g->node_count; i++)
		instance_node(number, g->nodes[i]);
	for (size_t i = 0; i < g->edge_count; i++) {
		const struct edge *e = g->edges[i];
		l = start_line("instance-edge");
		append(&l, "\t%llu\t%zu\t%zu\t%u,%u,%u", number, e->from->slot, e->to->slot, e->data.from_port, e->data.to_port,
		       e->data.type);
		end_line(&l);
	}
}
