/*
 * events.h: the events of the process, in creation order.
 *
 * In: the calls that the hooks saw. Out: event records, medusa_event_*, and the index of an event that a graph node names. Like
 * allocations, events that a trigger scope creates do not count.
 */
#ifndef MEDUSA_EVENTS_H
#define MEDUSA_EVENTS_H

#include "driver.h"

/* Returns the index of a live event, or UINT32_MAX if its creation was not seen or does not count. Needs the lock held. */
uint32_t events_index(CUevent event);

#endif
