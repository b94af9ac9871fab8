/* communicator.c: see communicator.h. */
#include "communicator.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "core.h"

#define LIBRARY "libnccl"

static _Atomic unsigned times;

void communicator_begin(void) { atomic_fetch_add(&times, 1); }

void communicator_end(void)
{
	unsigned n = atomic_load(&times);
	while (n > 0 && !atomic_compare_exchange_weak(&times, &n, n - 1))
		;
}

/* NCCL contains the runtime, so the driver's caller lies in its library. */
static bool of_library(const void *caller)
{
	Dl_info info;
	const char *name;
	if (!dladdr(caller, &info) || !info.dli_fname)
		return false;
	name = strrchr(info.dli_fname, '/');
	return strncmp(name ? name + 1 : info.dli_fname, LIBRARY, strlen(LIBRARY)) == 0;
}

bool communicator_at_work(void)
{
	if (atomic_load(&times) > 0)
		return true;
	/* mutant: memory of a communicator that the engine does not know */
	if (core_inside)
		return of_library(core_caller);
	return false;
}
