/*
 * nccl.c: groups of no calls.
 *
 * In: the begin and the end of a group. Out: success, as from the library if no communicator is used in between. Fails: nothing;
 * there are no communicators, since whatever makes one is a stub. torch ends its process groups within such a group, and its process
 * with them if that fails.
 */
#include "stub.h"

EXPORT int ncclGroupStart(void) { return 0; }
EXPORT int ncclGroupEnd(void) { return 0; }
