/*
 * watch.h: modules, libraries and events that restored graphs refer to.
 *
 * In: handles to watch (medusa_watch_handles), and those that the process is about to give up. Out: a counter, for whoever
 * launches such graphs.
 */
#ifndef MEDUSA_WATCH_H
#define MEDUSA_WATCH_H

#include <stdint.h>

/* Needs the lock held. */
void watch_ended(uint64_t handle);

#endif
