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

#include "core.h"
#include "cuda.h"

/* What the caller is about to ask the driver for: gaps in its place are asked for likewise. */
struct gap_source {
	enum gap_kind { GAP_DEVICE, GAP_HOST, GAP_STREAM, GAP_POOL } kind;
	CUmemoryPool pool;
	CUstream stream;
};

/* Before an allocation of the given size. Where nothing is recorded, that is not worth a call. */
void gaps_make(struct gap_source from, size_t bytes);
static inline void gaps_before(struct gap_source from, size_t bytes)
{
	if (core_mode() == MODE_RECORD)
		gaps_make(from, bytes);
}
/* After one that succeeded, for the next. While streams are captured, this is the moment: what the driver has just allowed
 * the process it allows again, where a call before it could have invalidated a capture. */
void gaps_after(struct gap_source from, size_t bytes);
/* After an allocation, while it succeeds: whether the caller is to allocate again, because this one begins where another ends
 * or ends where another begins. An address between the two could belong to either. What touched is a gap from then on. */
bool gaps_keep(struct gap_source from, uint64_t addr, size_t size);
/* The address of what gaps_keep has taken last, where the driver has nothing else. */
uint64_t gaps_return(struct gap_source from);
#define GAPS_TRIES 16
/* Before a reservation of addresses. */
void gaps_before_reserve(void);

#endif
