/*
 * table.c ROUNDS: puts keys into a map and removes them at random, and compares the map with an array after every step. Exit code
 * 1: they differ, or the map has grown beyond the need of its keys.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../preload/table.c"

void core_give_up(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(2);
}

enum { KEYS = 300 };

int main(int argc, char **argv)
{
	static uint64_t want[KEYS + 1]; /* 0: absent */
	struct map m = {0};
	size_t live = 0;
	long rounds = argc > 1 ? atol(argv[1]) : 0;
	srand(7);
	for (long round = 1; round <= rounds; round++) {
		uint64_t key = 1 + (uint64_t)rand() % KEYS;
		/* The map grows and empties in turns. */
		if (rand() % 8 < (round / 1000 % 2 ? 5 : 3)) {
			map_put(&m, key, (uint64_t)round);
			live += want[key] == 0;
			want[key] = (uint64_t)round;
		} else {
			map_remove(&m, key);
			live -= want[key] != 0;
			want[key] = 0;
		}
		for (key = 0; key <= KEYS; key++)
			if (map_get(&m, key, 0) != want[key] || m.used != live) {
				fprintf(stderr, "round %ld: key %llu is %llu, want %llu; %zu keys, want %zu\n", round, (unsigned long long)key,
					(unsigned long long)map_get(&m, key, 0), (unsigned long long)want[key], m.used, live);
				return 1;
			}
	}
	free(m.keys);
	free(m.values);
	return m.cap > 4 * KEYS; /* removing leaves no mark */
}
