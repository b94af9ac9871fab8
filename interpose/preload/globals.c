/* globals.c: see globals.h. */
#include "globals.h"

#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "driver.h"
#include "module.h"
#include "table.h"

#define PIECE ((uint64_t)1 << 20)

struct global {
	char *name;
	uint64_t addr, size;
	uint32_t module;
};

/* Under the lock. */
static struct global *globals;
static size_t n_globals, globals_cap;
static struct map by_addr; /* -> index + 1 */

void globals_forget_module(uint32_t module)
{
	for (size_t i = 0; i < n_globals; i++)
		if (globals[i].module == module && globals[i].size > 0) {
			map_remove(&by_addr, globals[i].addr);
			globals[i].size = 0;
		}
}

static void note_global(CUresult rc, void *handle, const char *name, const CUdeviceptr *ptr, const size_t *bytes, bool managed)
{
	struct trace_writer *w;
	uint32_t module;
	if (rc != CUDA_SUCCESS || !ptr || !bytes || *bytes == 0)
		return;
	core_lock();
	w = core_trace();
	module = module_of_handle((uintptr_t)handle);
	if (w && map_get(&by_addr, *ptr, 0) == 0 && table_grow((void **)&globals, &globals_cap, n_globals + 1, sizeof *globals)) {
		globals[n_globals++] = (struct global){strdup(name), *ptr, managed ? 0 : *bytes, module};
		map_put(&by_addr, *ptr, n_globals);
		trace_global(w, module, name, *ptr, *bytes, managed);
	}
	core_unlock();
}

/* The driver returns either value without the other. The record needs both. */
#define GLOBAL(call, type, managed) \
	CUresult call(CUdeviceptr *ptr, size_t *bytes, type handle, const char *name) \
	{ \
		CUresult rc; \
		CUdeviceptr at = 0; \
		size_t size = 0; \
		if (!hook_enter()) \
			return REAL(call)(ptr, bytes, handle, name); \
		rc = REAL(call)(&at, &size, handle, name); \
		if (rc == CUDA_SUCCESS && ptr) \
			*ptr = at; \
		if (rc == CUDA_SUCCESS && bytes) \
			*bytes = size; \
		note_global(rc, handle, name, &at, &size, managed); \
		hook_leave(); \
		return rc; \
	}
GLOBAL(cuModuleGetGlobal_v2, CUmodule, false)
GLOBAL(cuLibraryGetGlobal, CUlibrary, false)
GLOBAL(cuLibraryGetManaged, CUlibrary, true)

static CUresult record_one(const struct global *g, void *buffer)
{
	CUresult rc = CUDA_SUCCESS;
	for (uint64_t done = 0; done < g->size && rc == CUDA_SUCCESS; done += PIECE) {
		uint64_t size = g->size - done < PIECE ? g->size - done : PIECE;
		struct trace_writer *w;
		rc = REAL(cuMemcpyDtoH_v2)(buffer, g->addr + done, size);
		core_lock();
		w = core_trace();
		if (w && rc == CUDA_SUCCESS)
			trace_global_data(w, g->module, g->name, done, (struct trace_bytes){buffer, size});
		core_unlock();
	}
	return rc;
}

void globals_record(void)
{
	void *buffer = malloc(PIECE);
	struct global g;
	for (size_t i = 0; buffer; i++) {
		CUresult rc;
		core_lock();
		g = i < n_globals ? globals[i] : (struct global){0};
		core_unlock();
		if (!g.name)
			break;
		rc = g.size > 0 ? record_one(&g, buffer) : CUDA_SUCCESS;
		if (rc != CUDA_SUCCESS)
			core_fault("cuMemcpyDtoH", "result %d: contents of variable %s are missing", (int)rc, g.name);
	}
	free(buffer);
}
