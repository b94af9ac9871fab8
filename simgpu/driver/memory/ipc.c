/*
 * ipc.c: device memory of another process of this machine, by handles.
 *
 * In: the cuIpc calls for memory. Out: handles, and memory of another process at an address of this one. Fails: INVALID_VALUE for a
 * pointer that is not the base of memory of cuMemAlloc, and for other flags than the one that there is; INVALID_CONTEXT for a handle of
 * this process, and for a second context that opens handles of one process; otherwise as ticket.c says.
 *
 * Device memory is private to its process until a handle is asked for. Then its pages become a memory file, with their contents. Small
 * allocations share pages, so their neighbours' bytes can be seen as well, as on a device. Memory that its owner has freed can no longer be
 * read (documented as undefined). Each process has a simulated device of its own: another one's memory does not count there.
 */
#include "memory/memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOST_PAGE 4096
#define UNTOUCHED_LIMIT (64 * MIB) /* as in heap.c: the contents of larger memory are given back to the host with its end */

/* Pages of this process in a memory file. They stay there, since their addresses are used again. */
struct shared { uint64_t addr, size, number; int file; };

struct import {
	int process;
	uint64_t mapping, mapped;
	unsigned opened;
	struct import *next;
	struct allocation *a;
};

static struct shared *shared;
static size_t shared_count, shared_cap;
static struct import *imports;

static void file_name(char *name, size_t size, uint64_t number)
{
	snprintf(name, size, "simgpu-memory-%016llx", (unsigned long long)number);
}

/* ---- of this process -------------------------------------------------------------------------------------------- */

static bool copy_touched(int file, uint64_t addr, uint64_t size)
{
	static const char untouched[HOST_PAGE];
	for (uint64_t at = 0; at < size; at += HOST_PAGE) {
		const void *page = (const void *)(uintptr_t)(addr + at);
		if (memcmp(page, untouched, HOST_PAGE) && pwrite(file, page, HOST_PAGE, (off_t)at) != HOST_PAGE)
			return false;
	}
	return true;
}

/* The driver's lock is held, so no work writes to the memory meanwhile. */
static struct shared *share(uint64_t base, uint64_t bytes, uint64_t number)
{
	uint64_t addr = base / PAGE_SIZE_DEVICE * PAGE_SIZE_DEVICE;
	uint64_t size = (base + bytes + PAGE_SIZE_DEVICE - 1) / PAGE_SIZE_DEVICE * PAGE_SIZE_DEVICE - addr;
	char name[64];
	for (size_t i = 0; i < shared_count; i++)
		if (addr >= shared[i].addr && addr + size <= shared[i].addr + shared[i].size)
			return &shared[i];
	file_name(name, sizeof(name), number);
	int file = memfd_create(name, MFD_CLOEXEC);
	if (file < 0)
		return NULL;
	if (ftruncate(file, (off_t)size) || !copy_touched(file, addr, size) ||
	    mmap((void *)(uintptr_t)addr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
		close(file);
		return NULL;
	}
	madvise((void *)(uintptr_t)addr, size, MADV_DONTDUMP);
	shared = grow(shared, &shared_cap, shared_count + 1, sizeof(*shared));
	shared[shared_count] = (struct shared){addr, size, number, file};
	return &shared[shared_count++];
}

CUresult sim_cuIpcGetMemHandle(struct call *c, CUipcMemHandle *handle, CUdeviceptr ptr)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct allocation *a = allocation_at(ptr);
	call_detail(c, "addr=0x%llx", (unsigned long long)ptr);
	if (!handle || !a || a->base != ptr || a->kind != ALLOC_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!a->ticket && !(a->ticket = ticket_new()))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct shared *s = share(a->base, a->size, a->ticket->number);
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct handle h = ticket_handle(a->ticket, HANDLE_MEMORY);
	h.file = s->file;
	h.offset = a->base - s->addr;
	h.size = a->size;
	h.mapped = s->size;
	h.range = s->number;
	memcpy(handle, &h, sizeof(h));
	call_detail(c, "index=%llu", (unsigned long long)a->index);
	return CUDA_SUCCESS;
}

