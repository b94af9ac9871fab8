/*
 * graph_node.h: records nodes that refer to objects outside of their graph.
 *
 * In: a node and its graph's ID in the trace. Out: its records. Fails: the driver does not give its parameters, or the object
 * that it refers to was never seen. The function then returns the reason, for an opaque record.
 */
#ifndef MEDUSA_GRAPH_NODE_H
#define MEDUSA_GRAPH_NODE_H

#include "driver.h"

/* A node that records an event or waits for one. */
const char *graph_node_event(uint32_t graph, CUgraphNode node, CUgraphNodeType type);
/* A memcpy node, and the host memory that it reads. */
const char *graph_node_memcpy(uint32_t graph, CUgraphNode node);
/* At `ready`: records the nodes whose host memory has changed. Takes the lock when it needs it. */
void graph_node_check_hosts(void);

#endif
