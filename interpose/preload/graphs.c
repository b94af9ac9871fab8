/* graphs.c: see graphs.h. */
#include "graphs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "graph.h"
#include "holes.h"
#include "medusa.h"
#include "table.h"

struct captured {
	char *label;
	int64_t batch;
	uint32_t id;      /* in the trace */
	uint64_t changes; /* setters called before it was recorded */
	size_t nodes;
	uint64_t exec;
};

/* All under the lock. */
static struct captured *captured;
static size_t n_captured, captured_cap;
static struct map by_graph, by_exec; /* -> index of captured */
static uint64_t changes;             /* setters called on any node */
static bool embedded;                /* an embedded graph was handed out: it may change without a change of its node */

static _Thread_local char *pending_label;
static _Thread_local int64_t pending_batch;

void graphs_label(const char *label, int64_t batch)
{
	free(pending_label);
	pending_label = strdup(label);
	pending_batch = batch;
}

static size_t count_nodes(CUgraph graph)
{
	size_t n = 0;
	REAL(cuGraphGetNodes)(graph, NULL, &n);
	return n;
}

void graphs_captured(CUgraph graph)
{
	struct captured c = {.label = pending_label, .batch = pending_batch, .nodes = count_nodes(graph)};
	core_lock();
	c.changes = changes;
	core_unlock();
	pending_label = NULL;
	pending_batch = 0;
	if (core_mode() == MODE_RECORD)
		c.id = graph_record(graph, c.label, c.batch);
	core_lock();
	if (table_grow((void **)&captured, &captured_cap, n_captured + 1, sizeof *captured)) {
		captured[n_captured] = c;
		map_put(&by_graph, (uintptr_t)graph, n_captured++);
	}
	core_unlock();
}

/* Returns the trace's id of the graph in its present state. A graph that has changed since its capture is recorded again. i is its
 * index in captured, or UINT64_MAX. */
static uint32_t present_id(CUgraph graph, uint64_t i)
{
	struct captured c = {0};
	uint64_t now;
	bool again;
	core_lock();
	now = changes;
	again = embedded;
	if (i != UINT64_MAX)
		c = captured[i];
	core_unlock();
	/* A label is never freed once a graph has it. */
	if (i == UINT64_MAX || again || c.changes != now || c.nodes != count_nodes(graph)) {
		c.changes = now;
		c.nodes = count_nodes(graph);
		c.id = graph_record(graph, c.label, c.batch);
	}
	core_lock();
	if (i != UINT64_MAX) {
		captured[i].id = c.id;
		captured[i].changes = c.changes;
		captured[i].nodes = c.nodes;
	}
	core_unlock();
	return c.id;
}

static void note_exec(CUgraph graph, CUgraphExec exec, uint64_t flags)
{
	struct trace_writer *w;
	uint64_t i;
	uint32_t id;
	core_lock();
	i = map_get(&by_graph, (uintptr_t)graph, UINT64_MAX);
	core_unlock();
	if (i == UINT64_MAX && (pending_label || core_mode() == MODE_RECORD))
		graphs_captured(graph); /* built by hand */
	core_lock();
	i = map_get(&by_graph, (uintptr_t)graph, UINT64_MAX);
	if (i != UINT64_MAX) {
		captured[i].exec = (uintptr_t)exec;
		map_put(&by_exec, (uintptr_t)exec, i);
	}
	core_unlock();
	if (core_mode() != MODE_RECORD)
		return;
	id = present_id(graph, i);
	core_lock();
	w = core_trace();
	if (w)
		trace_exec(w, id, (uintptr_t)exec, flags);
	core_unlock();
}

#define INSTANTIATE(suffix) \
	CUresult cuGraphInstantiate##suffix(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_size) \
	{ \
		CUresult rc; \
		if (!hook_enter()) \
			return REAL(cuGraphInstantiate##suffix)(exec, graph, error_node, log, log_size); \
		rc = REAL(cuGraphInstantiate##suffix)(exec, graph, error_node, log, log_size); \
		if (rc == CUDA_SUCCESS) \
			note_exec(graph, *exec, 0); \
		hook_leave(); \
		return rc; \
	}
INSTANTIATE()
INSTANTIATE(_v2)

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuGraphInstantiateWithFlags)(exec, graph, flags);
	rc = REAL(cuGraphInstantiateWithFlags)(exec, graph, flags);
	if (rc == CUDA_SUCCESS)
		note_exec(graph, *exec, flags);
	hook_leave();
	return rc;
}

