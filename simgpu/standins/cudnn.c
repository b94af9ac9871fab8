/*
 * cudnn.c: the one operation graph of cuDNN that PyTorch's convolutions build, as a kernel without a convolution.
 *
 * In: the library's public graph interface (descriptors with attributes). Out: one kernel launch for each execution of a plan.
 * The kernel gets the addresses of the variant pack and marks the result's first element. Fails: NOT_SUPPORTED, with a
 * line on standard error, for every descriptor and attribute but those of a forward convolution; BAD_PARAM for incomplete
 * descriptors.
 *
 * The library reports version 0, so that programs that ask take their other paths.
 */
#include "launch.h"
#include "stub.h"

#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_INITIALIZED = 1001, BAD_PARAM = 2000, NOT_SUPPORTED = 3000, ALLOCATION_FAILED = 4000, EXECUTION_FAILED = 5000 };

/* Descriptors, attributes and their types have the numbers of the public interface. */
enum kind { CONVOLUTION = 1, ENGINE, ENGINECFG, ENGINEHEUR, PLAN, KNOB_CHOICE = 7, CONVOLUTION_FORWARD = 10, GRAPH = 15, PACK, TENSOR };
enum { HANDLE_TYPE = 0, DATA_TYPE, BOOLEAN, INT64, FLOAT, DOUBLE, VOID_PTR, CONVOLUTION_MODE, HEUR_MODE, DESCRIPTOR = 15 };
enum {
	HEUR_GRAPH = 201, HEUR_RESULTS = 202, CFG_ENGINE = 300, PLAN_CFG = 401, PLAN_WORKSPACE = 402, FORWARD_W = 703, FORWARD_X = 704,
	FORWARD_Y = 705, GRAPH_OPS = 801, TENSOR_TYPE = 901, TENSOR_UID = 906, PACK_UIDS = 1000, PACK_POINTERS = 1001,
	PACK_WORKSPACE = 1003, ENGINE_GRAPH = 1300, ENGINE_INDEX = 1301
};
enum { MAX_ATTRIBUTES = 16, WORKSPACE = 1 << 16 };

struct attribute {
	int name, type;
	int64_t count;
	void *values;
};

/* A descriptor lives until its creator and all descriptors that name it have released it: plans outlive the graph from which they
 * are made. */
struct descriptor {
	enum kind kind;
	int owners, attributes;
	struct attribute attribute[MAX_ATTRIBUTES];
};

struct handle {
	void *stream;
};

static size_t width(int type)
{
	switch (type) {
	case BOOLEAN: return 1;
	case DATA_TYPE: case CONVOLUTION_MODE: case HEUR_MODE: case FLOAT: return 4;
	case HANDLE_TYPE: case INT64: case DOUBLE: case VOID_PTR: case DESCRIPTOR: return 8;
	default: return 0;
	}
}

static struct attribute *find(const struct descriptor *d, int name)
{
	for (int i = 0; d && i < d->attributes; i++)
		if (d->attribute[i].name == name)
			return (struct attribute *)&d->attribute[i];
	return NULL;
}

/* Returns the value at an index, or NULL if the attribute is missing, shorter or of another type. */
static const void *value(const struct descriptor *d, int name, int type, int64_t i)
{
	const struct attribute *a = find(d, name);
	return a && a->type == type && i < a->count ? (const char *)a->values + (size_t)i * width(type) : NULL;
}

static struct descriptor *linked(const struct descriptor *d, int name, int64_t i)
{
	struct descriptor *const *p = value(d, name, DESCRIPTOR, i);
	return p ? *p : NULL;
}

static void drop(struct descriptor *d)
{
	if (!d || --d->owners)
		return;
	for (int i = 0; i < d->attributes; i++) {
		for (int64_t k = 0; d->attribute[i].type == DESCRIPTOR && k < d->attribute[i].count; k++)
			drop(((struct descriptor **)d->attribute[i].values)[k]);
		free(d->attribute[i].values);
	}
	free(d);
}

EXPORT size_t cudnnGetVersion(void) { return 0; }
EXPORT size_t cudnnGetCudartVersion(void) { return 0; }