void export_end(struct allocation *a)
{
	ticket_end(a->ticket);
	for (size_t i = 0; i < shared_count; i++)
		if (shared[i].addr == a->base && shared[i].size >= UNTOUCHED_LIMIT)
			fallocate(shared[i].file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)shared[i].size);
}

bool range_exported(uint64_t addr)
{
	for (size_t i = 0; i < shared_count; i++)
		if (addr - shared[i].addr < shared[i].size)
			return true;
	return false;
}

/* ---- of another process ----------------------------------------------------------------------------------------- */

bool range_imported(uint64_t addr)
{
	for (const struct import *i = imports; i; i = i->next)
		if (addr - i->mapping < i->mapped)
			return true;
	return false;
}

static CUresult map(struct call *c, const struct handle *h, struct ticket *t, struct allocation **out)
{
	char name[64];
	file_name(name, sizeof(name), h->range);
	int file = handle_file(h, h->file, name);
	if (file < 0)
		return (CUresult)-file;
	uint64_t at = reserve_anywhere(h->mapped, PAGE_SIZE_DEVICE);
	void *p = at ? mmap((void *)(uintptr_t)at, h->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) : MAP_FAILED;
	close(file);
	if (p == MAP_FAILED)
		return CUDA_ERROR_MAP_FAILED;
	struct import *i = xalloc(sizeof(*i));
	*i = (struct import){h->process, at, h->mapped, 1, imports, NULL};
	imports = i;
	*out = i->a = allocation_import(c->ctx, at + h->offset, h->size, t, i);
	return CUDA_SUCCESS;
}

CUresult sim_cuIpcOpenMemHandle_v2(struct call *c, CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	if (!ptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	struct handle h;
	struct ticket *t = NULL;
	struct allocation *a = NULL;
	memcpy(&h, &handle, sizeof(h));
	if ((r = handle_open(&h, HANDLE_MEMORY, &t)))
		return r;
	for (const struct import *i = imports; i && !r; i = i->next) {
		if (i->process == h.process && i->a->ctx != c->ctx)
			r = CUDA_ERROR_INVALID_CONTEXT;
		else if (i->a->ticket->number == h.number)
			a = i->a;
	}
	if (!r && !a)
		r = map(c, &h, t, &a);
	else {
		if (!r)
			a->import->opened++;
		ticket_end(t);
		t = NULL;
	}
	if (r) {
		ticket_end(t);
		return r;
	}
	*ptr = a->base;
	call_detail(c, "addr=0x%llx\tbytes=%llu\tindex=%llu", (unsigned long long)a->base, (unsigned long long)a->size,
	            (unsigned long long)a->index);
	return CUDA_SUCCESS;
}

CUresult sim_cuIpcOpenMemHandle(struct call *c, CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	return sim_cuIpcOpenMemHandle_v2(c, ptr, handle, flags);
}

void import_end(struct allocation *a)
{
	struct import *gone = a->import, **at = &imports;
	while (*at != gone)
		at = &(*at)->next;
	*at = gone->next;
	munmap((void *)(uintptr_t)gone->mapping, gone->mapped);
	ticket_end(a->ticket);
	free(gone);
}

/* Work that is still queued finds the memory gone. */
CUresult sim_cuIpcCloseMemHandle(struct call *c, CUdeviceptr ptr)
{
	CUresult r = call_context(c);
	if (r)
		return r;
	struct allocation *a = allocation_at(ptr);
	call_detail(c, "addr=0x%llx", (unsigned long long)ptr);
	if (!a || a->base != ptr || a->kind != ALLOC_IPC)
		return CUDA_ERROR_INVALID_VALUE;
	call_detail(c, "index=%llu", (unsigned long long)a->index);
	if (--a->import->opened == 0)
		allocation_end(a);
	return CUDA_SUCCESS;
}
