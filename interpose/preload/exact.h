/*
 * exact.h: device memory at the same addresses in every process (MEDUSA_EXACT of medusa.h).
 *
 * In: the allocations of the process, in call order. Out: memory in one reserved region, mapped page by page as it is
 * needed; places depend only on the sizes and the order of allocations and frees. Allocations of trigger scopes, which do
 * not repeat, go to a scratch zone. What can fail: the region's base is taken, or the driver does not honour the hint; then
 * all memory is the driver's, and exact_state says so. What the driver refuses is returned as its result.
 *
 * Works beside the lock of core.h, which no caller may hold.
 */
#ifndef MEDUSA_EXACT_H
#define MEDUSA_EXACT_H

#include <stdbool.h>

#include "driver.h"
#include "zone.h"

/* Serves an allocation. False: the call is not for the region, and the driver is to make it. */
bool exact_alloc(CUdeviceptr *ptr, size_t bytes, CUresult *rc);
/* The same for a pitched one. */
bool exact_alloc_pitch(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height, unsigned int elem_size, CUresult *rc);
/* Memory at an address that is known. */
CUresult exact_place(uint64_t addr, uint64_t bytes);
/* Frees what begins at ptr, after the work of the context, as cuMemFree does. False: it does not lie in the region. */
bool exact_free(CUdeviceptr ptr, CUresult *rc);
/* The place to ask for in a reservation of the process's own, or 0. */
uint64_t exact_hint(size_t bytes, size_t alignment);
/* The allocation in the region that holds ptr. */
bool exact_find(CUdeviceptr ptr, struct piece *out);
/* The context is gone, and its memory with it. */
void exact_context_gone(CUcontext ctx);

#endif
