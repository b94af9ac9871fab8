/*
 * graph.h: walks a finished graph and records it.
 *
 * In: a graph that no thread changes meanwhile. Out: records of the functions and names that it uses, then graph, nodes and
 * edges. Fails: the driver does not answer, or no record describes a node of this kind; an opaque record says so.
 */
#ifndef MEDUSA_GRAPH_H
#define MEDUSA_GRAPH_H

#include "driver.h"

/* Returns the graph's ID in the trace. Takes the lock when it needs it. */
uint32_t graph_record(CUgraph graph, const char *label, int64_t batch);

#endif
