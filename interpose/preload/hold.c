/* hold.c: see hold.h. */
#include "hold.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "medusa.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PAGE ((uint64_t)2 << 20)

static uint64_t held_base, held_size; /* 0: no addresses are held */

enum hold_request hold_requested(uint64_t *base, uint64_t *size)
{
	const char *text = getenv(MEDUSA_ENV_EXACT);
	char *end;
	if (!text || !*text)
		return HOLD_NOTHING;
	*base = strtoull(text, &end, 0);
	*size = *end == ':' ? strtoull(end + 1, &end, 0) : 0;
	if (*end || *base % PAGE || *size % PAGE || *size == 0 || *base + *size < *base)
		return HOLD_MALFORMED;
	return HOLD_REGION;
}

__attribute__((constructor)) static void hold(void)
{
	uint64_t base, size;
	void *got;
	/* mutant: addresses held before main */
	if (hold_requested(&base, &size) != HOLD_REGION)
		return;
	got = mmap((void *)(uintptr_t)base, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (got == MAP_FAILED)
		return;
	if ((uint64_t)(uintptr_t)got != base) { /* Linux before 4.17 takes the flag for a hint */
		munmap(got, size);
		return;
	}
	held_base = base;
	held_size = size;
}

/* Whether one mapping without access covers the range. The kernel joins neighbours that are alike, so it may be larger. */
static bool untouched(uint64_t base, uint64_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[8192], access[8];
	uint64_t start, end;
	bool found = false;
	while (maps && !found && fgets(line, sizeof line, maps))
		found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, access) == 3 && start <= base && end >= base + size &&
			strcmp(access, "---p") == 0;
	if (maps)
		fclose(maps);
	return found;
}

void hold_release(void)
{
	/* mutant: memory placed over the held region */
	if (held_size && untouched(held_base, held_size))
		munmap((void *)(uintptr_t)held_base, held_size);
	held_size = 0;
}
