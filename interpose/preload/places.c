/* places.c: see places.h. */
#include "places.h"

#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "core.h"
#include "maps.h"
#include "table.h"

struct place {
	char *name;
	uint64_t addr, size;
};

static struct place *places;
static size_t n_places, places_cap;
static struct medusa_block *blocks;
static size_t n_blocks, blocks_cap;
static bool frozen;

static struct place *find(const char *name)
{
	for (size_t i = 0; i < n_places; i++)
		if (strcmp(places[i].name, name) == 0)
			return &places[i];
	return NULL;
}

void places_tensor(const struct medusa_tensor *t)
{
	struct place *p = find(t->name);
	char *name;
	if (p) {
		p->addr = t->addr;
		p->size = t->size;
		return;
	}
	name = strdup(t->name);
	if (!name || !table_grow((void **)&places, &places_cap, n_places + 1, sizeof *places)) {
		free(name);
		return;
	}
	places[n_places++] = (struct place){name, t->addr, t->size};
}

static void keep(uint64_t addr, uint64_t size, bool live)
{
	const struct alloc *a;
	for (size_t i = 0; (a = maps_nth(i)); i++)
		if (a->live && addr - a->addr < a->size) {
			if (table_grow((void **)&blocks, &blocks_cap, n_blocks + 1, sizeof *blocks))
				blocks[n_blocks++] = (struct medusa_block){a->id, live, addr - a->addr, size};
			return;
		}
}

void places_freeze(void)
{
	if (frozen)
		return;
	frozen = true;
	content_blocks(keep);
}

int medusa_tensor_get(const char *name, uint64_t *addr, uint64_t *size)
{
	const struct place *p;
	if (core_mode() == MODE_INERT)
		return -1;
	core_lock();
	p = find(name);
	if (p) {
		*addr = p->addr;
		*size = p->size;
	}
	core_unlock();
	return p ? 0 : -1;
}

size_t medusa_block_map(struct medusa_block *out, size_t cap)
{
	size_t n = 0;
	if (core_mode() == MODE_INERT)
		return n;
	core_lock();
	n = n_blocks;
	if (cap > 0 && n > 0)
		memcpy(out, blocks, (n < cap ? n : cap) * sizeof *out);
	core_unlock();
	return n;
}
