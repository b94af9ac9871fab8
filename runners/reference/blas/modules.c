/*
 * modules.c: loads the library's modules lazily, each by one of the ways that vendor libraries use.
 *
 * gemv and splitk load as modules and tile as a library, through the public calls. large loads by calling the driver's
 * code directly, as libraries do that enter the driver through private tables: whoever watches the public calls never sees
 * that module load, nor its functions being looked up.
 *
 * Fails with the driver's own result.
 */
#include "modules.h"

#include <string.h>

extern const char vblas_image_gemv[] __attribute__((visibility("hidden")));
extern const char vblas_image_tile[] __attribute__((visibility("hidden")));
extern const char vblas_image_large[] __attribute__((visibility("hidden")));
extern const char vblas_image_splitk[] __attribute__((visibility("hidden")));

static CUresult load_public(CUmodule *module, const char *image)
{
	const struct vblas_driver *d = vblas_driver();
	return *module ? CUDA_SUCCESS : vblas_fail("cuModuleLoadData", d->ModuleLoadData(module, image));
}

static CUresult from_module(CUmodule *module, const char *image, const char *name, CUfunction *out)
{
	CUresult r = load_public(module, image);
	if (r != CUDA_SUCCESS)
		return r;
	return vblas_fail("cuModuleGetFunction", vblas_driver()->ModuleGetFunction(out, *module, name));
}

static CUresult from_library(CUlibrary *library, const char *image, const char *name, CUfunction *out)
{
	const struct vblas_driver *d = vblas_driver();
	CUresult r = CUDA_SUCCESS;
	CUkernel kernel;
	if (!*library)
		r = vblas_fail("cuLibraryLoadData", d->LibraryLoadData(library, image, NULL, NULL, 0, NULL, NULL, 0));
	if (r == CUDA_SUCCESS)
		r = vblas_fail("cuLibraryGetKernel", d->LibraryGetKernel(&kernel, *library, name));
	if (r == CUDA_SUCCESS)
		r = vblas_fail("cuKernelGetFunction", d->KernelGetFunction(out, kernel));
	return r;
}

static CUresult from_hidden(CUmodule *module, const char *image, const char *name, CUfunction *out)
{
	__typeof__(cuModuleLoadData) *load = (__typeof__(load))vblas_driver_symbol("cuModuleLoadData");
	__typeof__(cuModuleGetFunction) *get = (__typeof__(get))vblas_driver_symbol("cuModuleGetFunction");
	if (!load || !get)
		return vblas_fail("read the driver's symbols", CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND);
	CUresult r = *module ? CUDA_SUCCESS : vblas_fail("load a private module", load(module, image));
	return r != CUDA_SUCCESS ? r : vblas_fail("find a private kernel", get(out, *module, name));
}

CUresult vblas_function(struct vblas_modules *m, enum vblas_module module, const char *name, CUfunction *out)
{
	for (int i = 0; i < m->function_count; i++) {
		if (m->functions[i].module == module && !strcmp(m->functions[i].name, name)) {
			*out = m->functions[i].function;
			return CUDA_SUCCESS;
		}
	}
	CUresult r = CUDA_ERROR_NOT_FOUND;
	switch (module) {
	case VBLAS_GEMV: r = from_module(&m->module[module], vblas_image_gemv, name, out); break;
	case VBLAS_TILE: r = from_library(&m->library[module], vblas_image_tile, name, out); break;
	case VBLAS_LARGE: r = from_hidden(&m->module[module], vblas_image_large, name, out); break;
	case VBLAS_SPLITK: r = from_module(&m->module[module], vblas_image_splitk, name, out); break;
	case VBLAS_MODULES: break;
	}
	if (r == CUDA_SUCCESS && m->function_count < MAX_FUNCTIONS) {
		m->functions[m->function_count].module = module;
		m->functions[m->function_count].name = name;
		m->functions[m->function_count++].function = *out;
	}
	return r;
}

void vblas_unload(struct vblas_modules *m)
{
	const struct vblas_driver *d = vblas_driver();
	for (int i = 0; i < VBLAS_MODULES; i++) {
		__typeof__(cuModuleUnload) *unload = d->ModuleUnload;
		if (i == VBLAS_LARGE)
			unload = (__typeof__(unload))vblas_driver_symbol("cuModuleUnload");
		if (m->module[i] && unload)
			vblas_fail("cuModuleUnload", unload(m->module[i]));
		if (m->library[i])
			vblas_fail("cuLibraryUnload", d->LibraryUnload(m->library[i]));
	}
	memset(m, 0, sizeof *m);
}
