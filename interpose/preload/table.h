/*
 * table.h: the two containers of the interposer: a growing array, and a map between 64-bit words.
 *
 * Fails: memory runs out. The function then calls core_give_up and makes no change.
 */
#ifndef MEDUSA_TABLE_H
#define MEDUSA_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes room for at least n items of the given size at *items. */
bool table_enlarge(void **items, size_t *cap, size_t n, size_t size);
static inline bool table_grow(void **items, size_t *cap, size_t n, size_t size)
{
	return n <= *cap || table_enlarge(items, cap, n, size);
}

/* Handles and addresses are never 0, so key 0 marks an empty place. */
struct map {
	uint64_t *keys, *values;
	size_t cap, used;
};

/* Returns the value of key, or `missing`. */
uint64_t map_get(const struct map *m, uint64_t key, uint64_t missing);
void map_put(struct map *m, uint64_t key, uint64_t value);
/* Other entries may move to the place of the key. */
void map_remove(struct map *m, uint64_t key);

#endif
