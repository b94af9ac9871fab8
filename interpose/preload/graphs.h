/*
 * graphs.h: captured graphs, and executable graphs made from them.
 *
 * In: the hooks of graphs and executable graphs. Out: graph, exec and update records, medusa_graph_*. A graph that changes between
 * its capture and its instantiation is recorded again. A setter of an executable graph is a fault.
 */
#ifndef MEDUSA_GRAPHS_H
#define MEDUSA_GRAPHS_H

#include <stdint.h>

#include "driver.h"

/* Names the next graph whose capture ends on the calling thread. */
void graphs_label(const char *label, int64_t batch);
/* A capture on this thread has produced `graph`. */
void graphs_captured(CUgraph graph);

#endif
