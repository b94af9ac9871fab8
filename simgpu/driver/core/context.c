/*
 * context.c: the primary context of each device, and which context is current on a thread.
 *
 * In: the calling thread. Out: its state; context_current for everyone who needs a context. Fails: never.
 */
#include "core/core.h"

static struct context *primary[MOST_DEVICES];

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

struct context *context_primary(CUdevice dev)
{
	if (!primary[dev]) {
		primary[dev] = xalloc(sizeof(**primary));
		primary[dev]->primary = true;
		primary[dev]->device = dev;
		object_add(primary[dev], OBJECT_CONTEXT);
	}
	return primary[dev];
}

bool context_reaches(const struct context *ctx, const struct context *peer)
{
	for (size_t i = 0; i < ctx->peer_count; i++)
		if (ctx->peers[i] == peer)
			return true;
	return false;
}
