/*
 * zone.h: assigns addresses in a range. They depend only on earlier allocations and frees.
 *
 * In: sizes and addresses. Out: the lowest place that is large enough. Fails: the range is full, or the requested place is
 * occupied. This file does not call the driver. Callers hold a lock of their own.
 *
 * A stretched zone has the same places further apart, at seeded distances and in the same order. A framework's allocator that
 * prefers lower addresses then makes the same choices as in an unstretched zone, although all allocations have moved against each
 * other.
 */
#ifndef MEDUSA_ZONE_H
#define MEDUSA_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct piece {
	uint64_t addr, size; /* size as requested */
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

/* The address space that a zone with room for size bytes takes. */
uint64_t zone_extent(const struct zone *z, uint64_t size);
/* Takes size bytes at the lowest free place, or at addr if that is not 0. Returns NULL if there is no room. */
struct piece *zone_take(struct zone *z, uint64_t addr, uint64_t size, void *owner);
void zone_give(struct zone *z, struct piece *p);
/* The piece that contains addr, or NULL. Valid until the next zone_take or zone_give. */
struct piece *zone_find(const struct zone *z, uint64_t addr);

#endif
