/* host.c: see host.h. Libraries pass addresses of their stack to kernels that get the value itself, too: cuBLASLt does, for the
 * sums of a product in parts. */
#include "host.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "table.h"

/* Reservations of the driver cannot be read, and its memory is mapped shared or from a device. */
static bool own(const char *access, const char *path) { return access[0] == 'r' && access[3] == 'p' && strncmp(path, "/dev/", 5) != 0; }

void host_record(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct host_range *ranges = NULL, r;
	size_t n = 0, cap = 0;
	char line[8192], access[8], path[8192];
	struct trace_writer *w;
	while (maps && fgets(line, sizeof line, maps)) {
		uint64_t end;
		path[0] = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %8191s", &r.addr, &end, access, path) < 3 || !own(access, path))
			continue;
		r.size = end - r.addr;
		if (n && ranges[n - 1].addr + ranges[n - 1].size == r.addr)
			ranges[n - 1].size += r.size;
		else if (table_grow((void **)&ranges, &cap, n + 1, sizeof r))
			ranges[n++] = r;
	}
	if (maps)
		fclose(maps);
	core_lock();
	w = core_trace();
	if (w && n)
		trace_host(w, ranges, n);
	core_unlock();
	free(ranges);
}
