/*
 * library.c: libraries, which belong to no context, and their kernels.
 *
 * In: images. Out: kernel handles, and a module in each context that needs one. Fails: as image.c and module.c.
 */
#include "calls/calls.h"

#include <stdlib.h>
#include <string.h>

static CUresult load(struct call *c, CUlibrary *library, const void *code, size_t size, unsigned nopt, const CUjit_option *opt,
                     void *const *val)
{
	if (!library || !code || (nopt && (!opt || !val)))
		return CUDA_ERROR_INVALID_VALUE;
	struct image found;
	struct ptx_module *ptx;
	/* Drivers that load eagerly load it as cuModuleLoadData does. */
	CUresult r = capture_unsafe(c);
	if (r || (r = image_find(c, code, size, &found)))
		return r;
	if ((r = image_parse(&found, (int)nopt, opt, val, &ptx))) {
		image_drop(&found);
		return r;
	}
	struct library *lib = xalloc(sizeof(*lib));
	lib->text = found.owned ? found.owned : xdup(found.data, found.len);
	lib->text_len = found.len;
	lib->idle = found.idle;
	lib->ptx = ptx;
	lib->kernel_count = ptx_kernel_count(ptx);
	lib->kernels = xalloc(lib->kernel_count * sizeof(*lib->kernels));
	for (size_t i = 0; i < lib->kernel_count; i++) {
		lib->kernels[i].library = lib;
		lib->kernels[i].index = i;
		attributes_reset(&lib->kernels[i].attrs);
		object_add(&lib->kernels[i], OBJECT_KERNEL);
	}
	object_add(lib, OBJECT_LIBRARY);
	*library = (CUlibrary)lib;
	call_detail(c, "library=%p\tkernels=%zu", (void *)lib, lib->kernel_count);
	return CUDA_SUCCESS;
}

/* The options name tables of the program and promises about the image's lifetime: no option changes the loaded code. */
CUresult sim_cuLibraryLoadData(struct call *c, CUlibrary *library, const void *code, CUjit_option *jit_options,
                               void **jit_options_values, unsigned int num_jit_options, CUlibraryOption *library_options,
                               void **library_option_values, unsigned int num_library_options)
{
	(void)library_option_values;
	if (num_library_options && !library_options)
		return CUDA_ERROR_INVALID_VALUE;
	return load(c, library, code, IMAGE_SIZE_UNKNOWN, num_jit_options, jit_options, jit_options_values);
}

CUresult sim_cuLibraryLoadFromFile(struct call *c, CUlibrary *library, const char *file_name, CUjit_option *jit_options,
                                   void **jit_options_values, unsigned int num_jit_options, CUlibraryOption *library_options,
                                   void **library_option_values, unsigned int num_library_options)
{
	(void)library_option_values;
	if (!file_name || (num_library_options && !library_options))
		return CUDA_ERROR_INVALID_VALUE;
	char *data;
	size_t size;
	CUresult r = image_from_file(c, file_name, &data, &size);
	if (r)
		return r;
	r = load(c, library, data, size, num_jit_options, jit_options, jit_options_values);
	free(data);
	return r;
}

static CUresult resolve(CUlibrary handle, struct library **lib)
{
	if (!object_live(handle, OBJECT_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	*lib = (struct library *)handle;
	return CUDA_SUCCESS;
}

CUresult sim_cuLibraryUnload(struct call *c, CUlibrary handle)
{
	struct library *lib;
	CUresult r = resolve(handle, &lib);
	if (r)
		return r;
	for (size_t i = 0; i < lib->module_count; i++)
		queue_run_all(lib->modules[i]->ctx);
	(void)c;
	while (lib->module_count)
		module_unload(lib->modules[0]);
	for (size_t i = 0; i < lib->kernel_count; i++)
		object_remove(&lib->kernels[i]);
	object_remove(lib);
	ptx_free(lib->ptx);
	free(lib->kernels);
	free(lib->modules);
	free(lib->text);
	free(lib);
	return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetKernel(struct call *c, CUkernel *kernel, CUlibrary handle, const char *name)
{
	struct library *lib;
	CUresult r = resolve(handle, &lib);
	if (r)
		return r;
	if (!kernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	call_detail(c, "kernel=%s", name);
	for (size_t i = 0; i < lib->kernel_count; i++)
		if (strcmp(ptx_kernel_name(ptx_kernel_at(lib->ptx, i)), name) == 0) {
			*kernel = (CUkernel)&lib->kernels[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult sim_cuLibraryGetKernelCount(struct call *c, unsigned int *count, CUlibrary handle)
{
	(void)c;
	struct library *lib;
	CUresult r = resolve(handle, &lib);
	if (r)
		return r;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (unsigned)lib->kernel_count;
	return CUDA_SUCCESS;
}

CUresult sim_cuLibraryEnumerateKernels(struct call *c, CUkernel *kernels, unsigned int count, CUlibrary handle)
{
	(void)c;
	struct library *lib;
	CUresult r = resolve(handle, &lib);
	if (r)
		return r;
	if (!kernels)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && i < lib->kernel_count; i++)
		kernels[i] = (CUkernel)&lib->kernels[i];
	return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetModule(struct call *c, CUmodule *module, CUlibrary handle)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct library *lib;
	struct module *m;
	if ((r = resolve(handle, &lib)))
		return r;
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	if ((r = library_module(c->ctx, lib, &m)))
		return r;
	*module = (CUmodule)m;
	call_detail(c, "module=%p", (void *)m);
	return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetGlobal(struct call *c, CUdeviceptr *ptr, size_t *bytes, CUlibrary handle, const char *name)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct library *lib;
	struct module *m;
	if ((r = resolve(handle, &lib)))
		return r;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	return (r = library_module(c->ctx, lib, &m)) ? r : module_global(m, name, ptr, bytes);
}

static CUresult resolve_kernel(CUkernel handle, struct kernel **k)
{
	if (!object_live(handle, OBJECT_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	*k = (struct kernel *)handle;
	return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetFunction(struct call *c, CUfunction *func, CUkernel handle)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct kernel *k;
	struct function *f;
	if ((r = resolve_kernel(handle, &k)))
		return r;
	if (!func)
		return CUDA_ERROR_INVALID_VALUE;
	if ((r = function_resolve(c->ctx, handle, &f)))
		return r;
	function_load(f);
	*func = (CUfunction)f;
	call_detail(c, "kernel=%s", function_name(f));
	return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetLibrary(struct call *c, CUlibrary *lib, CUkernel handle)
{
	(void)c;
	struct kernel *k;
	CUresult r = resolve_kernel(handle, &k);
	if (r)
		return r;
	if (!lib)
		return CUDA_ERROR_INVALID_VALUE;
	*lib = (CUlibrary)k->library;
	return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetName(struct call *c, const char **name, CUkernel handle)
{
	(void)c;
	struct kernel *k;
	CUresult r = resolve_kernel(handle, &k);
	if (r)
		return r;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = ptx_kernel_name(ptx_kernel_at(k->library->ptx, k->index));
	return CUDA_SUCCESS;
}
