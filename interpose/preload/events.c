/* events.c: see events.h. */
#include "events.h"

#include "communicator.h"
#include "core.h"
#include "launch.h"
#include "medusa.h"
#include "table.h"
#include "watch.h"

/* All under the lock. */
static struct medusa_event *events;
static size_t n_events, events_cap;
static struct map by_handle; /* -> index */

uint32_t events_index(CUevent event) { return (uint32_t)map_get(&by_handle, (uintptr_t)event, UINT32_MAX); }

static void note_created(CUevent event, unsigned int flags)
{
	struct trace_writer *w;
	uint32_t steps = (uint32_t)medusa_sequence(NULL, 0);
	core_lock();
	if (table_grow((void **)&events, &events_cap, n_events + 1, sizeof *events)) {
		events[n_events] = (struct medusa_event){(uintptr_t)event, flags, 1, steps, 0};
		map_put(&by_handle, (uintptr_t)event, n_events);
		w = core_trace();
		if (w)
			trace_event(w, (uint32_t)n_events, (uintptr_t)event, flags, steps);
		n_events++;
	}
	core_unlock();
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuEventCreate)(event, flags);
	rc = REAL(cuEventCreate)(event, flags);
	if (rc == CUDA_SUCCESS && !launch_in_trigger() && !communicator_at_work())
		note_created(*event, flags);
	hook_leave();
	return rc;
}

/* The driver reuses handles, so forget this one before the driver can hand it out again. */
CUresult cuEventDestroy_v2(CUevent event)
{
	if (hook_enter()) {
		struct trace_writer *w;
		uint32_t i;
		core_lock();
		/* mutant: end of an event that graphs refer to */
		watch_ended((uintptr_t)event);
		i = events_index(event);
		if (i != UINT32_MAX) {
			events[i].live = 0;
			map_remove(&by_handle, (uintptr_t)event);
			w = core_trace();
			if (w)
				trace_event_gone(w, i);
		}
		core_unlock();
		hook_leave();
	}
	return REAL(cuEventDestroy_v2)(event);
}

size_t medusa_event_count(void)
{
	size_t n = 0;
	if (core_mode() != MODE_INERT) {
		core_lock();
		n = n_events;
		core_unlock();
	}
	return n;
}

int medusa_event_get(size_t i, struct medusa_event *out)
{
	int rc = -1;
	if (core_mode() == MODE_INERT)
		return rc;
	core_lock();
	if (i < n_events) {
		*out = events[i];
		rc = 0;
	}
	core_unlock();
	return rc;
}
