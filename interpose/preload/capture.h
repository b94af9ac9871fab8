/*
 * capture.h: the active captures.
 *
 * In: the hooks of stream capture. Out: moment records, and finished graphs for graphs.h. Fails: the driver does not answer
 * questions about an active capture; a fault record says so.
 */
#ifndef MEDUSA_CAPTURE_H
#define MEDUSA_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "driver.h"

/* Whether any stream of the process is being captured. */
bool capture_active(void);
/* Called before a free and with an allocation: records the nodes that the capturing graphs have so far. No effect outside of
 * captures. */
void capture_moment(void);

/* Returns whether the stream takes part in a capture, whose graph and nodes so far it gives; the caller frees nodes. */
bool capture_nodes(CUstream stream, CUgraph *graph, CUgraphNode **nodes, size_t *n);

#endif
