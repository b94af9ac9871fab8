/*
 * rank.h: the rank of this process among the engine's workers.
 *
 * In: the environment (medusa.h). Out: the rank, for medusa_rank and for the trace's name. Fails: variables that
 * contradict each other. Such a process is not recorded and restores no graphs.
 */
#ifndef MEDUSA_RANK_H
#define MEDUSA_RANK_H

#include <stdint.h>

struct rank {
	uint32_t index, count; /* count 1: the only worker */
};

/* Returns 0, or -1 if the environment contradicts itself. */
int rank_read(struct rank *out);
/* Returns the path of this process's trace, for free(). Returns NULL if it has none, with the reason in *why. */
char *rank_trace_path(const char **why);
/* Another process of the same rank owns the trace. Once this process proves to be a worker too, leaves a note for the reader of
 * the trace. */
void rank_note_second(void);
/* For a process that is about to end because its run is over: waits, for at most 10 minutes, until no other rank has its trace open. An engine that sees a worker gone
 * ends the others, which may have memory to write still. Needs the own trace closed. */
void rank_wait_for_others(void);

#endif
