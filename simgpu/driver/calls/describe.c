/*
 * describe.c: an executable graph as text, for tests that compare graphs of two processes.
 *
 * In: an executable graph. Out: one line a node with everything but addresses and parameters, sorted. Wrong addresses and
 * parameters show in the results of the graph. The base of an access-policy window is an address that no result depends on, so it
 * is written.
 */
#include "calls/calls.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct text {
	char *out;
	size_t cap, len; /* len counts on behind the end of the room */
};

__attribute__((format(printf, 2, 3))) static void print(struct text *t, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	size_t room = t->len < t->cap ? t->cap - t->len : 0;
	int n = vsnprintf(room ? t->out + t->len : NULL, room, format, args);
	va_end(args);
	t->len += n > 0 ? (size_t)n : 0;
}

#define WINDOW " window=0x" /* before the base of an access-policy window */
#define ALIGNMENT 256 /* of every allocation: no other one reaches into so many bytes behind its start */

/* The parameters that point to the window's memory tell which it is, wherever this process has it. */
static void window(struct text *t, const struct launch *l, uint64_t base)
{
	const struct ptx_param *p;
	size_t n = ptx_kernel_params(l->function->code, &p);
	print(t, WINDOW "%llx", allocation_at(base) ? (unsigned long long)base : 0);
	for (size_t i = 0; i < n; i++)
		for (uint32_t o = p[i].offset; o + 8 <= p[i].offset + p[i].size; o += 8) {
			uint64_t word;
			memcpy(&word, l->params + o, sizeof(word));
			if (word && base - word < ALIGNMENT)
				print(t, " parameter %u+%u", o, (unsigned)(base - word));
		}
}

static void attributes(struct text *t, const struct exec_node *x)
{
	for (unsigned id = 0; id < NODE_ATTRIBUTES; id++) {
		CUlaunchAttributeValue v = x->attrs[id], zero = {{0}};
		if (id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW && x->attr_set >> id & 1) {
			window(t, x->launch, (uintptr_t)v.accessPolicyWindow.base_ptr);
			memset(&v, 0, sizeof(void *));
		}
		if (!(x->attr_set >> id & 1) || !memcmp(&v, &zero, node_attribute_size(id)))
			continue;
		print(t, " attr%u=", id);
		for (size_t i = 0; i < node_attribute_size(id); i++)
			print(t, "%02x", ((const unsigned char *)&v)[i]);
	}
}

static void kernel(struct text *t, const struct exec_node *x)
{
	static const CUfunction_attribute of[] = {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
	                                          CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
	                                          CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED};
	const struct launch *l = x->launch;
	print(t, "kernel %s module=%016llx grid=%u,%u,%u block=%u,%u,%u shared=%u cooperative=%d", function_name(l->function), (unsigned long long)l->function->module->image, l->grid[0], l->grid[1],
	      l->grid[2], l->block[0], l->block[1], l->block[2], l->shared, l->cooperative);
	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		int own = 0;
		function_attribute(l->function, of[i], &own);
		print(t, " f%d=%d", (int)of[i], own);
	}
	attributes(t, x);
}

/* The pitch and height of memory that the driver knows. Pageable memory belongs to the restorer, whose rows may be closer. */
static void side(struct text *t, const char *which, uint64_t addr, size_t pitch, size_t height)
{
	if (allocation_at(addr))
		print(t, " %s %zu,%zu", which, pitch, height);
}

static char *body(const struct exec_body *b);

