/*
 * communicator.h: the times in which the engine makes a communicator or calls it.
 *
 * Libraries of communicators allocate on threads of their own, and connect ranks at the first call of a kind. So memory and events that any
 * thread of the process makes at such a time are the communicator's.
 */
#ifndef MEDUSA_COMMUNICATOR_H
#define MEDUSA_COMMUNICATOR_H

#include <stdbool.h>

void communicator_begin(void);
void communicator_end(void);
/* Whether it is such a time. */
bool communicator_at_work(void);

#endif
