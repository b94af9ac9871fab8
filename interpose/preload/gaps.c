/*
 * gaps.c: see gaps.h. Gaps are allocations through the real driver that nobody hears of.
 *
 * Big allocations have pages of their own, and 2 MiB gaps move them. Small ones share pages: among them gaps of their own
 * size are needed. All gaps together stay below a twentieth of the device's memory; when that is used up, some old gaps
 * are given back at random, which moves what comes next just as well.
 */
#include "gaps.h"

#include "capture.h"
#include "core.h"
#include "driver.h"
#include "maps.h"
#include "table.h"

#define PAGE ((size_t)2 << 20)

struct gap {
	CUdeviceptr addr;
	size_t size;
};

/* All under the lock. */
static struct gap *gaps;
static size_t n_gaps, gaps_cap, held, budget;
static uint64_t state;

/* splitmix64 */
static uint64_t next(void)
{
	uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* 1 to limit, or 0 where this process has no gaps. Never 0 otherwise: two allocations without a gap between them would
 * keep their distance. */
static unsigned draw(unsigned limit)
{
	static enum { UNREAD, OFF, ON } gap_mode;
	unsigned n = 0;
	core_lock();
	if (gap_mode == UNREAD) {
		state = core_gap_seed();
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
	budget = total / 20;
	core_unlock();
}

static void add(struct gap g)
{
	core_lock();
	if (table_grow((void **)&gaps, &gaps_cap, n_gaps + 1, sizeof *gaps)) {
		gaps[n_gaps++] = g;
		held += g.size;
	}
	core_unlock();
}

/* Takes one gap other than the newest out of the list while there are too many. */
static bool take_one_over_budget(struct gap *out)
{
	bool over;
	core_lock();
	over = held > budget && n_gaps > 1;
	if (over) {
		size_t i = (size_t)(next() % (n_gaps - 1));
		*out = gaps[i];
		gaps[i] = gaps[n_gaps - 2];
		gaps[n_gaps - 2] = gaps[n_gaps - 1];
		n_gaps--;
		held -= out->size;
	}
	core_unlock();
	return over;
}

/* The new gap is made before old ones go: it would only fill their place otherwise. */
static void make(size_t size)
{
	struct gap g = {0, size}, old;
	if (REAL(cuMemAlloc_v2)(&g.addr, size) == CUDA_SUCCESS)
		add(g);
	while (take_one_over_budget(&old))
		REAL(cuMemFree_v2)(old.addr);
}

void gaps_before(size_t bytes)
{
	size_t size = bytes >= PAGE ? PAGE : bytes;
	unsigned n = bytes == 0 || core_mode() != MODE_RECORD ? 0 : draw(size == PAGE ? 7 : 3);
	/* Inside a capture a gap could invalidate what the process itself does not. */
	if (n == 0 || capture_active())
		return;
	read_budget();
	for (unsigned i = 0; i < n; i++)
		make(size);
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

bool gaps_touching(uint64_t addr, size_t size) { return draw(1) > 0 && !capture_active() && touches(addr, size); }

bool gaps_keep(uint64_t addr, size_t size)
{
	if (!gaps_touching(addr, size))
		return false;
	add((struct gap){addr, size});
	return true;
}

void gaps_before_reserve(void)
{
	CUdeviceptr unused;
	for (unsigned n = draw(7); n > 0; n--)
		REAL(cuMemAddressReserve)(&unused, PAGE, 0, 0, 0);
}
