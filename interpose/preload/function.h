/*
 * function.h: makes a function record from the handle in a kernel node.
 */
#ifndef MEDUSA_FUNCTION_H
#define MEDUSA_FUNCTION_H

#include "core.h"
#include "driver.h"

struct function {
	uint64_t handle;
	uint32_t id, module;
	struct function_param *params; /* owned by the table, never freed */
	size_t n_params, params_size;  /* size: of the parameter buffer in bytes */
	bool stale;                    /* its attributes changed since it was recorded */
};

/* Finds the function that a kernel node names by func or kern, and records it if necessary. Returns NULL and a reason if the
 * driver does not give enough information. Takes the lock when it needs it; callers hold no lock and walk one graph at a time. */
const struct function *function_record(CUfunction func, CUkernel kern, const char **reason);
/* Forgets the functions of an unloaded module. Needs the lock held. */
void function_forget_module(uint32_t module);

#endif
