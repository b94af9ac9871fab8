/*
 * bootstrap.h: how the ranks of a communicator find each other before they share device memory.
 */
#ifndef STANDIN_NCCL_BOOTSTRAP_H
#define STANDIN_NCCL_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>

#define BOOTSTRAP_ITEM 64 /* bytes that each rank tells all others */
#define BOOTSTRAP_SECONDS 20

/* How long a rank waits for another, here and on the device: NCCL_STANDIN_SECONDS, or BOOTSTRAP_SECONDS. */
unsigned long long bootstrap_seconds(void);

/* Makes the meeting place and writes its name, of at most size bytes. The ranks enter it while this process lives. */
bool bootstrap_create(char *name, size_t size);

struct place;
/* Gives own and takes everyone's, by rank. NULL: no such place, other numbers of ranks, a rank twice, or one does not come in time. */
struct place *bootstrap_enter(const char *name, int rank, int ranks, const void *own, void *all);
/* Waits until all ranks have come so far; false if one does not in time. */
bool bootstrap_meet(struct place *p);
void bootstrap_leave(struct place *p); /* p may be NULL */

#endif
