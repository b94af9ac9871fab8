/*
 * graph.h: walks a finished graph into the trace.
 *
 * In: a graph nobody changes meanwhile. Out: function and names records of what it uses, then graph, nodes and edges.
 * What can fail: the driver does not answer, or a node is of a kind that no record describes: an opaque record says so.
 */
#ifndef MEDUSA_GRAPH_H
#define MEDUSA_GRAPH_H

#include "driver.h"

/* Returns the trace's id of the graph. Takes the lock where it needs it. */
uint32_t graph_record(CUgraph graph, const char *label, int64_t batch);

#endif
