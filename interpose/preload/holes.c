/* holes.c: see holes.h. */
#include "holes.h"

#include <stdlib.h>

#include "core.h"
#include "capture.h"

/* Calls of one thread do not overlap. */
static _Thread_local struct hole *open_hole;

static struct hole *holes; /* under the lock */

static void drop(struct hole *h)
{
	if (h)
		free(h->nodes);
	free(h);
}

void holes_begin(const struct medusa_collective *call, CUstream stream)
{
	/* mutant: mark without its partner */
	if (open_hole)
		core_fault("medusa_mark_collective", "the call before it has no end");
	drop(open_hole);
	open_hole = calloc(1, sizeof *open_hole);
	if (!open_hole)
		return;
	open_hole->call = *call;
	if (!capture_nodes(stream, &open_hole->graph, &open_hole->nodes, &open_hole->n_nodes)) {
		drop(open_hole); /* no capture: an eager call */
		open_hole = NULL;
	}
}

static bool contains(const CUgraphNode *nodes, size_t n, CUgraphNode node)
{
	for (size_t i = 0; i < n; i++)
		if (nodes[i] == node)
			return true;
	return false;
}

void holes_end(CUstream stream)
{
	struct hole *h = open_hole;
	CUgraph graph = NULL;
	CUgraphNode *now = NULL;
	size_t n = 0, added = 0;
	open_hole = NULL;
	if (!h)
		return;
	/* mutant: a call ends in the capture in which it began */
	if (!capture_nodes(stream, &graph, &now, &n) || graph != h->graph) {
		core_fault("medusa_mark_collective_end", "the capture of the call's begin is not the stream's any more");
		free(now);
		drop(h);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (!contains(h->nodes, h->n_nodes, now[i]))
			now[added++] = now[i];
	free(h->nodes);
	h->nodes = now;
	h->n_nodes = added;
	/* mutant: call that was not captured between its marks */
	if (added == 0) {
		core_fault("medusa_mark_collective", "the call added no node to the capture");
		drop(h);
		return;
	}
	core_lock();
	for (const struct hole *o = holes; o; o = o->next)
		h->number += o->graph == graph;
	h->next = holes;
	holes = h;
	core_unlock();
}

const struct hole *holes_of(CUgraph graph, CUgraphNode node)
{
	const struct hole *found = NULL;
	core_lock();
	for (const struct hole *h = holes; h && !found; h = h->next)
		if (h->graph == graph && contains(h->nodes, h->n_nodes, node))
			found = h;
	core_unlock();
	return found;
}

void holes_forget(CUgraph graph)
{
	core_lock();
	for (struct hole **at = &holes; *at;) {
		struct hole *h = *at;
		if (h->graph != graph) {
			at = &h->next;
			continue;
		}
		*at = h->next;
		drop(h);
	}
	core_unlock();
}
