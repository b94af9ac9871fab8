/*
 * heap.c: the place of an allocation in device memory.
 *
 * In: devices and sizes. Out: blocks of a reserved window of address space, well away from host mappings. Small ones share 2 MiB pages
 * at 512-byte steps, large ones get whole pages, with seeded gaps between them, as with cuMemAlloc. A freed block is
 * handed out again, last freed first, to the next request of the same rounded size. Fails: NULL if the device is full.
 *
 * Device memory is host memory that the kernel backs at the first touch, so a large device takes no memory before its use.
 */
#include "memory/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define SMALL_LIMIT MIB
#define SMALL_STEP 512
/* Gaps and the sizes that are never joined take address space beyond the device's memory. No more than this factor, since
 * emulators of other machines keep a record of each reserved page. */
#define WINDOW_FACTOR 64
#define WINDOW_LIMIT ((uint64_t)1 << 40)
/* Between the regions that sanitizers keep for themselves (up to 0x4000...) and position-independent programs (0x55...). */
#define WINDOW_LOW 0x410000000000u
#define WINDOW_SPREAD 0x110000000000u
#define UNTOUCHED_LIMIT (64 * MIB) /* from here on a block's old contents are given back to the host */

struct block {
	uint64_t addr, size; /* size as rounded */
	CUdevice device;
	struct block *next_free;
};

/* Freed blocks of one rounded size, last freed first. */
struct bin { uint64_t size; CUdevice device; struct block *free; };

/* All devices have their places in one window. */
static uint64_t window, window_size, cursor, used[MOST_DEVICES];
static struct { uint64_t at, end; } page[MOST_DEVICES]; /* that small blocks are cut from */
static struct bin *bins;
static size_t bin_count, bin_cap;
static struct block **blocks;
static size_t block_count, block_cap;

bool heap_take(CUdevice dev, uint64_t size)
{
	shared_begin(dev);
	uint64_t memory = config_get()->memory, taken = used[dev] + overhead(dev);
	bool fits = taken <= memory && size <= memory - taken;
	if (fits)
		used[dev] += size;
	shared_end(dev, used[dev]);
	usage_tell();
	return fits;
}

static void change(CUdevice dev, uint64_t more, uint64_t less)
{
	shared_begin(dev);
	used[dev] += more - less;
	shared_end(dev, used[dev]);
	usage_tell();
}

void heap_give(CUdevice dev, uint64_t size)
{
	change(dev, 0, size);
}

