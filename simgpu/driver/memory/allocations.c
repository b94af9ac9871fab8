/*
 * allocations.c: the table of live memory, device and host, and the checks of addresses against it.
 *
 * In: allocations as they begin and end. Out: which allocation holds an address. Fails: allocation_new if the device
 * or the host is out of memory. Every allocation gets the next index of the process, also the freed ones had theirs.
 */
#include "memory/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HOST_PAGE 4096
#define RETURNED_LEAST (64 << 10) /* fewer zeros are written */

static struct allocation **table; /* ordered by base */
static size_t count, cap;
static uint64_t next_index;

/* The first allocation whose base is above addr. */
static size_t above(uint64_t addr)
{
	size_t lo = 0, hi = count;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (table[mid]->base <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct allocation *allocation_at(uint64_t addr)
{
	size_t i = above(addr);
	if (!i)
		return NULL;
	struct allocation *a = table[i - 1];
	return addr - a->base < a->size ? a : NULL;
}

/* Loads and stores at a multicast address are undefined on hardware: it is memory for multimem instructions alone (multicast.c). */
static bool live(const struct allocation *a)
{
	if (a->kind == ALLOC_VMM && a->physical->team)
		return false;
	/* Memory of another process goes with its owner's cuMemFree. */
	return (a->kind != ALLOC_VMM || a->access) && (a->kind != ALLOC_IPC || !*a->ticket->gone);
}

/* Whether work of a context may touch live memory. That of another device is subject to peer access, except mappings, which have an access of
 * their own, and memory of a pool, which cuMemPoolSetAccess would open. */
static bool reached(const struct context *ctx, const struct allocation *a, enum touch by)
{
	if (!live(a))
		return false;
	switch (a->kind) {
	case ALLOC_VMM: return a->access >> ctx->device & 1;
	case ALLOC_MANAGED:
	case ALLOC_PINNED:
	case ALLOC_REGISTERED: return true;
	case ALLOC_ASYNC:
	case ALLOC_POOL: return a->device == ctx->device;
	default: return a->device == ctx->device || by == BY_COPY || context_reaches(ctx, a->ctx);
	}
}

/* ctx NULL: of any context */
static bool covered(const struct context *ctx, uint64_t addr, uint64_t size, enum touch by)
{
	for (;;) {
		const struct allocation *a = allocation_at(addr);
		if (!a || !(ctx ? reached(ctx, a, by) : live(a)))
			return false;
		uint64_t here = a->base + a->size - addr;
		if (size <= here)
			return true;
		if (a->kind != ALLOC_VMM)
			return false;
		size -= here;
		addr += here;
	}
}

bool range_live(uint64_t addr, uint64_t size) { return covered(NULL, addr, size, BY_KERNEL); }

bool range_reached(const struct context *ctx, uint64_t addr, uint64_t size, enum touch by) { return covered(ctx, addr, size, by); }

/* Whether the pages of an allocation can be given back to the host, which has zeros there then. */
static bool returned(const struct allocation *a, void *pages, uint64_t size)
{
	if (a->kind == ALLOC_VMM)
		return madvise(pages, size, MADV_REMOVE) == 0;
	return a->block && !range_exported(a->base) && madvise(pages, size, MADV_DONTNEED) == 0;
}

void memory_zero(uint64_t addr, uint64_t size)
{
	while (size) {
		const struct allocation *a = allocation_at(addr);
		uint64_t here = a ? a->base + a->size - addr : size;
		here = here < size ? here : size;
		uint64_t from = (addr + HOST_PAGE - 1) / HOST_PAGE * HOST_PAGE, to = (addr + here) / HOST_PAGE * HOST_PAGE;
		if (a && here >= RETURNED_LEAST && returned(a, (void *)(uintptr_t)from, to - from)) {
			memset((void *)(uintptr_t)addr, 0, from - addr);
			memset((void *)(uintptr_t)to, 0, addr + here - to);
		} else {
			memset((void *)(uintptr_t)addr, 0, here);
		}
		addr += here;
		size -= here;
	}
}

static struct ptx_range find(void *ctx, uint64_t addr)
{
	const struct allocation *a = allocation_at(addr);
	return a && reached(ctx, a, BY_KERNEL) ? (struct ptx_range){a->base, a->size} : (struct ptx_range){0, 0};
}

struct ptx_memory memory_of(struct context *ctx) { return (struct ptx_memory){find, ctx, multicast_hosts}; }

bool allocation_within(uint64_t base, uint64_t size)
{
	size_t i = above(base);
	return (i && base - table[i - 1]->base < table[i - 1]->size) || (i < count && table[i]->base - base < size);
}

static CUresult locate(struct allocation *a)
{
	if (a->kind == ALLOC_REGISTERED)
		return allocation_within(a->base, a->size) ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_SUCCESS;
	if (a->kind == ALLOC_PINNED) {
		void *p = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return CUDA_ERROR_OUT_OF_MEMORY;
		a->base = (uintptr_t)p;
		return CUDA_SUCCESS;
	}
	a->block = heap_place(a->device, a->size);
	if (!a->block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a->base = block_address(a->block);
	return CUDA_SUCCESS;
}

static void enter(struct allocation *a)
{
	table = grow(table, &cap, count + 1, sizeof(*table));
	size_t i = above(a->base);
	memmove(table + i + 1, table + i, (count - i) * sizeof(*table));
	table[i] = a;
	count++;
	truth_alloc(a);
}

/* For ALLOC_REGISTERED *out holds the address on entry, in an allocation that only has a base. */
CUresult allocation_new(struct context *ctx, enum alloc_kind kind, uint64_t size, unsigned flags, struct allocation **out)
{
	struct allocation *a = xalloc(sizeof(*a));
	a->base = kind == ALLOC_REGISTERED ? (*out)->base : 0;
	a->size = size;
	a->kind = kind;
	a->flags = flags;
	a->ctx = ctx;
	a->device = ctx->device;
	CUresult r = locate(a);
	if (r) {
		free(a);
		return r;
	}
	a->index = kind == ALLOC_GLOBAL ? UINT64_MAX : next_index++;
	enter(a);
	*out = a;
	return CUDA_SUCCESS;
}

/* It belongs to no context: mappings outlive those. */
struct allocation *allocation_mapping(uint64_t addr, uint64_t size, CUdevice dev, struct physical *p)
{
	struct allocation *a = xalloc(sizeof(*a));
	*a = (struct allocation){.base = addr, .size = size, .kind = ALLOC_VMM, .device = dev, .physical = p, .index = next_index++};
	enter(a);
	return a;
}

struct allocation *allocation_import(struct context *ctx, uint64_t addr, uint64_t size, struct ticket *t, struct import *i)
{
	struct allocation *a = xalloc(sizeof(*a));
	*a = (struct allocation){.base = addr, .size = size, .kind = ALLOC_IPC, .ctx = ctx, .device = ctx->device, .ticket = t, .import = i, .index = next_index++};
	enter(a);
	return a;
}

void allocation_end(struct allocation *a)
{
	truth_free(a);
	size_t i = above(a->base) - 1;
	count--;
	memmove(table + i, table + i + 1, (count - i) * sizeof(*table));
	if (a->kind == ALLOC_IPC)
		import_end(a);
	else if (a->ticket)
		export_end(a);
	if (a->kind == ALLOC_PINNED)
		munmap((void *)(uintptr_t)a->base, a->size);
	else if (a->block)
		heap_return(a->block);
	if (a->pool)
		a->pool->used -= a->size;
	free(a);
}

void allocations_end(struct context *ctx)
{
	for (size_t i = count; i-- > 0;)
		if (table[i]->ctx == ctx)
			allocation_end(table[i]);
}

void allocations_each(void (*visit)(struct allocation *a, void *arg), void *arg)
{
	for (size_t i = 0; i < count; i++)
		visit(table[i], arg);
}

size_t allocation_count(void)
{
	return count;
}
