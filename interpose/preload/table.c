/* table.c: see table.h. The map is open addressing with linear probing, never more than half full. */
#include "table.h"

#include <stdlib.h>

#include "core.h"

#define EMPTY 0
#define DELETED UINT64_MAX

bool table_grow(void **items, size_t *cap, size_t n, size_t size)
{
	size_t more = *cap ? *cap : 64;
	void *p;
	if (n <= *cap)
		return true;
	while (more < n)
		more *= 2;
	p = realloc(*items, more * size);
	if (!p) {
		core_give_up("out of memory");
		return false;
	}
	*items = p;
	*cap = more;
	return true;
}

static size_t place(const struct map *m, uint64_t key)
{
	uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(h >> 32) & (m->cap - 1);
}

static size_t find(const struct map *m, uint64_t key)
{
	if (m->cap > 0 && key != EMPTY && key != DELETED)
		for (size_t i = place(m, key); m->keys[i] != EMPTY; i = (i + 1) & (m->cap - 1))
			if (m->keys[i] == key)
				return i;
	return SIZE_MAX;
}

uint64_t map_get(const struct map *m, uint64_t key, uint64_t missing)
{
	size_t i = find(m, key);
	return i == SIZE_MAX ? missing : m->values[i];
}

static bool rebuild(struct map *m)
{
	struct map bigger = {.cap = 64};
	size_t live = 0;
	for (size_t i = 0; i < m->cap; i++)
		live += m->keys[i] != EMPTY && m->keys[i] != DELETED;
	while (bigger.cap < 4 * (live + 1))
		bigger.cap *= 2;
	bigger.keys = calloc(bigger.cap, sizeof *bigger.keys);
	bigger.values = calloc(bigger.cap, sizeof *bigger.values);
	if (!bigger.keys || !bigger.values) {
		free(bigger.keys);
		free(bigger.values);
		core_give_up("out of memory");
		return false;
	}
	for (size_t i = 0; i < m->cap; i++)
		if (m->keys[i] != EMPTY && m->keys[i] != DELETED)
			map_put(&bigger, m->keys[i], m->values[i]);
	free(m->keys);
	free(m->values);
	*m = bigger;
	return true;
}

void map_put(struct map *m, uint64_t key, uint64_t value)
{
	size_t i = find(m, key);
	if (key == EMPTY || key == DELETED)
		return;
	if (i == SIZE_MAX) {
		if (2 * (m->used + 1) > m->cap && !rebuild(m))
			return;
		for (i = place(m, key); m->keys[i] != EMPTY; i = (i + 1) & (m->cap - 1))
			;
		m->used++;
		m->keys[i] = key;
	}
	m->values[i] = value;
}

void map_remove(struct map *m, uint64_t key)
{
	size_t i = find(m, key);
	if (i != SIZE_MAX)
		m->keys[i] = DELETED;
}
