/*
 * holes.h: the nodes that calls of the engine's communicator have added to captures.
 *
 * In: the marks before and behind such a call (medusa.h). Out: for a finished graph, which of its nodes belong to which call. Fails: a mark
 * without its partner, or a call that added no node; both are faults of the recording.
 */
#ifndef MEDUSA_HOLES_H
#define MEDUSA_HOLES_H

#include <stddef.h>

#include "driver.h"
#include "medusa.h"

struct hole {
	CUgraph graph;
	CUgraphNode *nodes;
	size_t n_nodes;
	uint32_t number; /* in the graph */
	struct medusa_collective call;
	struct hole *next;
};

void holes_begin(const struct medusa_collective *call, CUstream stream);
void holes_end(CUstream stream);
/* The call that added the node, or NULL. It stays there until holes_forget. */
const struct hole *holes_of(CUgraph graph, CUgraphNode node);
void holes_forget(CUgraph graph);

#endif