EXPORT int cudnnGetProperty(int which, int *v)
{
	(void)which; /* major, minor, patch level */
	if (!v)
		return BAD_PARAM;
	*v = 0;
	return SUCCESS;
}

EXPORT int cudnnCreate(struct handle **h)
{
	if (!h)
		return BAD_PARAM;
	if (launch_ready())
		return NOT_INITIALIZED;
	*h = calloc(1, sizeof(**h));
	return *h ? SUCCESS : ALLOCATION_FAILED;
}

EXPORT int cudnnSetStream(struct handle *h, void *stream)
{
	if (!h)
		return BAD_PARAM;
	h->stream = stream;
	return SUCCESS;
}

EXPORT int cudnnGetStream(struct handle *h, void **stream)
{
	if (!h || !stream)
		return BAD_PARAM;
	*stream = h->stream;
	return SUCCESS;
}

EXPORT int cudnnBackendCreateDescriptor(int kind, struct descriptor **out)
{
	switch (kind) {
	case CONVOLUTION: case ENGINE: case ENGINECFG: case ENGINEHEUR: case PLAN: case KNOB_CHOICE: case CONVOLUTION_FORWARD: case GRAPH: case PACK: case TENSOR:
		break;
	default:
		fprintf(stderr, "stub: cuDNN descriptor %d is not provided\n", kind);
		return NOT_SUPPORTED;
	}
	if (!out)
		return BAD_PARAM;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return ALLOCATION_FAILED;
	(*out)->kind = kind;
	(*out)->owners = 1;
	return SUCCESS;
}

EXPORT int cudnnBackendDestroyDescriptor(struct descriptor *d)
{
	drop(d);
	return SUCCESS;
}

EXPORT int cudnnBackendSetAttribute(struct descriptor *d, int name, int type, int64_t count, const void *values)
{
	if (!d || count < 0 || (count && !values) || find(d, name))
		return BAD_PARAM;
	if (!width(type) || d->attributes == MAX_ATTRIBUTES) {
		fprintf(stderr, "stub: cuDNN attribute %d of type %d is not provided\n", name, type);
		return NOT_SUPPORTED;
	}
	size_t bytes = (size_t)count * width(type);
	void *copy = malloc(bytes + 1);
	if (!copy)
		return ALLOCATION_FAILED;
	if (bytes)
		memcpy(copy, values, bytes);
	for (int64_t i = 0; type == DESCRIPTOR && i < count; i++)
		((struct descriptor **)copy)[i]->owners++;
	d->attribute[d->attributes++] = (struct attribute){name, type, count, copy};
	return SUCCESS;
}

/* Makes the caller's descriptor the engine, or its configuration, for the object that `from` names. */
static int link_to(struct descriptor *d, enum kind kind, int name, struct descriptor *from)
{
	return d && d->kind == kind && from ? cudnnBackendSetAttribute(d, name, DESCRIPTOR, 1, &from) : BAD_PARAM;
}

/* There is one engine. It has no knobs and no notes. */
EXPORT int cudnnBackendGetAttribute(struct descriptor *d, int name, int type, int64_t wanted, int64_t *count, void *values)
{
	if (!d)
		return BAD_PARAM;
	struct descriptor *given = values && type == DESCRIPTOR && wanted > 0 ? *(struct descriptor **)values : NULL;
	const struct attribute *a = find(d, name);
	int64_t one = 1, bytes = WORKSPACE, index = 0;
	if (d->kind == ENGINEHEUR && name == HEUR_RESULTS) {
		if (count)
			*count = one;
		return given ? link_to(given, ENGINECFG, ENGINE_GRAPH, linked(d, HEUR_GRAPH, 0)) : SUCCESS;
	}
	if (d->kind == ENGINECFG && name == CFG_ENGINE) {
		struct descriptor *engine = linked(d, CFG_ENGINE, 0);
		struct descriptor *graph = engine ? linked(engine, ENGINE_GRAPH, 0) : linked(d, ENGINE_GRAPH, 0);
		if (count)
			*count = one;
		return given ? link_to(given, ENGINE, ENGINE_GRAPH, graph) : SUCCESS;
	}
	const void *from = a ? a->values : NULL;
	if (d->kind == PLAN && name == PLAN_WORKSPACE)
		from = &bytes;
	else if (d->kind == ENGINE && name == ENGINE_INDEX)
		from = &index;
	int64_t n = a ? a->count : from ? one : 0;
	if (count)
		*count = n;
	if (values && from && wanted > 0)
		memcpy(values, from, (size_t)(n < wanted ? n : wanted) * width(type));
	return SUCCESS;
}

