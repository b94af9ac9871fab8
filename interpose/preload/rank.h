/*
 * rank.h: which of an engine's worker processes this one is.
 *
 * In: the environment (medusa.h). Out: the rank, for medusa_rank and for the trace's name. What can fail: variables that
 * contradict each other; such a process is not recorded, and restores nothing.
 */
#ifndef MEDUSA_RANK_H
#define MEDUSA_RANK_H

#include <stdint.h>

struct rank {
	uint32_t index, count; /* count 1: the only worker */
};

/* 0, or -1 where the environment contradicts itself. */
int rank_read(struct rank *out);
/* The trace file of this process, for free(); NULL where there is none, and *why says so. */
char *rank_trace_path(const char **why);
/* Another process of the same rank has the trace: tells whoever reads it, once this one turns out to be a worker. */
void rank_note_second(void);

#endif