static bool open_window(void)
{
	if (window)
		return true;
	window_size = WINDOW_FACTOR * ((config_get()->memory + PAGE_SIZE_DEVICE - 1) / PAGE_SIZE_DEVICE * PAGE_SIZE_DEVICE);
	if (window_size > WINDOW_LIMIT)
		window_size = WINDOW_LIMIT;
	for (int attempt = 0; attempt < 64 && !window; attempt++) {
		uint64_t hint = random_base(WINDOW_LOW, WINDOW_SPREAD, PAGE_SIZE_DEVICE);
		void *p = mmap((void *)(uintptr_t)hint, window_size, PROT_NONE,
		               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (p == MAP_FAILED)
			continue;
		if ((uint64_t)(uintptr_t)p != hint) { /* a kernel that takes the flag for a hint */
			munmap(p, window_size);
			continue;
		}
		window = cursor = hint;
		madvise(p, window_size, MADV_DONTDUMP);
	}
	if (!window)
		error_log("reserve address space for device memory: no free range found");
	return window != 0;
}

static struct bin *bin_of(CUdevice dev, uint64_t size)
{
	for (size_t i = 0; i < bin_count; i++)
		if (bins[i].size == size && bins[i].device == dev)
			return &bins[i];
	bins = grow(bins, &bin_cap, bin_count + 1, sizeof(*bins));
	bins[bin_count] = (struct bin){size, dev, NULL};
	return &bins[bin_count++];
}

static struct block *block_new(CUdevice dev, uint64_t addr, uint64_t size)
{
	struct block *b = xalloc(sizeof(*b));
	b->device = dev;
	b->addr = addr;
	b->size = size;
	blocks = grow(blocks, &block_cap, block_count + 1, sizeof(*blocks));
	blocks[block_count++] = b;
	return b;
}

/* Whole pages that were never used before, behind a gap. */
static uint64_t fresh_pages(uint64_t size)
{
	uint64_t gap = random_address() % 8 * PAGE_SIZE_DEVICE;
	if (!open_window() || cursor + gap + size > window + window_size)
		return 0;
	uint64_t addr = cursor + gap;
	if (mprotect((void *)(uintptr_t)addr, size, PROT_READ | PROT_WRITE)) {
		error_log("back device memory at 0x%llx: mprotect failed", (unsigned long long)addr);
		return 0;
	}
	cursor = addr + size;
	return addr;
}

/* The address space of large blocks is never joined again; when all of it has been handed out once, an old block that is
 * large enough serves. */
static struct block *any_free(CUdevice dev, uint64_t size)
{
	struct block *best = NULL;
	struct bin *from = NULL;
	for (size_t i = 0; i < bin_count; i++)
		if (bins[i].free && bins[i].device == dev && bins[i].size >= size && bins[i].size % PAGE_SIZE_DEVICE == 0 &&
		    (!best || bins[i].size < best->size)) {
			best = bins[i].free;
			from = &bins[i];
		}
	if (best)
		from->free = best->next_free;
	return best;
}

static struct block *place_large(CUdevice dev, uint64_t size)
{
	if (!heap_take(dev, size))
		return NULL;
	uint64_t addr = fresh_pages(size);
	struct block *b = addr ? block_new(dev, addr, size) : any_free(dev, size);
	change(dev, b ? b->size : 0, size);
	return b;
}

static struct block *place_small(CUdevice dev, uint64_t size)
{
	if (page[dev].at + size > page[dev].end) {
		if (!heap_take(dev, PAGE_SIZE_DEVICE))
			return NULL;
		uint64_t fresh = fresh_pages(PAGE_SIZE_DEVICE);
		if (!fresh) {
			heap_give(dev, PAGE_SIZE_DEVICE);
			return NULL;
		}
		page[dev].at = fresh;
		page[dev].end = fresh + PAGE_SIZE_DEVICE;
	}
	struct block *b = block_new(dev, page[dev].at, size);
	page[dev].at += size;
	return b;
}

struct block *heap_place(CUdevice dev, uint64_t size)
{
	bool small = size <= SMALL_LIMIT;
	uint64_t step = small ? SMALL_STEP : PAGE_SIZE_DEVICE;
	if (size > UINT64_MAX - step)
		return NULL;
	uint64_t rounded = (size + step - 1) / step * step;
	struct bin *bin = bin_of(dev, rounded);
	struct block *b = bin->free;
	if (b && (small || heap_take(dev, rounded))) {
		bin->free = b->next_free;
	} else {
		b = small ? place_small(dev, rounded) : place_large(dev, rounded);
		if (b && b->size < UNTOUCHED_LIMIT && config_get()->compute)
			memset((void *)(uintptr_t)b->addr, HEAP_PATTERN, b->size);
	}
	return b;
}

void heap_return(struct block *b)
{
	struct bin *bin = bin_of(b->device, b->size);
	b->next_free = bin->free;
	bin->free = b;
	/* A page that small blocks were cut from stays the device's. */
	if (b->size > SMALL_LIMIT)
		heap_give(b->device, b->size);
	if (b->size >= UNTOUCHED_LIMIT)
		madvise((void *)(uintptr_t)b->addr, b->size, MADV_DONTNEED);
}

uint64_t block_address(const struct block *b)
{
	return b->addr;
}

uint64_t heap_free(CUdevice dev)
{
	uint64_t memory = config_get()->memory, taken = used[dev] + overhead(dev);
	return taken < memory ? memory - taken : 0;
}

uint64_t heap_used(void)
{
	uint64_t sum = 0;
	for (CUdevice dev = 0; dev < MOST_DEVICES; dev++)
		sum += used[dev] + overhead_own(dev);
	return sum;
}

bool range_host(uint64_t addr)
{
	return (!window || addr < window || addr >= window + window_size) && !range_reserved(addr) && !range_imported(addr);
}
