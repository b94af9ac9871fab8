/* zone.c: see zone.h. First fit from the start: freed places are reused, and equal sequences give equal places. */
#include "zone.h"

#include <string.h>

#include "table.h"

static uint64_t rounded(const struct zone *z, uint64_t size) { return (size + z->step - 1) / z->step * z->step; }

#define STRETCH 4

uint64_t zone_extent(const struct zone *z, uint64_t size) { return z->stretch ? STRETCH * size : size; }

/* The address of a place. Its piece has room of STRETCH times its size and begins at a seeded position in that room, so the
 * order is kept. */
static uint64_t stretched(const struct zone *z, uint64_t place, uint64_t size)
{
	uint64_t room = (STRETCH - 1) * rounded(z, size) / z->step, r = z->stretch ^ place;
	/* mutant: gaps in a region */
	if (!z->stretch)
		return place;
	r = (r ^ r >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	r = (r ^ r >> 27) * UINT64_C(0x94d049bb133111eb);
	return z->start + STRETCH * (place - z->start) + (r ^ r >> 31) % room * z->step;
}

/* The index of the first piece above addr. */
static size_t above(const struct zone *z, uint64_t addr)
{
	size_t lo = 0, hi = z->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (z->pieces[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The begin and the end of the free range before piece i. */
static uint64_t gap_start(const struct zone *z, size_t i)
{
	return i == 0 ? z->start : z->pieces[i - 1].place + rounded(z, z->pieces[i - 1].size);
}

static uint64_t gap_end(const struct zone *z, size_t i)
{
	return i < z->n ? z->pieces[i].place : z->stretch ? z->start + (z->end - z->start) / STRETCH : z->end;
}

struct piece *zone_take(struct zone *z, uint64_t addr, uint64_t size, void *owner)
{
	static uint64_t ids;
	uint64_t need = rounded(z, size);
	size_t i = 0;
	if (size == 0 || need < size || (addr && z->stretch))
		return NULL;
	if (addr) {
		i = above(z, addr);
		if (addr % z->step || addr < gap_start(z, i) || addr > gap_end(z, i) || need > gap_end(z, i) - addr)
			return NULL;
	} else {
		i = z->dense;
		/* mutant: first fit in the region */
		while (i < z->n && need > gap_end(z, i) - gap_start(z, i))
			i++;
		addr = gap_start(z, i);
		if (need > gap_end(z, i) - addr)
			return NULL;
	}
	if (!table_grow((void **)&z->pieces, &z->cap, z->n + 1, sizeof *z->pieces))
		return NULL;
	memmove(&z->pieces[i + 1], &z->pieces[i], (z->n - i) * sizeof *z->pieces);
	z->n++;
	z->pieces[i] = (struct piece){stretched(z, addr, size), size, addr, ++ids, owner};
	while (z->dense < z->n && gap_start(z, z->dense) == z->pieces[z->dense].place)
		z->dense++;
	return &z->pieces[i];
}

void zone_give(struct zone *z, struct piece *p)
{
	size_t i = (size_t)(p - z->pieces);
	memmove(p, p + 1, (z->n - i - 1) * sizeof *p);
	z->n--;
	/* mutant: places before what is freed are full */
	if (z->dense > i)
		z->dense = i;
}

struct piece *zone_find(const struct zone *z, uint64_t addr)
{
	size_t i = above(z, addr);
	struct piece *p = i ? &z->pieces[i - 1] : NULL;
	return p && addr - p->addr < p->size ? p : NULL;
}
