/* marks.c: facts that engines state themselves (medusa.h). Every function may be called from any thread, in any mode. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "communicator.h"
#include "content.h"
#include "core.h"
#include "graphs.h"
#include "holes.h"
#include "host.h"
#include "maps.h"
#include "medusa.h"
#include "places.h"
#include "rank.h"

/* Records under the lock, if there is a trace. */
#define RECORD(...) \
	do { \
		struct trace_writer *w; \
		if (core_mode() != MODE_RECORD) \
			return; \
		core_lock(); \
		w = core_trace(); \
		if (w) { \
			__VA_ARGS__; \
		} \
		core_unlock(); \
	} while (0)

static bool trace_is_open(void)
{
	bool open;
	core_lock();
	open = core_trace() != NULL;
	core_unlock();
	return open;
}

/* Factors are marked one at a time. The next mark of another kind shows that the list is complete. */
static _Atomic bool identified;

void medusa_mark_phase(const char *phase)
{
	if (core_mode() == MODE_INERT)
		return;
	/* mutant: end at the identity */
	if (atomic_load(&identified) && core_exits(MEDUSA_ENV_AT_IDENTITY) && trace_is_open()) {
		core_seal();
		rank_wait_for_others();
		_exit(0);
	}
	core_lock();
	if (strcmp(phase, "warmup") == 0 || strcmp(phase, "capture") == 0)
		places_freeze();
	maps_phase(phase);
	core_unlock();
	/* Only a worker marks phases. */
	if (core_mode() == MODE_RECORD && core_trace_taken()) {
		rank_note_second();
		if (core_exits(MEDUSA_ENV_AT_IDENTITY) || (strcmp(phase, "ready") == 0 && core_exits(MEDUSA_ENV_AT_READY)))
			_exit(0);
	}
	if (strcmp(phase, "ready") != 0 || !trace_is_open())
		return;
	core_inside = 1;
	content_record();
	host_record();
	core_inside = 0;
	core_seal();
	if (core_exits(MEDUSA_ENV_AT_READY)) {
		rank_wait_for_others();
		_exit(0);
	}
}

void medusa_mark_graph(const char *label, int64_t batch)
{
	if (core_mode() != MODE_INERT)
		graphs_label(label, batch);
}

void medusa_mark_tensor(const struct medusa_tensor *t)
{
	if (core_mode() == MODE_INERT)
		return;
	core_lock();
	places_tensor(t);
	core_unlock();
	RECORD(trace_tensor(w, t->name, t->addr, t->size, t->role, t->dtype, t->fill, t->shape, t->ndim < 8 ? t->ndim : 8, t->lo, t->hi));
}

void medusa_mark_result(const char *tensor)
{
	RECORD(trace_result(w, tensor));
}

void medusa_mark_collective(const struct medusa_collective *call, uint64_t stream)
{
	if (core_mode() == MODE_INERT)
		return;
	/* mutant: memory of a communicator's first call */
	communicator_begin();
	if (core_mode() != MODE_RECORD)
		return;
	core_inside = 1;
	holes_begin(call, (CUstream)(uintptr_t)stream);
	core_inside = 0;
}

void medusa_mark_collective_end(uint64_t stream)
{
	communicator_end();
	if (core_mode() != MODE_RECORD)
		return;
	core_inside = 1;
	holes_end((CUstream)(uintptr_t)stream);
	core_inside = 0;
}

void medusa_mark_communicator(int begins)
{
	if (core_mode() == MODE_INERT)
		return;
	/* mutant: memory of a communicator */
	if (begins)
		communicator_begin();
	else
		communicator_end();
}

void medusa_mark_block(uint64_t addr, uint64_t size, int live)
{
	if (core_mode() == MODE_INERT)
		return;
	core_lock();
	content_block(addr, size, live != 0);
	core_unlock();
	RECORD(trace_block(w, addr, size, live != 0));
}

void medusa_mark_note(const char *name, const void *value, size_t size)
{
	RECORD(trace_note(w, name, (struct trace_bytes){value, size}));
}

void medusa_mark_identity(const char *key, const char *value)
{
	RECORD(trace_identity(w, key, value));
	atomic_store(&identified, true);
}

void medusa_mark_kv_profile(const struct medusa_kv_profile *p)
{
	RECORD(trace_kv(w, p->kv_bytes, p->total, p->free_before, p->free_after, p->peak_forward, p->utilization, p->profile_tokens,
			p->workspace));
}

void medusa_mark_elastic(uint64_t least, uint64_t block)
{
	RECORD(trace_elastic(w, least, block));
}