/* A node by itself, for the caller to free. */
static char *node(const struct exec_node *x)
{
	size_t cap = 1 << 16;
	struct text t = {xalloc(cap), cap, 0};
	char *inner;
	switch (x->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: kernel(&t, x); break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		print(&t, "memset value=%u elem=%u width=%zu height=%zu", x->fill.value, x->fill.elementSize, x->fill.width, x->fill.height);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		print(&t, "memcpy %zu,%zu,%zu", x->copy.WidthInBytes, x->copy.Height, x->copy.Depth);
		side(&t, "from", copy_source(&x->copy), x->copy.srcPitch, x->copy.srcHeight);
		side(&t, "to", copy_target(&x->copy), x->copy.dstPitch, x->copy.dstHeight);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		inner = body(x->child);
		print(&t, "child {\n%s}", inner);
		free(inner);
		break;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		print(&t, "%s event %lld", x->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? "wait for" : "record",
		      object_live(x->event, OBJECT_EVENT) ? (long long)x->event->number : -1);
		break;
	default: print(&t, "type %d", (int)x->type); break;
	}
	return t.out;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15u;
	return a ^ a >> 29;
}

/* Leaves out the bases of windows, which differ by process. */
static uint64_t sum_of(const char *text)
{
	uint64_t h = 1;
	while (*text)
		if (!strncmp(text, WINDOW, strlen(WINDOW)))
			text += strlen(WINDOW) + strspn(text + strlen(WINDOW), "0123456789abcdef");
		else
			h = mix(h, (unsigned char)*text++);
	return h;
}

static uint64_t sum_of_edge(CUgraphEdgeData d)
{
	return d.from_port | (uint64_t)d.to_port << 8 | (uint64_t)d.type << 16;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The nodes of a body, for the caller to free: each with sums of all that lies before and behind it. Edges lead to a sum, not to
 * a number, so that the order in which a graph was made does not show. */
static char *body(const struct exec_body *b)
{
	char **lines = xalloc((b->count + 1) * sizeof(*lines)), *out;
	uint64_t *before = xalloc((b->count + 1) * sizeof(*before)), *behind = xalloc((b->count + 1) * sizeof(*behind));
	size_t *order = xalloc((b->count + 1) * sizeof(*order)), *waits = xalloc((b->count + 1) * sizeof(*waits)), n = 0, length = 1;
	for (size_t i = 0; i < b->count; i++) {
		lines[i] = node(&b->nodes[i]);
		if (!(waits[i] = b->nodes[i].waits))
			order[n++] = i;
	}
	for (size_t at = 0; at < n; at++) {
		const struct exec_node *x = &b->nodes[order[at]];
		before[order[at]] = mix(before[order[at]], sum_of(lines[order[at]]));
		for (size_t k = 0; k < x->next_count; k++) {
			before[x->next[k]] += mix(before[order[at]], sum_of_edge(x->next_data[k]));
			if (!--waits[x->next[k]])
				order[n++] = x->next[k];
		}
	}
	for (size_t at = n; at-- > 0;) {
		const struct exec_node *x = &b->nodes[order[at]];
		for (size_t k = 0; k < x->next_count; k++)
			behind[order[at]] += mix(behind[x->next[k]], sum_of_edge(x->next_data[k]));
		behind[order[at]] = mix(behind[order[at]], sum_of(lines[order[at]]));
	}
	for (size_t i = 0; i < b->count; i++) {
		size_t cap = strlen(lines[i]) + 64;
		struct text t = {xalloc(cap), cap, 0};
		print(&t, "%016llx %016llx %s\n", (unsigned long long)before[i], (unsigned long long)behind[i], lines[i]);
		free(lines[i]);
		lines[i] = t.out;
		length += t.len;
	}
	qsort(lines, b->count, sizeof(*lines), compare);
	struct text t = {out = xalloc(length), length, 0};
	for (size_t i = 0; i < b->count; i++) {
		print(&t, "%s", lines[i]);
		free(lines[i]);
	}
	free(lines), free(before), free(behind), free(order), free(waits);
	return out;
}

/* Returns the length of the text; as much as fits is written to out, which ends in a zero byte. */
__attribute__((visibility("default"))) size_t simgpu_describe(CUgraphExec handle, char *out, size_t cap)
{
	struct exec *e;
	struct text t = {out, cap, 0};
	if (exec_resolve(handle, &e))
		return 0;
	char *nodes = body(e->body);
	print(&t, "flags=%llu\n%s", (unsigned long long)e->flags, nodes);
	free(nodes);
	return t.len;
}