/* Returns the one operation of the graph behind a plan, or NULL. */
static const struct descriptor *convolution(const struct descriptor *plan)
{
	const struct descriptor *cfg = linked(plan, PLAN_CFG, 0), *engine = linked(cfg, CFG_ENGINE, 0);
	const struct descriptor *graph = linked(engine ? engine : cfg, ENGINE_GRAPH, 0), *op = linked(graph, GRAPH_OPS, 0);
	return op && op->kind == CONVOLUTION_FORWARD && !linked(graph, GRAPH_OPS, 1) ? op : NULL;
}

EXPORT int cudnnBackendFinalize(struct descriptor *d)
{
	if (!d || (d->kind == PLAN && !convolution(d)))
		return BAD_PARAM;
	return SUCCESS;
}

static const char *element_name(const struct descriptor *tensor)
{
	enum { F32 = 0, F64 = 1, F16 = 2, BF16 = 9 };
	const int *type = value(tensor, TENSOR_TYPE, DATA_TYPE, 0);
	return !type ? NULL : *type == F32 ? "f32" : *type == F64 ? "f64" : *type == F16 ? "f16" : *type == BF16 ? "bf16" : NULL;
}

/* Returns the address of a tensor in the variant pack. */
static uint64_t address(const struct descriptor *pack, const struct descriptor *tensor)
{
	const int64_t *uid = value(tensor, TENSOR_UID, INT64, 0), *at;
	const uint64_t *pointer;
	for (int64_t i = 0; uid && (at = value(pack, PACK_UIDS, INT64, i)); i++)
		if (*at == *uid && (pointer = value(pack, PACK_POINTERS, VOID_PTR, i)))
			return *pointer;
	return 0;
}

#define CONV(element) \
	KERNEL("medusa_conv_fprop_" element, ".param .u64 x, .param .u64 w, .param .u64 y, .param .u64 workspace", \
	       "\t.reg .pred %p;\n\t.reg .b16 %one;\n\t.reg .b32 %r;\n\t.reg .b64 %y;\n" \
	       "\tmov.u32 %r, %tid.x;\n\tsetp.ne.u32 %p, %r, 0;\n\t@%p ret;\n" \
	       "\tld.param.u64 %y, [y];\n\tmov.u16 %one, 15360;\n\tst.global.u16 [%y], %one;\n")
static struct image convolutions = {.text = IMAGE_HEAD CONV("f64") CONV("f32") CONV("f16") CONV("bf16")};

EXPORT int cudnnBackendExecute(struct handle *h, const struct descriptor *plan, const struct descriptor *pack)
{
	const struct descriptor *op = plan ? convolution(plan) : NULL;
	const uint64_t *scratch = value(pack, PACK_WORKSPACE, VOID_PTR, 0);
	if (!h || !op || !scratch)
		return BAD_PARAM;
	uint64_t x = address(pack, linked(op, FORWARD_X, 0)), w = address(pack, linked(op, FORWARD_W, 0));
	uint64_t y = address(pack, linked(op, FORWARD_Y, 0)), workspace = *scratch;
	const char *element = element_name(linked(op, FORWARD_Y, 0));
	if (!x || !w || !y || !element)
		return BAD_PARAM;
	char name[64];
	snprintf(name, sizeof(name), "medusa_conv_fprop_%s", element);
	void *params[] = {&x, &w, &y, &workspace};
	return launch_kernel(&convolutions, name, (uint32_t[]){1, 1, 1}, 128, h->stream, params) ? EXECUTION_FAILED : SUCCESS;
}
