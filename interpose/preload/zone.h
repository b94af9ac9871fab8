/*
 * zone.h: where in a range of addresses an allocation goes, as a function of the allocations and frees before it alone.
 *
 * In: sizes and addresses. Out: the lowest place that is large enough. What can fail: the range is full, or the place that
 * was asked for is taken. Nothing here calls the driver; callers hold a lock of their own.
 *
 * A stretched zone has the same places further apart, by seeded distances and in the same order: a framework's allocator that
 * prefers lower addresses then chooses as it does in a zone that is not, while everything has moved against everything.
 */
#ifndef MEDUSA_ZONE_H
#define MEDUSA_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct piece {
	uint64_t addr, size; /* size as asked for */
	uint64_t place;      /* addr, before stretching */
	uint64_t id;         /* unique in the process */
	void *owner;
};

struct zone {
	uint64_t start, end, step; /* places are multiples of step */
	uint64_t stretch;          /* a seed; 0: the zone is not stretched */
	struct piece *pieces;      /* by address */
	size_t n, cap;
	size_t dense;              /* so many pieces have no free place before them */
};

/* How much of the address space a zone takes that has room for size bytes. */
uint64_t zone_extent(const struct zone *z, uint64_t size);
/* Takes size bytes at the lowest free place, or at addr where that is not 0. NULL where there is none. */
struct piece *zone_take(struct zone *z, uint64_t addr, uint64_t size, void *owner);
void zone_give(struct zone *z, struct piece *p);
/* The piece that holds addr, or NULL. Valid until the next zone_take or zone_give. */
struct piece *zone_find(const struct zone *z, uint64_t addr);

#endif
