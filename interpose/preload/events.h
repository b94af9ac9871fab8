/*
 * events.h: the events of the process, by creation order.
 *
 * In: what the hooks saw. Out: event records, medusa_event_*, and the index of an event that a graph's node names. Events
 * that a trigger scope creates do not count, as its allocations do not.
 */
#ifndef MEDUSA_EVENTS_H
#define MEDUSA_EVENTS_H

#include "driver.h"

/* The index of a live event, or UINT32_MAX where its creation was not seen or did not count. Needs the lock held. */
uint32_t events_index(CUevent event);

#endif
