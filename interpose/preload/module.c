/* module.c: see module.h. */
#include "module.h"

#include <string.h>

#include "core.h"
#include "function.h"
#include "gaps.h"
#include "globals.h"
#include "image.h"
#include "medusa.h"
#include "sha256.h"
#include "table.h"
#include "watch.h"

struct loaded {
	uint32_t id;
	const void *in_dso; /* the image, if it is identified by its place */
	struct medusa_module public;
};

struct derived { /* a CUfunction that cuKernelGetFunction made from a kernel */
	uint64_t function;
	CUkernel kernel;
	uint32_t module;
};

/* All under the lock. */
static struct loaded *loaded;
static size_t n_loaded, loaded_cap;
static struct derived *derived;
static size_t n_derived, derived_cap;
static struct map derived_at;     /* function -> index */
static struct map by_handle;      /* module or library -> the trace's id */
static struct map images_written; /* first half of the hash -> 1 */
static uint32_t next_id;

uint32_t module_of_handle(uint64_t handle) { return (uint32_t)map_get(&by_handle, handle, UINT32_MAX); }

CUkernel module_kernel_of(CUfunction f)
{
	uint64_t i = map_get(&derived_at, (uintptr_t)f, UINT64_MAX);
	return i == UINT64_MAX ? NULL : derived[i].kernel;
}

CUkernel module_kernel_find(CUfunction f, const char *name)
{
	for (size_t i = 0;; i++) {
		CUlibrary library = NULL;
		CUkernel kernel;
		CUfunction own;
		bool more;
		core_lock();
		more = i < n_loaded;
		if (more && loaded[i].public.is_library && !loaded[i].public.unloaded)
			library = (CUlibrary)(uintptr_t)loaded[i].public.handle;
		core_unlock();
		if (!more)
			return NULL;
		/* Load only the kernel of that name, if it is not loaded yet. */
		if (library && REAL(cuLibraryGetKernel)(&kernel, library, name) == CUDA_SUCCESS &&
		    REAL(cuKernelGetFunction)(&own, kernel) == CUDA_SUCCESS && own == f)
			return kernel;
	}
}

uint32_t module_hidden(uint64_t handle)
{
	struct trace_writer *w;
	uint32_t id;
	core_lock();
	id = next_id++;
	map_put(&by_handle, handle, id);
	w = core_trace();
	if (w)
		trace_module(w, id, MODULE_HIDDEN, handle, (struct trace_bytes){0}, 0, NULL, NULL, 0, 0);
	core_unlock();
	return id;
}

/* Counts the options that can change the code. Options that only measure, log, cache or name the target do not count. Library
 * options only say where host tables are and whether the image stays in memory. */
static uint32_t changing(unsigned int n, const CUjit_option *options)
{
	enum { WALL_TIME = 2, INFO_LOG_BUFFER, INFO_LOG_SIZE, ERROR_LOG_BUFFER, ERROR_LOG_SIZE, TARGET_FROM_CONTEXT = 8, LOG_VERBOSE = 12, LINE_INFO, CACHE_MODE };
	uint32_t count = 0;
	for (unsigned int i = 0; i < n && options; i++)
		switch (options[i]) {
		case WALL_TIME: case INFO_LOG_BUFFER: case INFO_LOG_SIZE: case ERROR_LOG_BUFFER: case ERROR_LOG_SIZE:
		case TARGET_FROM_CONTEXT: case LOG_VERBOSE: case LINE_INFO: case CACHE_MODE: break;
		default: count++;
		}
	return count;
}

