/*
 * multicast.h: which mappings belong to multicast objects, so that no graph's memory is taken for memory of one GPU.
 *
 * In: the cuMulticast calls, and mappings by their handles. Out: a record for each such allocation; materialize refuses a graph that
 * refers to it. Fails: memory is bound of which no allocation was recorded: a fault.
 */
#ifndef MEDUSA_MULTICAST_H
#define MEDUSA_MULTICAST_H

#include <stdbool.h>

#include "driver.h"

/* A recording's mapping [addr, addr + size) of a handle, already in the maps. */
void multicast_mapped(CUmemGenericAllocationHandle handle, uint64_t addr, uint64_t size);
/* Whether the allocation is one that was recorded so; core.h's lock is held. */
bool multicast_has(uint32_t id);

#endif
