/*
 * module.c: the calls of modules.
 *
 * In: images and names. Out: handles. Fails: as image.c; NOT_FOUND for an unknown name; OUT_OF_MEMORY if variables do not fit.
 */
#include "calls/calls.h"

#include <stdlib.h>
#include <string.h>

static CUresult load(struct call *c, CUmodule *module, const void *image, size_t size, unsigned nopt, const CUjit_option *opt,
                     void *const *val)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!module || !image || (nopt && (!opt || !val)))
		return CUDA_ERROR_INVALID_VALUE;
	/* Loading may need to allocate and to wait. */
	if ((r = capture_unsafe(c)))
		return r;
	struct image found;
	struct ptx_module *ptx;
	if ((r = image_find(c, image, size, &found)))
		return r;
	r = image_parse(&found, (int)nopt, opt, val, &ptx);
	uint64_t hash = image_hash(found.data, found.len);
	image_drop(&found);
	if (r)
		return r;
	struct module *m = module_new(c->ctx, ptx, hash, NULL, &r);
	if (!m)
		return r;
	*module = (CUmodule)m;
	call_detail(c, "module=%p\tkernels=%zu", (void *)m, m->function_count);
	return CUDA_SUCCESS;
}

CUresult sim_cuModuleLoadData(struct call *c, CUmodule *module, const void *image)
{
	return load(c, module, image, IMAGE_SIZE_UNKNOWN, 0, NULL, NULL);
}

CUresult sim_cuModuleLoadDataEx(struct call *c, CUmodule *module, const void *image, unsigned int num_options,
                                CUjit_option *options, void **option_values)
{
	return load(c, module, image, IMAGE_SIZE_UNKNOWN, num_options, options, option_values);
}

CUresult sim_cuModuleLoadFatBinary(struct call *c, CUmodule *module, const void *fat_cubin)
{
	return load(c, module, fat_cubin, IMAGE_SIZE_UNKNOWN, 0, NULL, NULL);
}

CUresult sim_cuModuleLoad(struct call *c, CUmodule *module, const char *fname)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!fname)
		return CUDA_ERROR_INVALID_VALUE;
	char *data;
	size_t size;
	if ((r = image_from_file(c, fname, &data, &size)))
		return r;
	r = load(c, module, data, size, 0, NULL, NULL);
	free(data);
	return r;
}

static CUresult enter(struct call *c, CUmodule handle, struct module **m)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!object_live(handle, OBJECT_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	*m = (struct module *)handle;
	return CUDA_SUCCESS;
}

CUresult sim_cuModuleUnload(struct call *c, CUmodule handle)
{
	struct module *m;
	CUresult r = enter(c, handle, &m);
	if (r)
		return r;
	if (m->library) /* a library's module ends with the library */
		return CUDA_ERROR_NOT_PERMITTED;
	if ((r = capture_unsafe(c)) || (r = queue_run_all(c->ctx)))
		return r;
	module_unload(m);
	return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetLoadingMode(struct call *c, CUmoduleLoadingMode *mode)
{
	(void)c;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	const char *v = getenv("CUDA_MODULE_LOADING");
	*mode = v && strcmp(v, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetFunction(struct call *c, CUfunction *func, CUmodule handle, const char *name)
{
	struct module *m;
	CUresult r = enter(c, handle, &m);
	if (r)
		return r;
	if (!func || !name)
		return CUDA_ERROR_INVALID_VALUE;
	call_detail(c, "kernel=%s", name);
	for (size_t i = 0; i < m->function_count; i++)
		if (strcmp(function_name(&m->functions[i]), name) == 0) {
			function_load(&m->functions[i]);
			*func = (CUfunction)&m->functions[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult sim_cuModuleGetFunctionCount(struct call *c, unsigned int *count, CUmodule handle)
{
	struct module *m;
	CUresult r = enter(c, handle, &m);
	if (r)
		return r;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (unsigned)m->function_count;
	return CUDA_SUCCESS;
}

/* As lazily as a driver may: the functions are not loaded until they are launched or loaded explicitly. */
CUresult sim_cuModuleEnumerateFunctions(struct call *c, CUfunction *funcs, unsigned int count, CUmodule handle)
{
	struct module *m;
	CUresult r = enter(c, handle, &m);
	if (r)
		return r;
	if (!funcs)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && i < m->function_count; i++)
		funcs[i] = (CUfunction)&m->functions[i];
	return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetGlobal_v2(struct call *c, CUdeviceptr *ptr, size_t *bytes, CUmodule handle, const char *name)
{
	struct module *m;
	CUresult r = enter(c, handle, &m);
	if (r)
		return r;
	return name ? module_global(m, name, ptr, bytes) : CUDA_ERROR_INVALID_VALUE;
}
