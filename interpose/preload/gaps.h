/*
 * gaps.h: seeded gaps between allocations (record mode with MEDUSA_GAP_SEED). They move allocations against each other. Address
 * space randomization alone shifts all of them together, and a number that was mistaken for a pointer could shift with them.
 *
 * Fails: the driver is out of memory. There is no gap then, and the recording continues.
 */
#ifndef MEDUSA_GAPS_H
#define MEDUSA_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core.h"
#include "cuda.h"

/* The kind of allocation that the caller is about to make. Gaps are allocated in the same way. */
struct gap_source {
	enum gap_kind { GAP_DEVICE, GAP_HOST, GAP_STREAM, GAP_POOL } kind;
	CUmemoryPool pool;
	CUstream stream;
};

/* Call it before an allocation of the given size. The test is inline because most processes do not record. */
void gaps_make(struct gap_source from, size_t bytes);
static inline void gaps_before(struct gap_source from, size_t bytes)
{
	if (core_mode() == MODE_RECORD)
		gaps_make(from, bytes);
}
/* Call it after a successful allocation; it makes the gap for the next one. During a capture this is the only safe moment: the
 * driver has just allowed the process this call, whereas a call before it could have invalidated the capture. */
void gaps_after(struct gap_source from, size_t bytes);
/* Call it after each successful allocation. True: the new memory touches other memory, so that an address between them could
 * belong to either; allocate again. The touching allocation becomes a gap. */
bool gaps_keep(struct gap_source from, uint64_t addr, size_t size);
/* Returns the address that gaps_keep took last, if the driver has no other memory. */
uint64_t gaps_return(struct gap_source from);
#define GAPS_TRIES 16
/* Call it before a reservation of addresses. */
void gaps_before_reserve(void);

#endif
