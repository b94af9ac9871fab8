/*
 * modules.h: from an image to functions and variables.
 */
#ifndef SIMGPU_MODULES_H
#define SIMGPU_MODULES_H

#include "memory/memory.h"

/* ---- module.c, function.c ---------------------------------------------------------------------------- */

struct attributes {
	int max_dynamic_shared, carveout, non_portable_cluster; /* -2: not set */
	int cache_config;
};

struct function {
	struct module *module;
	const struct ptx_kernel *code;
	struct attributes attrs;
	bool loaded;
	struct kernel *kernel; /* the library's kernel behind it, or NULL */
};

struct module {
	struct context *ctx;
	struct library *library; /* NULL: loaded as a module */
	struct ptx_module *ptx;
	uint64_t image;             /* image_hash */
	struct function *functions; /* one a kernel of ptx, in its order */
	size_t function_count;
	struct allocation **globals; /* one a variable of ptx */
	unsigned refs;               /* graphs and queued launches that still use its code */
	bool unloaded;
};

struct kernel {
	struct library *library;
	size_t index;
	struct attributes attrs;
};

struct library {
	char *text; /* PTX or machine code, for a module in each context that asks */
	size_t text_len;
	bool idle; /* as of its image */
	struct ptx_module *ptx;
	struct kernel *kernels;
	size_t kernel_count;
	struct module **modules; /* one a context */
	size_t module_count, module_cap;
};

/* PTX text or machine code; owned is set if it had to be decompressed; idle: its kernels have no effect. */
struct image { const char *data; size_t len; char *owned; bool idle; };
#define IMAGE_SIZE_UNKNOWN SIZE_MAX /* of an image that a program has in memory */
CUresult image_find(struct call *c, const void *image, size_t size, struct image *out);
void image_drop(struct image *image);
CUresult fatbin_pick(struct call *c, const void *container, size_t size, struct image *out);
bool lz4_decode(const void *src, size_t src_len, void *dst, size_t dst_len);
CUresult image_from_file(struct call *c, const char *path, char **data, size_t *size);
CUresult image_parse(const struct image *image, int nopt, const CUjit_option *opt, void *const *val, struct ptx_module **out);
/* Why this PTX may not be interpreted, or NULL (origin.c); packed: it comes out of a fat binary. */
const char *origin_refuses(const char *text, size_t len, bool packed);
/* Makes the launches of all its kernels no-ops. */
void origin_idle(struct ptx_module *m);
/* FNV-1a, 64 bits: says in logs which code it was. */
uint64_t image_hash(const char *text, size_t len);
struct module *module_new(struct context *ctx, struct ptx_module *ptx, uint64_t image, struct library *lib, CUresult *r);
void module_unload(struct module *m);
void module_release(struct module *m); /* drops one of refs */
CUresult module_global(struct module *m, const char *name, CUdeviceptr *addr, size_t *size);
CUresult library_module(struct context *ctx, struct library *lib, struct module **out);
void attributes_reset(struct attributes *a);

/* The function behind a CUfunction, which may be a CUkernel in its place. */
CUresult function_resolve(struct context *ctx, const void *handle, struct function **out);
void function_load(struct function *f); /* its code is on the device from now on */
const char *function_name(const struct function *f);
int function_attribute(const struct function *f, CUfunction_attribute attr, int *value); /* -1: not an attribute */
int occupancy(const struct function *f, uint64_t threads, uint64_t dynamic_shared);

#endif
