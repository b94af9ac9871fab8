/* watch.c: see watch.h. */
#include "watch.h"

#include <stdatomic.h>

#include "core.h"
#include "medusa.h"
#include "table.h"

static struct map watched; /* handle -> 1; under the lock */
static _Atomic uint32_t ends;

void watch_ended(uint64_t handle)
{
	if (map_get(&watched, handle, 0)) {
		map_remove(&watched, handle); /* the driver reuses handles */
		atomic_fetch_add(&ends, 1);
	}
}

void medusa_watch_handles(const uint64_t *handles, size_t n)
{
	if (core_mode() == MODE_INERT)
		return;
	core_lock();
	for (size_t i = 0; i < n; i++)
		map_put(&watched, handles[i], 1);
	core_unlock();
}

const uint32_t *medusa_watched_ends(void) { return (const uint32_t *)&ends; }
