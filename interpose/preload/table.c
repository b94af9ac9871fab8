/* table.c: see table.h. The map uses open addressing with linear probing and is never more than half full. Removal leaves no
 * tombstones; with tombstones, an engine that allocates and frees again and again would force rebuilds. */
#include "table.h"

#include <stdlib.h>

#include "core.h"

#define EMPTY 0

bool table_enlarge(void **items, size_t *cap, size_t n, size_t size)
{
	size_t more = *cap ? *cap : 64;
	void *p;
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

/* The place of the key or, if it is absent, the place at which to insert it. */
static size_t find(const struct map *m, uint64_t key)
{
	size_t i = place(m, key);
	while (m->keys[i] != EMPTY && m->keys[i] != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

uint64_t map_get(const struct map *m, uint64_t key, uint64_t missing)
{
	size_t i;
	if (m->cap == 0 || key == EMPTY)
		return missing;
	i = find(m, key);
	return m->keys[i] == EMPTY ? missing : m->values[i];
}

static bool grow(struct map *m)
{
	struct map bigger = {.cap = m->cap ? 2 * m->cap : 64};
	bigger.keys = calloc(bigger.cap, sizeof *bigger.keys);
	bigger.values = calloc(bigger.cap, sizeof *bigger.values);
	if (!bigger.keys || !bigger.values) {
		free(bigger.keys);
		free(bigger.values);
		core_give_up("out of memory");
		return false;
	}
	for (size_t i = 0; i < m->cap; i++)
		if (m->keys[i] != EMPTY)
			map_put(&bigger, m->keys[i], m->values[i]);
	free(m->keys);
	free(m->values);
	*m = bigger;
	return true;
}

void map_put(struct map *m, uint64_t key, uint64_t value)
{
	size_t i;
	if (key == EMPTY || (2 * (m->used + 1) > m->cap && !grow(m)))
		return;
	i = find(m, key);
	m->used += m->keys[i] == EMPTY;
	m->keys[i] = key;
	m->values[i] = value;
}

void map_remove(struct map *m, uint64_t key)
{
	size_t mask = m->cap - 1, hole, i;
	if (m->cap == 0 || key == EMPTY || m->keys[hole = find(m, key)] == EMPTY)
		return;
	/* Move up the entries after the hole, except those whose own place is after it. */
	for (i = (hole + 1) & mask; m->keys[i] != EMPTY; i = (i + 1) & mask)
		if (((i - place(m, m->keys[i])) & mask) >= ((i - hole) & mask)) {
			m->keys[hole] = m->keys[i];
			m->values[hole] = m->values[i];
			/* mutant: what stands behind a removed key moves up */
			hole = i;
		}
	m->keys[hole] = EMPTY;
	m->used--;
}
