/*
 * watch.h: modules, libraries and events that restored graphs refer to.
 *
 * In: the handles to watch (medusa_watch_handles), and the handles that the process is about to release. Out: a counter for the
 * launcher of such graphs.
 */
#ifndef MEDUSA_WATCH_H
#define MEDUSA_WATCH_H

#include <stdint.h>

/* Needs the lock held. */
void watch_ended(uint64_t handle);

#endif
