/*
 * driver.h: the real driver behind the hooks.
 *
 * In: the name of an entry point. Out: the driver's own function, found without loading the driver; a caller of a hook has loaded
 * it already. Fails: there is no driver, or it is too old for the function. REAL then gives a function that returns
 * CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, so callers treat a missing function like a failing one.
 */
#ifndef MEDUSA_DRIVER_H
#define MEDUSA_DRIVER_H

#include <stdatomic.h>

#define CUDA_EXACT_SYMBOLS
#include "cuda.h"
#include "hooks_gen.h"

enum driver_fn {
#define X(name) FN_##name,
	MEDUSA_HOOKS(X) FN_HOOKS, FN_BEFORE_USES = FN_HOOKS - 1, MEDUSA_USES(X)
#undef X
	FN_COUNT
};

void *driver_find(enum driver_fn fn);
extern _Atomic(void *) driver_found[FN_COUNT];

static inline void *driver_real(enum driver_fn fn)
{
	void *p = atomic_load_explicit(&driver_found[fn], memory_order_acquire);
	return p ? p : driver_find(fn);
}
#define REAL(name) ((__typeof__(&name))driver_real(FN_##name))

/* Returns the hook that wraps the driver's function p, or p itself. */
void *driver_hook_of(void *p);

#endif
