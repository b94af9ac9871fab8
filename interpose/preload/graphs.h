/*
 * graphs.h: the graphs that captures left and what was instantiated from them.
 *
 * In: the hooks of graphs and executable graphs. Out: graph and exec records, medusa_graph_*. A graph that changes
 * between its capture and its instantiation is recorded again; an executable graph that changes is a fault.
 */
#ifndef MEDUSA_GRAPHS_H
#define MEDUSA_GRAPHS_H

#include <stdint.h>

#include "driver.h"

/* Names the next graph whose capture ends on the calling thread. */
void graphs_label(const char *label, int64_t batch);
/* A capture on this thread left graph. */
void graphs_captured(CUgraph graph);

#endif
