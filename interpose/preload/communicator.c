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

/* NCCL contains the runtime, so the driver's caller lies in its library. The answer for the thread's last caller is kept: the loader takes hundreds of instructions. */
static bool of_library(const void *caller)
{
	static _Thread_local const void *last;
	static _Thread_local bool answer;
	Dl_info info;
	const char *name;
	if (caller == last)
		return answer;
	last = caller;
	answer = false;
	if (dladdr(caller, &info) && info.dli_fname) {
		name = strrchr(info.dli_fname, '/');
		answer = strncmp(name ? name + 1 : info.dli_fname, LIBRARY, strlen(LIBRARY)) == 0;
	}
	return answer;
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
