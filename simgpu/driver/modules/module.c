/*
 * module.c: modules and their variables.
 *
 * In: images. Out: modules with one function a kernel, variables placed in device memory. Fails: as image.c; NOT_FOUND for
 * an unknown name; OUT_OF_MEMORY if variables do not fit.
 */
#include "modules/modules.h"

#include <stdlib.h>
#include <string.h>

static CUresult place_globals(struct module *m)
{
	size_t n = ptx_global_count(m->ptx);
	m->globals = xalloc(n * sizeof(*m->globals));
	for (size_t i = 0; i < n; i++) {
		const struct ptx_global *g = ptx_global_at(m->ptx, i);
		CUresult r = allocation_new(m->ctx, ALLOC_GLOBAL, g->size ? g->size : 1, 0, &m->globals[i]);
		if (r)
			return r;
		ptx_bind(m->ptx, i, m->globals[i]->base);
	}
	for (size_t i = 0; i < n; i++)
		ptx_init_global(m->ptx, i, (void *)(uintptr_t)m->globals[i]->base);
	return CUDA_SUCCESS;
}

static void drop_globals(struct module *m)
{
	if (!m->globals)
		return;
	for (size_t i = 0; i < ptx_global_count(m->ptx); i++)
		if (m->globals[i])
			allocation_end(m->globals[i]);
	free(m->globals);
	m->globals = NULL;
}

/* Takes over ptx, also if it fails. */
struct module *module_new(struct context *ctx, struct ptx_module *ptx, uint64_t image, struct library *lib, CUresult *r)
{
	struct module *m = xalloc(sizeof(*m));
	m->image = image;
	m->ctx = ctx;
	m->ptx = ptx;
	m->library = lib;
	m->refs = 1;
	m->function_count = ptx_kernel_count(ptx);
	m->functions = xalloc(m->function_count * sizeof(*m->functions));
	for (size_t i = 0; i < m->function_count; i++) {
		struct function *f = &m->functions[i];
		f->module = m;
		f->code = ptx_kernel_at(ptx, i);
		f->kernel = lib ? &lib->kernels[i] : NULL;
		attributes_reset(&f->attrs);
		object_add(f, OBJECT_FUNCTION);
	}
	object_add(m, OBJECT_MODULE);
	*r = place_globals(m);
	if (*r) {
		module_unload(m);
		return NULL;
	}
	return m;
}

/* The handles end now; the code stays until no graph refers to it. */
void module_unload(struct module *m)
{
	if (m->library)
		for (size_t i = 0; i < m->library->module_count; i++)
			if (m->library->modules[i] == m)
				m->library->modules[i] = m->library->modules[--m->library->module_count];
	for (size_t i = 0; i < m->function_count; i++)
		object_remove(&m->functions[i]);
	object_remove(m);
	m->unloaded = true;
	drop_globals(m);
	module_release(m);
}

void module_release(struct module *m)
{
	if (--m->refs)
		return;
	ptx_free(m->ptx);
	free(m->functions);
	free(m);
}

CUresult module_global(struct module *m, const char *name, CUdeviceptr *addr, size_t *size)
{
	for (size_t i = 0; i < ptx_global_count(m->ptx); i++) {
		const struct ptx_global *g = ptx_global_at(m->ptx, i);
		if (strcmp(g->name, name))
			continue;
		if (addr)
			*addr = m->globals[i]->base;
		if (size)
			*size = g->size;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult library_module(struct context *ctx, struct library *lib, struct module **out)
{
	for (size_t i = 0; i < lib->module_count; i++)
		if (lib->modules[i]->ctx == ctx) {
			*out = lib->modules[i];
			return CUDA_SUCCESS;
		}
	struct ptx_module *ptx;
	CUresult r = image_parse(&(struct image){lib->text, lib->text_len, NULL, lib->idle}, 0, NULL, NULL, &ptx);
	if (r)
		return r;
	struct module *m = module_new(ctx, ptx, image_hash(lib->text, lib->text_len), lib, &r);
	if (!m)
		return r;
	lib->modules = grow(lib->modules, &lib->module_cap, lib->module_count + 1, sizeof(struct module *));
	lib->modules[lib->module_count++] = *out = m;
	return CUDA_SUCCESS;
}
