/*
 * exact.h: device memory at the same addresses in every process (MEDUSA_EXACT of medusa.h).
 *
 * In: the allocations of the process, in call order. Out: memory in one reserved region, mapped page by page on demand. Addresses
 * depend only on the sizes and the order of allocations and frees. Allocations of trigger scopes do not repeat, so they go to a
 * scratch zone. Fails: the region's base is occupied, the driver places the region elsewhere, or the device maps no memory. The driver then places all memory,
 * and exact_state says so. If the driver refuses a call, its result is returned.
 *
 * This file has a lock of its own. Callers must not hold the lock of core.h.
 */
#ifndef MEDUSA_EXACT_H
#define MEDUSA_EXACT_H

#include <stdbool.h>

#include "driver.h"
#include "zone.h"

/* Serves an allocation. False: the call does not belong to the region, and the driver must serve it. */
bool exact_alloc(CUdeviceptr *ptr, size_t bytes, CUresult *rc);
/* The same for a pitched allocation. */
bool exact_alloc_pitch(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height, unsigned int elem_size, CUresult *rc);
/* Allocates memory at a given address, if nothing else is there, and no reservation of the process. */
CUresult exact_place(uint64_t addr, uint64_t bytes);
/* Frees the allocation that begins at ptr, after the work of the context, as cuMemFree does. False: it is not in the region. */
bool exact_free(CUdeviceptr ptr, CUresult *rc);
/* Serves a reservation of the process itself, without an address of its own choice. 0: the driver must serve it. */
uint64_t exact_reserve(size_t bytes, size_t alignment);
/* Ends a reservation. False: it is not in the region. */
bool exact_unreserve(CUdeviceptr ptr, size_t bytes);
/* Finds the allocation in the region that contains ptr. */
bool exact_find(CUdeviceptr ptr, struct piece *out);
/* The context is gone, and so is its memory. */
void exact_context_gone(CUcontext ctx);

#endif
