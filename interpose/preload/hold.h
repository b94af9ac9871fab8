/*
 * hold.h: the region that MEDUSA_EXACT requests, kept free from before main on.
 *
 * Without that, other memory of the process may be placed there by chance: Go's runtime begins its heap at a random address.
 *
 * In: the environment. Out: base and size, and addresses that stay free until the driver's reservation in cuInit. Fails: the variable is malformed, or the
 * addresses are occupied at once, or later by MAP_FIXED. The reservation at the base then fails or is moved.
 */
#ifndef MEDUSA_HOLD_H
#define MEDUSA_HOLD_H

#include <stdint.h>

enum hold_request { HOLD_NOTHING, HOLD_REGION, HOLD_MALFORMED };

/* The region that the environment requests. */
enum hold_request hold_requested(uint64_t *base, uint64_t *size);
/* Frees the addresses for the driver, unless something else of the process lies among them by now. */
void hold_release(void);

#endif