static void note_load(uint64_t handle, bool is_library, struct image *im, uint32_t options)
{
	struct trace_writer *w;
	struct loaded *l;
	struct trace_bytes hash = {im->sha256, im->in_dso ? 0 : sizeof im->sha256};
	uint64_t half;
	memcpy(&half, im->sha256, sizeof half);
	core_note_device();
	core_seal_at_exit();
	core_lock();
	if (table_grow((void **)&loaded, &loaded_cap, n_loaded + 1, sizeof *loaded)) {
		l = &loaded[n_loaded++];
		*l = (struct loaded){next_id++, im->in_dso ? im->data : NULL, {.handle = handle, .is_library = is_library, .image_size = im->size, .dso_offset = im->dso_offset}};
		memcpy(l->public.image_sha256, im->sha256, sizeof im->sha256);
		memcpy(l->public.build_id, im->build_id, sizeof im->build_id);
		map_put(&by_handle, handle, l->id);
		w = core_trace();
		if (w && !im->in_dso && !map_get(&images_written, half, 0)) {
			map_put(&images_written, half, 1);
			trace_image(w, hash, (struct trace_bytes){im->data, im->size});
		}
		if (w)
			trace_module(w, l->id, is_library ? MODULE_LIBRARY : MODULE_MODULE, handle, hash, im->size, im->dso, im->build_id,
				im->dso_offset, options);
	}
	core_unlock();
	image_unmap(im);
}

static void note_memory(void *handle, bool is_library, const void *code, uint32_t options)
{
	struct image im;
	image_in_memory(code, &im);
	note_load((uintptr_t)handle, is_library, &im, options);
}

static void note_file(void *handle, bool is_library, const char *path, const char *call, uint32_t options)
{
	struct image im;
	if (!image_in_file(path, &im))
		core_fault(call, "cannot read %s again", path);
	note_load((uintptr_t)handle, is_library, &im, options);
}

static void note_unload(void *handle)
{
	struct trace_writer *w;
	uint32_t id;
	core_lock();
	/* mutant: unload of a module that graphs refer to */
	watch_ended((uintptr_t)handle);
	id = module_of_handle((uintptr_t)handle);
	if (id != UINT32_MAX) {
		for (size_t i = 0; i < n_loaded; i++)
			if (loaded[i].id == id)
				loaded[i].public.unloaded = 1;
		for (size_t i = 0; i < n_derived; i++)
			if (derived[i].module == id && map_get(&derived_at, derived[i].function, UINT64_MAX) == i)
				map_remove(&derived_at, derived[i].function);
		for (size_t i = 0; i < by_handle.cap; i++) /* a library's module has a handle of its own */
			while (by_handle.keys[i] != 0 && by_handle.values[i] == id)
				map_remove(&by_handle, by_handle.keys[i]);
		function_forget_module(id);
		globals_forget_module(id);
		w = core_trace();
		if (w)
			trace_unload(w, id);
	}
	core_unlock();
}

/* Variables share pages with small allocations. Drivers place them 512 bytes apart at the closest. */
static void gap_before_variables(void)
{
	/* mutant: gaps before modules */
	gaps_before((struct gap_source){.kind = GAP_DEVICE}, 512);
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuModuleLoad)(module, fname);
	gap_before_variables();
	rc = REAL(cuModuleLoad)(module, fname);
	if (rc == CUDA_SUCCESS)
		note_file(*module, false, fname, "cuModuleLoad", 0);
	hook_leave();
	return rc;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuModuleLoadData)(module, image);
	gap_before_variables();
	rc = REAL(cuModuleLoadData)(module, image);
	if (rc == CUDA_SUCCESS)
		note_memory(*module, false, image, 0);
	hook_leave();
	return rc;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, CUjit_option *options, void **values)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuModuleLoadDataEx)(module, image, n, options, values);
	gap_before_variables();
	rc = REAL(cuModuleLoadDataEx)(module, image, n, options, values);
	if (rc == CUDA_SUCCESS)
		note_memory(*module, false, image, changing(n, options));
	hook_leave();
	return rc;
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fat_cubin)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuModuleLoadFatBinary)(module, fat_cubin);
	gap_before_variables();
	rc = REAL(cuModuleLoadFatBinary)(module, fat_cubin);
	if (rc == CUDA_SUCCESS)
		note_memory(*module, false, fat_cubin, 0);
	hook_leave();
	return rc;
}