#define INSTANTIATE_WITH_PARAMS(suffix) \
	CUresult cuGraphInstantiateWithParams##suffix(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params) \
	{ \
		CUresult rc; \
		if (!hook_enter()) \
			return REAL(cuGraphInstantiateWithParams##suffix)(exec, graph, params); \
		rc = REAL(cuGraphInstantiateWithParams##suffix)(exec, graph, params); \
		if (rc == CUDA_SUCCESS) \
			note_exec(graph, *exec, params->flags); \
		hook_leave(); \
		return rc; \
	}
INSTANTIATE_WITH_PARAMS()
INSTANTIATE_WITH_PARAMS(_ptsz)

/* The driver reuses handles, so forget this one before the driver can hand it out again. */
CUresult cuGraphDestroy(CUgraph graph)
{
	if (hook_enter()) {
		core_lock();
		map_remove(&by_graph, (uintptr_t)graph);
		core_unlock();
		holes_forget(graph);
		hook_leave();
	}
	return REAL(cuGraphDestroy)(graph);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	if (hook_enter()) {
		uint64_t i;
		core_lock();
		i = map_get(&by_exec, (uintptr_t)exec, UINT64_MAX);
		if (i != UINT64_MAX && captured[i].exec == (uintptr_t)exec)
			captured[i].exec = 0;
		map_remove(&by_exec, (uintptr_t)exec);
		core_unlock();
		hook_leave();
	}
	return REAL(cuGraphExecDestroy)(exec);
}

/* Setters of nodes. The driver does not reveal a node's graph, so all graphs count as changed, and a recording walks them
 * again. The restorer's own calls are counted too. */
#define NODE_SETTER(name, parameters, arguments) \
	CUresult name parameters \
	{ \
		if (core_mode() == MODE_RECORD && hook_enter()) { \
			core_lock(); \
			changes++; \
			core_unlock(); \
			hook_leave(); \
		} \
		return REAL(name) arguments; \
	}
MEDUSA_NODE_SETTERS(NODE_SETTER)

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
	if (hook_enter()) {
		core_lock();
		embedded = true;
		core_unlock();
		hook_leave();
	}
	return REAL(cuGraphChildGraphNodeGetGraph)(node, graph);
}

static void fault_changed(const char *call, CUgraphExec exec)
{
	const char *label = NULL;
	uint64_t i;
	if (core_mode() != MODE_RECORD)
		return;
	core_lock();
	i = map_get(&by_exec, (uintptr_t)exec, UINT64_MAX);
	if (i != UINT64_MAX)
		label = captured[i].label;
	core_unlock();
	core_fault(call, "it changed executable graph \"%s\" after it was instantiated (change the graph, then instantiate it again)",
		label ? label : "");
}

/* Setters of executable graphs: afterwards the executable graph differs from its record. */
#define EXEC_SETTER(name, parameters, arguments) \
	CUresult name parameters \
	{ \
		CUresult rc; \
		if (!hook_enter()) \
			return REAL(name) arguments; \
		rc = REAL(name) arguments; \
		if (rc == CUDA_SUCCESS) \
			/* mutant: executable graph that is changed */ \
			fault_changed(#name, exec); \
		hook_leave(); \
		return rc; \
	}
MEDUSA_EXEC_SETTERS(EXEC_SETTER)

/* An update makes an executable graph equal to a graph. The reader of the trace finds out whether that changed it. */
static void note_update(CUgraph graph, CUgraphExec exec)
{
	struct trace_writer *w;
	uint64_t i;
	uint32_t id;
	if (core_mode() != MODE_RECORD)
		return;
	core_lock();
	i = map_get(&by_graph, (uintptr_t)graph, UINT64_MAX);
	core_unlock();
	id = present_id(graph, i);
	core_lock();
	w = core_trace();
	if (w)
		trace_update(w, id, (uintptr_t)exec);
	core_unlock();
}

#define EXEC_UPDATE(name, parameters, arguments) \
	CUresult name parameters \
	{ \
		CUresult rc; \
		if (!hook_enter()) \
			return REAL(name) arguments; \
		rc = REAL(name) arguments; \
		if (rc == CUDA_SUCCESS) \
			note_update(graph, exec); \
		hook_leave(); \
		return rc; \
	}
EXEC_UPDATE(cuGraphExecUpdate, (CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, CUgraphExecUpdateResult *result), (exec, graph, error_node, result))
EXEC_UPDATE(cuGraphExecUpdate_v2, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *result), (exec, graph, result))

size_t medusa_graph_count(void)
{
	size_t n = 0;
	if (core_mode() != MODE_INERT) {
		core_lock();
		n = n_captured;
		core_unlock();
	}
	return n;
}

int medusa_graph_get(size_t i, char *label, size_t cap, uint64_t *exec)
{
	int rc = -1;
	if (core_mode() == MODE_INERT)
		return rc;
	core_lock();
	if (i < n_captured) {
		snprintf(label, cap, "%s", captured[i].label ? captured[i].label : "");
		*exec = captured[i].exec;
		rc = 0;
	}
	core_unlock();
	return rc;
}
