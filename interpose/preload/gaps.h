/*
 * gaps.h: seeded gaps between allocations (record mode with MEDUSA_GAP_SEED), so that allocations move against each
 * other: address space randomisation alone shifts them together, and a wrong guess about a pointer would shift along.
 *
 * What can fail: the driver is out of memory; then there is no gap, and the recording goes on.
 */
#ifndef MEDUSA_GAPS_H
#define MEDUSA_GAPS_H

#include <stddef.h>

/* Before a device allocation of the given size. */
void gaps_before(size_t bytes);
/* Before a reservation of addresses. */
void gaps_before_reserve(void);

#endif
