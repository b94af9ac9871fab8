/* maps.c: see maps.h. */
#include "maps.h"

#include <stdatomic.h>
#include <string.h>

#include "content.h"
#include "medusa.h"
#include "table.h"

struct list {
	struct alloc *items;
	size_t n, cap;
};

static struct list counted, in_triggers;
static struct map live; /* address -> name_of */
static int64_t *sequence;
static size_t steps, steps_cap;
static uint32_t phases, capture_phase;
static _Atomic uint32_t watched_frees, watched_unmaps, suspended_count;
static struct range {
	uint64_t addr, size;
} *suspended; /* watched mappings that were unmapped, and whose addresses stay reserved */
static size_t suspended_cap;

static void step(int64_t entry)
{
	if (table_grow((void **)&sequence, &steps_cap, steps + 1, sizeof *sequence))
		sequence[steps++] = entry;
}

/* 2 * index + trigger names an allocation permanently. A pointer would not, because the lists move when they grow. */
static uint64_t name_of(const struct alloc *a) { return 2 * (uint64_t)a->id + a->trigger; }
static struct alloc *named(uint64_t name) { return (name & 1 ? in_triggers.items : counted.items) + name / 2; }

/* The place in suspended of the first mapping that begins at addr or, for whole, lies in the range; their number if there is none. */
static size_t find_suspended(uint64_t addr, uint64_t size, bool whole)
{
	size_t n = atomic_load(&suspended_count), i = 0;
	while (i < n && (whole ? suspended[i].addr - addr >= size : suspended[i].addr != addr || suspended[i].size != size))
		i++;
	return i;
}

static void forget_suspended(size_t i)
{
	suspended[i] = suspended[atomic_load(&suspended_count) - 1];
	atomic_fetch_sub(&suspended_count, 1);
}

void maps_add(enum alloc_kind kind, uint64_t addr, uint64_t size, uint64_t flags, bool trigger, CUcontext ctx, const char *stack)
{
	struct list *l = trigger ? &in_triggers : &counted;
	struct trace_writer *w = core_trace();
	struct alloc *a;
	if (!table_grow((void **)&l->items, &l->cap, l->n + 1, sizeof *l->items))
		return;
	a = &l->items[l->n];
	*a = (struct alloc){.addr = addr, .size = size, .ctx = ctx, .id = (uint32_t)l->n, .thread = trace_thread(),
		.phase = phases, .kind = kind, .live = true, .trigger = trigger};
	l->n++;
	map_put(&live, addr, name_of(a));
	size_t back = kind == ALLOC_VMM ? find_suspended(addr, size, false) : atomic_load(&suspended_count);
	/* mutant: mapping that comes back */
	if (back < atomic_load(&suspended_count)) {
		a->watched = true;
		forget_suspended(back);
	}
	if (!trigger)
		step(a->id);
	if (w)
		trace_alloc(w, a->id, kind, addr, size, flags, trigger, stack);
}

struct alloc *maps_at(uint64_t addr)
{
	uint64_t name = map_get(&live, addr, UINT64_MAX);
	return name == UINT64_MAX ? NULL : named(name);
}

uint64_t maps_free(struct alloc *a)
{
	struct trace_writer *w = core_trace();
	a->live = false;
	/* mutant: free of memory that graphs refer to */
	if (a->watched)
		atomic_fetch_add(&watched_frees, 1);
	map_remove(&live, a->addr);
	content_forget(a->addr, a->size);
	if (!a->trigger)
		step(-(int64_t)a->id - 1);
	if (w)
		trace_free(w, a->id, a->kind, a->addr, a->trigger);
	return name_of(a);
}

void maps_unmap(struct alloc *a)
{
	size_t n = atomic_load(&suspended_count);
	/* mutant: unmap under a live reservation */
	if (a->watched && table_grow((void **)&suspended, &suspended_cap, n + 1, sizeof *suspended)) {
		a->watched = false;
		suspended[n] = (struct range){a->addr, a->size};
		atomic_fetch_add(&suspended_count, 1);
		atomic_fetch_add(&watched_unmaps, 1);
	}
	maps_free(a);
}

void maps_unreserve(uint64_t addr, uint64_t size)
{
	size_t i = find_suspended(addr, size, true);
	/* mutant: addresses of suspended memory that are given back */
	while (i < atomic_load(&suspended_count)) {
		forget_suspended(i);
		atomic_fetch_add(&watched_frees, 1);
		i = find_suspended(addr, size, true);
	}
}

void maps_unfree(uint64_t freed)
{
	struct alloc *a = named(freed);
	a->live = true;
	map_put(&live, a->addr, name_of(a));
	if (!a->trigger && steps > 0 && sequence[steps - 1] == -(int64_t)a->id - 1)
		steps--;
	else if (!a->trigger)
		step(a->id);
}

void maps_free_context(CUcontext ctx)
{
	struct list *lists[] = {&counted, &in_triggers};
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < lists[k]->n; i++)
			if (lists[k]->items[i].live && lists[k]->items[i].ctx == ctx && lists[k]->items[i].kind != ALLOC_REGISTERED)
				maps_free(&lists[k]->items[i]);
}

struct alloc *maps_nth(size_t n) { return n < counted.n ? &counted.items[n] : NULL; }

void maps_phase(const char *name)
{
	struct trace_writer *w = core_trace();
	phases++;
	if (strcmp(name, "warmup") == 0)
		capture_phase = phases;
	if (w) {
		trace_phase(w, name);
		trace_flush(w);
	}
}

uint32_t maps_capture_phase(void) { return capture_phase; }
uint32_t maps_phases(void) { return phases; }

size_t medusa_alloc_count(void)
{
	size_t n = 0;
	if (core_mode() != MODE_INERT) {
		core_lock();
		n = counted.n;
		core_unlock();
	}
	return n;
}

int medusa_alloc_get(size_t i, struct medusa_alloc *out)
{
	int rc = -1;
	if (core_mode() == MODE_INERT)
		return rc;
	core_lock();
	if (i < counted.n) {
		const struct alloc *a = &counted.items[i];
		*out = (struct medusa_alloc){.addr = a->addr, .size = a->size, .kind = a->kind, .thread = a->thread,
			.live = a->live, .phase = a->phase};
		rc = 0;
	}
	core_unlock();
	return rc;
}

size_t medusa_watch(const uint64_t *addresses, size_t n)
{
	size_t found = 0;
	if (core_mode() == MODE_INERT)
		return found;
	core_lock();
	for (size_t i = 0; i < n; i++) {
		struct alloc *a = maps_at(addresses[i]);
		if (a)
			a->watched = true;
		found += a != NULL;
	}
	core_unlock();
	return found;
}

const uint32_t *medusa_watched_unmaps(void) { return (const uint32_t *)&watched_unmaps; }
const uint32_t *medusa_suspended(void) { return (const uint32_t *)&suspended_count; }

const uint32_t *medusa_watched_frees(void) { return (const uint32_t *)&watched_frees; }

size_t medusa_sequence(int64_t *out, size_t cap)
{
	size_t n = 0;
	if (core_mode() == MODE_INERT)
		return n;
	core_lock();
	n = steps;
	if (cap > 0)
		memcpy(out, sequence, (n < cap ? n : cap) * sizeof *out);
	core_unlock();
	return n;
}
