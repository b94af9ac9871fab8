/* launch.c: see launch.h. */
#include "launch.h"

#include "core.h"
#include "driver.h"
#include "medusa.h"
#include "table.h"

static _Thread_local unsigned depth;

/* All under the lock. */
static uint64_t *functions; /* as passed to a launch, so possibly a CUkernel */
static size_t n_functions, functions_cap;
static struct map seen;
static uint64_t launches;

bool launch_in_trigger(void) { return depth > 0; }

void medusa_trigger_begin(void)
{
	if (core_mode() != MODE_INERT)
		depth++;
}

void medusa_trigger_end(void)
{
	if (depth > 0)
		depth--;
}

static void note_launch(CUfunction f)
{
	core_lock();
	launches++;
	if (!map_get(&seen, (uintptr_t)f, 0) && table_grow((void **)&functions, &functions_cap, n_functions + 1, sizeof *functions)) {
		map_put(&seen, (uintptr_t)f, 1);
		functions[n_functions++] = (uintptr_t)f;
	}
	core_unlock();
}

static inline void launched(CUfunction f)
{
	if (__builtin_expect(depth > 0, 0) && hook_enter()) {
		note_launch(f);
		hook_leave();
	}
}

#define LAUNCHES(suffix) \
	CUresult cuLaunchKernel##suffix(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, \
					unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra) \
	{ \
		launched(f); \
		return REAL(cuLaunchKernel##suffix)(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra); \
	} \
	CUresult cuLaunchKernelEx##suffix(const CUlaunchConfig *config, CUfunction f, void **params, void **extra) \
	{ \
		launched(f); \
		return REAL(cuLaunchKernelEx##suffix)(config, f, params, extra); \
	} \
	CUresult cuLaunchCooperativeKernel##suffix(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, \
						   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params) \
	{ \
		launched(f); \
		return REAL(cuLaunchCooperativeKernel##suffix)(f, gx, gy, gz, bx, by, bz, shared, stream, params); \
	}
LAUNCHES()
LAUNCHES(_ptsz)

/* A launch may have used a CUkernel as its CUfunction. The caller asks the driver which of them a handle is, because it can
 * report a failure. */
size_t medusa_trigger_functions(uint64_t *out, size_t cap)
{
	size_t n;
	if (core_mode() == MODE_INERT)
		return 0;
	core_lock();
	n = n_functions;
	for (size_t i = 0; i < n && i < cap; i++)
		out[i] = functions[i];
	core_unlock();
	return n;
}

uint64_t medusa_trigger_launches(void)
{
	uint64_t n = 0;
	if (core_mode() != MODE_INERT) {
		core_lock();
		n = launches;
		core_unlock();
	}
	return n;
}