CUresult cuModuleUnload(CUmodule module)
{
	if (hook_enter()) {
		note_unload(module);
		hook_leave();
	}
	return REAL(cuModuleUnload)(module);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options, void **jit_values, unsigned int n_jit,
			   CUlibraryOption *options, void **values, unsigned int n)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuLibraryLoadData)(library, code, jit_options, jit_values, n_jit, options, values, n);
	gap_before_variables();
	rc = REAL(cuLibraryLoadData)(library, code, jit_options, jit_values, n_jit, options, values, n);
	if (rc == CUDA_SUCCESS)
		note_memory(*library, true, code, changing(n_jit, jit_options));
	hook_leave();
	return rc;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit_options, void **jit_values, unsigned int n_jit,
			       CUlibraryOption *options, void **values, unsigned int n)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuLibraryLoadFromFile)(library, path, jit_options, jit_values, n_jit, options, values, n);
	gap_before_variables();
	rc = REAL(cuLibraryLoadFromFile)(library, path, jit_options, jit_values, n_jit, options, values, n);
	if (rc == CUDA_SUCCESS)
		note_file(*library, true, path, "cuLibraryLoadFromFile", changing(n_jit, jit_options));
	hook_leave();
	return rc;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	if (hook_enter()) {
		note_unload(library);
		hook_leave();
	}
	return REAL(cuLibraryUnload)(library);
}

/* A library has one module per context, and its functions name that module. */
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	CUresult rc;
	uint32_t id;
	if (!hook_enter())
		return REAL(cuLibraryGetModule)(module, library);
	rc = REAL(cuLibraryGetModule)(module, library);
	core_lock();
	id = module_of_handle((uintptr_t)library);
	if (rc == CUDA_SUCCESS && id != UINT32_MAX)
		map_put(&by_handle, (uintptr_t)*module, id);
	core_unlock();
	hook_leave();
	return rc;
}

CUresult cuKernelGetFunction(CUfunction *func, CUkernel kernel)
{
	CUresult rc;
	CUlibrary library = NULL;
	if (!hook_enter())
		return REAL(cuKernelGetFunction)(func, kernel);
	rc = REAL(cuKernelGetFunction)(func, kernel);
	if (rc == CUDA_SUCCESS && REAL(cuKernelGetLibrary)(&library, kernel) == CUDA_SUCCESS) {
		core_lock();
		if (module_kernel_of(*func) != kernel && table_grow((void **)&derived, &derived_cap, n_derived + 1, sizeof *derived)) {
			map_put(&derived_at, (uintptr_t)*func, n_derived);
			derived[n_derived++] = (struct derived){(uintptr_t)*func, kernel, module_of_handle((uintptr_t)library)};
		}
		core_unlock();
	}
	hook_leave();
	return rc;
}

size_t medusa_module_count(void)
{
	size_t n = 0;
	if (core_mode() != MODE_INERT) {
		core_lock();
		n = n_loaded;
		core_unlock();
	}
	return n;
}

int medusa_module_get(size_t i, struct medusa_module *out)
{
	int rc = -1;
	if (core_mode() == MODE_INERT)
		return rc;
	core_lock();
	if (i < n_loaded) {
		*out = loaded[i].public;
		rc = 0;
	}
	core_unlock();
	return rc;
}

int medusa_module_hash(size_t i, uint8_t out[32])
{
	struct image im = {0};
	const void *image = NULL;
	struct medusa_module known;
	if (core_mode() == MODE_INERT)
		return -1;
	core_lock();
	if (i < n_loaded) {
		known = loaded[i].public;
		image = loaded[i].in_dso;
	}
	core_unlock();
	if (!image)
		return -1;
	image_place(image, known.image_size, &im); /* its library may be unloaded */
	if (!im.in_dso || strcmp(im.build_id, known.build_id) != 0 || im.dso_offset != known.dso_offset)
		return -1;
	sha256(image, known.image_size, out);
	return 0;
}
