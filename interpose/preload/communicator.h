/*
 * communicator.h: memory and events that are a communicator's, and not the engine's.
 *
 * The engine marks the times in which it makes a communicator or calls it. What any thread of the process makes at such a time is the communicator's: libraries
 * allocate on threads of their own, and connect ranks at the first call of a kind. At other times it is so if NCCL's library calls the driver: an engine
 * may have communicators of which it knows nothing, such as those of torch's process groups.
 */
#ifndef MEDUSA_COMMUNICATOR_H
#define MEDUSA_COMMUNICATOR_H

#include <stdbool.h>

void communicator_begin(void);
void communicator_end(void);
/* Whether what the calling thread makes now is a communicator's. Asks the loader, so it is not to be called under a lock. */
bool communicator_at_work(void);

#endif
