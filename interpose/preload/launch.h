/*
 * launch.h: trigger scopes. Outside of them a launch costs one test of a thread-local flag.
 */
#ifndef MEDUSA_LAUNCH_H
#define MEDUSA_LAUNCH_H

#include <stdbool.h>

/* Whether the calling thread is inside a trigger scope. */
bool launch_in_trigger(void);

#endif
