/*
 * play.c: runs a flat program of driver calls (medusa.h). Building graphs then costs one transition from the restorer's language
 * into C, instead of one per call.
 */
#include "medusa.h"

#define MOST_ARGS 8

/* Passing eight words to a function that takes fewer is harmless in both supported calling conventions, because the callee does
 * not read the other registers and stack slots, and the caller owns them. */
typedef int (*driver_call)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

int medusa_play(const struct medusa_call *calls, size_t n, size_t *failed)
{
	for (size_t i = 0; i < n; i++) {
		const struct medusa_call *c = &calls[i];
		uint64_t a[MOST_ARGS] = {0};
		int rc = 1; /* CUDA_ERROR_INVALID_VALUE: the call cannot be made */
		if (c->nargs <= MOST_ARGS && c->fn) {
			for (uint32_t k = 0; k < c->nargs; k++)
				a[k] = c->deref >> k & 1 ? *(const uint64_t *)(uintptr_t)c->arg[k] : c->arg[k];
			rc = ((driver_call)(uintptr_t)c->fn)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
		}
		if (rc != 0) {
			*failed = i;
			return rc;
		}
	}
	return 0;
}
