/*
 * gaps.h: seeded gaps between allocations (record mode with MEDUSA_GAP_SEED), so that allocations move against each
 * other: address space randomisation alone shifts them together, and a wrong guess about a pointer would shift along.
 *
 * What can fail: the driver is out of memory; then there is no gap, and the recording goes on.
 */
#ifndef MEDUSA_GAPS_H
#define MEDUSA_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Before a device allocation of the given size. */
void gaps_before(size_t bytes);
/* After an allocation, while it succeeds: whether the caller is to allocate again, because this one begins where another ends
 * or ends where another begins. An address between the two could belong to either. What touched is a gap from then on. */
bool gaps_keep(uint64_t addr, size_t size);
bool gaps_touching(uint64_t addr, size_t size); /* the same for host memory, which the caller keeps until the process ends */
#define GAPS_TRIES 16
/* Before a reservation of addresses. */
void gaps_before_reserve(void);

#endif
