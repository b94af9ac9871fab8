/*
 * gaps.c: see gaps.h. Gaps are allocations through the real driver that are not recorded.
 *
 * Large allocations have pages of their own, and gaps of 2 MiB move them. Small allocations share pages, so gaps of their own
 * size must lie among them. All gaps together stay below a twentieth of the device's memory. At that limit, some old gaps are
 * freed at random, which moves later allocations as well as new gaps do.
 */
#include "gaps.h"

#include "capture.h"
#include "core.h"
#include "driver.h"
#include "maps.h"
#include "table.h"

#define PAGE ((size_t)2 << 20)
#define HOST_BUDGET ((size_t)64 << 20)

struct gap {
	uint64_t addr;
	size_t size;
};

/* All under the lock. */
static struct pile {
	struct gap *gaps;
	size_t n, cap, held, budget;
} device_pile, host_pile = {.budget = HOST_BUDGET};
static uint64_t state;

static struct pile *pile_of(struct gap_source from) { return from.kind == GAP_HOST ? &host_pile : &device_pile; }

/* splitmix64 */
static uint64_t next(void)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Returns 1 to limit, or 0 if this process has no gaps. It never returns 0 otherwise: two allocations without a gap between
 * them would keep their distance. */
static unsigned draw(unsigned limit)
{
	static enum { UNREAD, OFF, ON } gap_mode;
	unsigned n = 0;
	core_lock();
	if (gap_mode == UNREAD) {
		state = core_gap_seed();
		/* mutant: seeded gaps */
		gap_mode = state ? ON : OFF;
	}
	if (gap_mode == ON)
		n = 1 + (unsigned)(next() % limit);
	core_unlock();
	return n;
}

static void read_budget(void)
{
	CUdevice dev;
	size_t total = 0;
	if (REAL(cuCtxGetDevice)(&dev) != CUDA_SUCCESS || REAL(cuDeviceTotalMem_v2)(&total, dev) != CUDA_SUCCESS)
		return;
	core_lock();
	device_pile.budget = total / 20;
	core_unlock();
}

static void add(struct pile *p, struct gap g)
{
	core_lock();
	if (table_grow((void **)&p->gaps, &p->cap, p->n + 1, sizeof *p->gaps)) {
		p->gaps[p->n++] = g;
		p->held += g.size;
	}
	core_unlock();
}

/* Removes one gap from the list if there are too many, but never the newest. */
static bool take_one_over_budget(struct pile *p, struct gap *out)
{
	bool over;
	core_lock();
	over = p->held > p->budget && p->n > 1;
	if (over) {
		size_t i = (size_t)(next() % (p->n - 1));
		*out = p->gaps[i];
		p->gaps[i] = p->gaps[p->n - 2];
		p->gaps[p->n - 2] = p->gaps[p->n - 1];
		p->n--;
		p->held -= out->size;
	}
	core_unlock();
	return over;
}

static CUresult ask(struct gap_source from, uint64_t *addr, size_t size)
{
	void *host = NULL;
	CUdeviceptr at = 0;
	CUresult rc = CUDA_SUCCESS;
	switch (from.kind) {
	case GAP_DEVICE: rc = REAL(cuMemAlloc_v2)(&at, size); break;
	case GAP_HOST: rc = REAL(cuMemHostAlloc)(&host, size, 0); break;
	case GAP_STREAM: rc = REAL(cuMemAllocAsync)(&at, size, from.stream); break;
	case GAP_POOL: rc = REAL(cuMemAllocFromPoolAsync)(&at, size, from.pool, from.stream); break;
	}
	*addr = from.kind == GAP_HOST ? (uintptr_t)host : at;
	return rc;
}

/* Make the new gap before freeing old ones; otherwise it would only fill their place. A free could invalidate a capture. */
static void make(struct gap_source from, size_t size)
{
	struct pile *p = pile_of(from);
	struct gap g = {0, size}, old;
	if (ask(from, &g.addr, size) == CUDA_SUCCESS)
		add(p, g);
	while (!capture_active() && take_one_over_budget(p, &old)) {
		if (p == &host_pile)
			REAL(cuMemFreeHost)((void *)(uintptr_t)old.addr);
		else
			REAL(cuMemFree_v2)(old.addr);
	}
}

static void make_some(struct gap_source from, size_t bytes)
{
	size_t size = bytes >= PAGE ? PAGE : bytes;
	unsigned n = bytes == 0 || core_mode() != MODE_RECORD ? 0 : draw(size == PAGE ? 7 : 3);
	if (n == 0)
		return;
	read_budget();
	for (unsigned i = 0; i < n; i++)
		make(from, size);
}

void gaps_make(struct gap_source from, size_t bytes)
{
	/* During a capture, the allocation of a gap could invalidate a capture that the process itself leaves valid. */
	/* mutant: gaps between page-locked buffers */
	if (!capture_active())
		make_some(from, bytes);
}

/* On a stream that is being captured, an allocation is a node of the graph. */
static bool leaves_graphs_alone(struct gap_source from)
{
	return !capture_active() || from.kind == GAP_DEVICE || from.kind == GAP_HOST;
}

static bool within_budget(struct pile *p)
{
	core_lock();
	bool within = p->held <= p->budget;
	core_unlock();
	return within;
}

void gaps_after(struct gap_source from, size_t bytes)
{
	/* mutant: gaps inside a capture */
	if (capture_active() && leaves_graphs_alone(from) && within_budget(pile_of(from)))
		make_some(from, bytes);
}

static bool touches(uint64_t addr, size_t size)
{
	const struct alloc *a;
	bool found = false;
	core_lock();
	for (size_t i = 0; !found && (a = maps_nth(i)); i++)
		found = a->live && (a->addr + a->size == addr || addr + size == a->addr);
	core_unlock();
	return found;
}

bool gaps_keep(struct gap_source from, uint64_t addr, size_t size)
{
	if (draw(1) == 0 || !leaves_graphs_alone(from) || !touches(addr, size))
		return false;
	add(pile_of(from), (struct gap){addr, size});
	return true;
}

uint64_t gaps_return(struct gap_source from)
{
	struct pile *p = pile_of(from);
	struct gap g = {0, 0};
	core_lock();
	if (p->n > 0) {
		g = p->gaps[--p->n];
		p->held -= g.size;
	}
	core_unlock();
	return g.addr;
}

void gaps_before_reserve(void)
{
	CUdeviceptr unused;
	for (unsigned n = draw(7); n > 0; n--)
		REAL(cuMemAddressReserve)(&unused, PAGE, 0, 0, 0);
}
