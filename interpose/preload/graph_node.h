/*
 * graph_node.h: records of nodes that refer to things outside of their graph.
 *
 * In: a node and the trace's id of its graph. Out: its records. What can fail: the driver does not tell its parameters, or
 * what it refers to was never seen; the reason is returned, for an opaque record.
 */
#ifndef MEDUSA_GRAPH_NODE_H
#define MEDUSA_GRAPH_NODE_H

#include "driver.h"

/* A node that records an event or waits for one. */
const char *graph_node_event(uint32_t graph, CUgraphNode node, CUgraphNodeType type);
/* A memcpy node, and the host memory that it reads. */
const char *graph_node_memcpy(uint32_t graph, CUgraphNode node);
/* At `ready`: records which nodes' host memory changed. Takes the lock where it needs it. */
void graph_node_check_hosts(void);

#endif
