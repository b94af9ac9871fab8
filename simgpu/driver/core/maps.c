/*
 * maps.c: the addresses that were mapped when the driver was initialized. A driver never places a reservation over them, even if
 * they are free by then (seen with driver 580.159 on an H100).
 *
 * In: /proc/self/maps at cuInit. Out: whether a range meets one of them. Fails: without that file no range does.
 */
#include "core/core.h"

#include <inttypes.h>
#include <stdio.h>

static struct range { uint64_t start, end; } *ranges;
static size_t count, capacity;

void maps_note(void)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof(line), f)) {
		struct range r;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &r.start, &r.end) != 2)
			continue;
		ranges = grow(ranges, &capacity, count + 1, sizeof(*ranges));
		ranges[count++] = r;
	}
	if (f)
		fclose(f);
}

bool maps_noted(uint64_t addr, uint64_t size)
{
	for (size_t i = 0; i < count; i++)
		if (addr < ranges[i].end && ranges[i].start < addr + size)
			return true;
	return false;
}
