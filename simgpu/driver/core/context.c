/*
 * context.c: the primary context, and which context is current on a thread.
 *
 * In: the calling thread. Out: its state; context_current for everyone who needs a context. Fails: never.
 */
#include "core/core.h"

static struct context *primary;

/* Lives as long as its thread; a thread that never calls the driver has none. */
static _Thread_local struct thread_state state;

struct thread_state *thread_state(void)
{
	return &state;
}

struct context *context_current(void)
{
	return state.depth ? state.stack[state.depth - 1] : NULL;
}

struct context *context_primary(void)
{
	if (!primary) {
		primary = xalloc(sizeof(*primary));
		primary->primary = true;
		object_add(primary, OBJECT_CONTEXT);
	}
	return primary;
}
