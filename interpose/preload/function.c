/* function.c: see function.h. */
#include "function.h"

#include <stdlib.h>
#include <string.h>

#include "module.h"
#include "table.h"

struct known {
	struct function public;
	CUkernel kernel; /* NULL for a function of a plain module */
	bool forgotten;
};

/* All under the lock. A known function never moves. */
static struct known **known;
static size_t n_known, known_cap;
static struct map at; /* handle in a node -> index */
static struct map set_attrs;     /* handle -> a bit for each attribute that was set */
static struct map names_written; /* module id + 1 -> 1 */

struct subject { /* the handles for questions to the driver */
	CUfunction function;
	CUkernel kernel;
	CUdevice device;
};

static int compare(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* A module whose image was never seen is identified by the names of all its functions. */
static void record_names(uint64_t handle, bool is_library, uint32_t module)
{
	unsigned int n = 0;
	void **handles;
	const char **names;
	struct trace_writer *w;
	CUresult rc = is_library ? REAL(cuLibraryGetKernelCount)(&n, (CUlibrary)handle)
				 : REAL(cuModuleGetFunctionCount)(&n, (CUmodule)handle);
	handles = calloc(n + 1, sizeof *handles);
	names = calloc(n + 1, sizeof *names);
	if (handles && names && rc == CUDA_SUCCESS)
		rc = is_library ? REAL(cuLibraryEnumerateKernels)((CUkernel *)handles, n, (CUlibrary)handle)
				: REAL(cuModuleEnumerateFunctions)((CUfunction *)handles, n, (CUmodule)handle);
	for (unsigned int i = 0; handles && names && i < n && rc == CUDA_SUCCESS; i++)
		rc = is_library ? REAL(cuKernelGetName)(&names[i], handles[i]) : REAL(cuFuncGetName)(&names[i], handles[i]);
	if (rc != CUDA_SUCCESS) {
		core_fault("cuModuleEnumerateFunctions", "result %d for module %u", (int)rc, module);
	} else if (names) {
		qsort(names, n, sizeof *names, compare);
		core_lock();
		w = core_trace();
		if (w)
			trace_names(w, module, names, n);
		core_unlock();
	}
	free(handles);
	free(names);
}

/* If cuFuncSetAttribute was called on a kernel's function in this context, the function has values of its own, and these apply. */
static CUresult get_attr(const struct subject *s, CUfunction_attribute attr, int *value)
{
	CUfunction own = s->function;
	if (s->kernel && REAL(cuKernelGetFunction)(&own, s->kernel) != CUDA_SUCCESS)
		return REAL(cuKernelGetAttribute)(value, attr, s->kernel, s->device);
	/* mutant: attribute set on the function of a kernel */
	return REAL(cuFuncGetAttribute)(value, attr, own);
}

static bool was_set(uint64_t handle, CUkernel kernel, uint32_t attr)
{
	uint64_t set;
	core_lock();
	set = map_get(&set_attrs, handle, 0) | map_get(&set_attrs, (uintptr_t)kernel, 0);
	core_unlock();
	return set >> attr % 64 & 1;
}

/* Collects the settable attributes that differ from those of a fresh function, no matter which code set them: the owner of a
 * hidden module may set them on a path without a hook. The required cluster size can also be compiled in, and may then not be
 * set again, so it counts only if a hook saw the setting. */
static size_t collect_attrs(const struct subject *s, uint64_t handle, struct function_attr *out)
{
	static const struct {
		CUfunction_attribute id;
		bool only_if_set;
		int fresh;
	} attrs[] = {
		{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, false, 49152},
		{CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, false, -1},
		{CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, false, 0},
		{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, true, 0},
		{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, true, 0},
		{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, true, 0},
		{CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, true, 0},
	};
	size_t n = 0;
	int value, static_shared = 0;
	get_attr(s, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &static_shared);
	for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) {
		int fresh = attrs[i].fresh;
		bool set = was_set(handle, s->kernel, attrs[i].id);
		if (attrs[i].id == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
			fresh -= static_shared;
		if ((attrs[i].only_if_set && !set) || get_attr(s, attrs[i].id, &value) != CUDA_SUCCESS)
			continue;
		if (set || value != fresh)
			out[n++] = (struct function_attr){attrs[i].id, value};
	}
	return n;
}

static CUresult param_info(const struct subject *s, size_t i, size_t *offset, size_t *size)
{
	return s->kernel ? REAL(cuKernelGetParamInfo)(s->kernel, i, offset, size) : REAL(cuFuncGetParamInfo)(s->function, i, offset, size);
}

/* Before 13.2 the driver has no call that counts parameters. It returns INVALID_VALUE for an index past the last one. */
static CUresult collect_params(const struct subject *s, struct function *f)
{
	size_t offset, size, cap = 0;
	CUresult rc;
	while ((rc = param_info(s, f->n_params, &offset, &size)) == CUDA_SUCCESS) {
		if (!table_grow((void **)&f->params, &cap, f->n_params + 1, sizeof *f->params))
			return CUDA_ERROR_OUT_OF_MEMORY;
		f->params[f->n_params++] = (struct function_param){(uint32_t)offset, (uint32_t)size};
		if (offset + size > f->params_size)
			f->params_size = offset + size;
	}
	return rc == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : rc;
}

static struct known *look_up(uint64_t handle)
{
	uint64_t i = map_get(&at, handle, UINT64_MAX);
	return i == UINT64_MAX ? NULL : known[i];
}

static bool remember(struct known *k)
{
	bool ok;
	k->public.id = (uint32_t)n_known;
	ok = table_grow((void **)&known, &known_cap, n_known + 1, sizeof *known);
	if (ok) {
		known[n_known] = k;
		map_put(&at, k->public.handle, n_known++);
	}
	return ok;
}

/* Returns NULL for a function of a module. */
static CUkernel kernel_of(CUfunction func)
{
	CUlibrary library;
	CUkernel kernel;
	const char *name;
	/* Since CUDA 12 a CUfunction may really be a CUkernel. */
	if (REAL(cuKernelGetLibrary)(&library, (CUkernel)func) == CUDA_SUCCESS)
		return (CUkernel)func;
	core_lock();
	kernel = module_kernel_of(func);
	core_unlock();
	if (!kernel && REAL(cuFuncGetName)(&name, func) == CUDA_SUCCESS && name)
		kernel = module_kernel_find(func, name);
	return kernel;
}

const struct function *function_record(CUfunction func, CUkernel kern, const char **reason)
{
	struct function_attr attrs[8];
	size_t n_attrs;
	struct subject s = {func, NULL, 0};
	uint64_t handle = func ? (uintptr_t)func : (uintptr_t)kern, module_handle = 0;
	CUlibrary library = NULL;
	CUmodule module = NULL;
	const char *name = NULL;
	struct trace_writer *w;
	struct known *k;
	CUresult rc;
	bool names_due, stale;

	core_lock();
	k = look_up(handle);
	stale = k && k->public.stale;
	core_unlock();
	if (k && !stale)
		return &k->public;

	REAL(cuCtxGetDevice)(&s.device);
	s.kernel = kern ? kern : kernel_of(func);
	if (s.kernel) {
		rc = REAL(cuKernelGetLibrary)(&library, s.kernel);
		module_handle = (uintptr_t)library;
	} else {
		rc = REAL(cuFuncGetModule)(&module, func);
		module_handle = (uintptr_t)module;
	}
	*reason = "the driver names no module for its function";
	if (rc != CUDA_SUCCESS)
		return NULL;
	rc = s.kernel ? REAL(cuKernelGetName)(&name, s.kernel) : REAL(cuFuncGetName)(&name, func);
	*reason = "the driver does not name its function";
	if (rc != CUDA_SUCCESS || !name)
		return NULL;
	k = calloc(1, sizeof *k);
	*reason = "out of memory";
	if (!k)
		return NULL;
	k->kernel = s.kernel;
	k->public.handle = handle;
	*reason = "the driver does not tell the layout of its parameters";
	if (collect_params(&s, &k->public) != CUDA_SUCCESS) {
		free(k->public.params);
		free(k);
		return NULL;
	}
	n_attrs = collect_attrs(&s, handle, attrs);

	core_lock();
	k->public.module = module_of_handle(module_handle);
	core_unlock();
	if (k->public.module == UINT32_MAX)
		k->public.module = module_hidden(module_handle);
	core_lock();
	names_due = !map_get(&names_written, k->public.module + 1, 0);
	map_put(&names_written, k->public.module + 1, 1);
	core_unlock();
	if (names_due)
		record_names(module_handle, s.kernel != NULL, k->public.module);
	core_lock();
	w = core_trace();
	if (remember(k) && w)
		trace_function(w, k->public.id, handle, k->public.module, name, k->public.params, k->public.n_params, attrs, n_attrs);
	core_unlock();
	return &k->public;
}

void function_forget_module(uint32_t module)
{
	for (size_t i = 0; i < n_known; i++)
		if (known[i]->public.module == module && !known[i]->forgotten) {
			known[i]->forgotten = true;
			if (look_up(known[i]->public.handle) == known[i])
				map_remove(&at, known[i]->public.handle);
		}
}

static void note_attr(uint64_t handle, bool is_kernel, CUfunction_attribute attr, int value)
{
	struct trace_writer *w;
	if (core_mode() != MODE_RECORD)
		return;
	core_lock();
	map_put(&set_attrs, handle, map_get(&set_attrs, handle, 0) | UINT64_C(1) << (unsigned)attr % 64);
	for (size_t i = 0; i < n_known; i++)
		if (known[i]->public.handle == handle || (uintptr_t)known[i]->kernel == handle)
			known[i]->public.stale = true;
	w = core_trace();
	if (w)
		trace_func_attr(w, handle, is_kernel, (uint32_t)attr, value);
	core_unlock();
}

CUresult cuFuncSetAttribute(CUfunction func, CUfunction_attribute attr, int value)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuFuncSetAttribute)(func, attr, value);
	rc = REAL(cuFuncSetAttribute)(func, attr, value);
	if (rc == CUDA_SUCCESS)
		note_attr((uintptr_t)func, false, attr, value);
	hook_leave();
	return rc;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attr, int value, CUkernel kernel, CUdevice dev)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuKernelSetAttribute)(attr, value, kernel, dev);
	rc = REAL(cuKernelSetAttribute)(attr, value, kernel, dev);
	if (rc == CUDA_SUCCESS)
		note_attr((uintptr_t)kernel, true, attr, value);
	hook_leave();
	return rc;
}
