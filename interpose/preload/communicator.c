/* communicator.c: see communicator.h. */
#include "communicator.h"

#include <stdatomic.h>

static _Atomic unsigned times;

void communicator_begin(void) { atomic_fetch_add(&times, 1); }

void communicator_end(void)
{
	unsigned n = atomic_load(&times);
	while (n > 0 && !atomic_compare_exchange_weak(&times, &n, n - 1))
		;
}

bool communicator_at_work(void) { return atomic_load(&times) > 0; }
