/*
 * physical.c: physical memory without an address, in one process and between several.
 *
 * In: the cuMemCreate family, and descriptors of memory of another process. Out: handles. Fails: INVALID_VALUE for sizes that are no
 * multiple of 2 MiB, OUT_OF_MEMORY.
 *
 * Physical memory is a piece of one memory file, so that it keeps its contents from mapping to mapping. Once it is exported, it has a file of
 * its own, whose descriptor is the handle for other processes. It lives until the last of them has released it. Imported memory does not count on
 * a device of the process.
 */
#include "memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOST_PAGE 4096
#define FILE_STEP ((uint64_t)64 << 30) /* a hole takes no memory */
#define UNTOUCHED_LIMIT (64 * MIB) /* as in heap.c: larger memory is not filled with a pattern */

#define EXPORTED "simgpu-exported-" /* name of a memory file, before the number of the device on the machine */

static int memory_file = -1;
static uint64_t file_end, file_size; /* handed out; made. No part is ever handed out twice */

void exported_name(char *name, size_t size, int number) { snprintf(name, size, EXPORTED "%d", number); }

static CUresult prop_check(struct call *c, const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return call_unsupported_part(c, "memory that is not the device's");
	if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE && prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return call_unsupported_part(c, "memory with handles other than file descriptors");
	return device_check(prop->location.id);
}

CUresult sim_cuMemGetAllocationGranularity(struct call *c, size_t *granularity, const CUmemAllocationProp *prop, int option)
{
	CUresult r = prop_check(c, prop);
	if (r || !granularity || (option != 0 && option != 1))
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*granularity = VMM_GRANULARITY;
	return CUDA_SUCCESS;
}

static bool fill(uint64_t offset, uint64_t size)
{
	static unsigned char pattern[MIB];
	memset(pattern, HEAP_PATTERN, sizeof(pattern));
	for (uint64_t at = 0; at < size; at += sizeof(pattern))
		if (pwrite(memory_file, pattern, sizeof(pattern), (off_t)(offset + at)) != sizeof(pattern))
			return false;
	return true;
}

static bool file_holds(uint64_t end)
{
	uint64_t size = (end + FILE_STEP - 1) / FILE_STEP * FILE_STEP;
	if (end <= file_size)
		return true;
	if (ftruncate(memory_file, (off_t)size))
		return false;
	file_size = size;
	return true;
}

CUmemGenericAllocationHandle physical_add(struct physical made)
{
	struct physical *p = xalloc(sizeof(*p));
	*p = made;
	object_add(p, OBJECT_PHYSICAL);
	return (uintptr_t)p;
}

CUresult sim_cuMemCreate(struct call *c, CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop, uint64_t flags)
{
	CUresult r = prop_check(c, prop);
	if (r)
		return r;
	if (!handle || !size || size % VMM_GRANULARITY || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (memory_file < 0)
		memory_file = memfd_create("device memory", MFD_CLOEXEC);
	if (memory_file < 0 || !heap_take(prop->location.id, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!file_holds(file_end + size) || (size < UNTOUCHED_LIMIT && config_get()->compute && !fill(file_end, size))) {
		heap_give(prop->location.id, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*handle = physical_add((struct physical){.offset = file_end, .size = size, .file = memory_file, .number = device_number(prop->location.id), .refs = 1, .prop = *prop});
	file_end += size;
	call_detail(c, "handle=0x%llx\tbytes=%zu", (unsigned long long)*handle, size);
	return CUDA_SUCCESS;
}

void physical_unref(struct physical *p)
{
	if (p->refs || p->mappings)
		return;
	if (p->team)
		team_end(p->team);
	if (p->own)
		close(p->file);
	else
		fallocate(p->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)p->offset, (off_t)p->size);
	if (!p->imported)
		heap_give(p->prop.location.id, p->size);
	object_remove(p);
	free(p);
}

CUresult physical_resolve(CUmemGenericAllocationHandle handle, struct physical **out)
{
	*out = (struct physical *)(uintptr_t)handle;
	return object_live(*out, OBJECT_PHYSICAL) && (*out)->refs ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemRelease(struct call *c, CUmemGenericAllocationHandle handle)
{
	struct physical *p;
	CUresult r = physical_resolve(handle, &p);
	call_detail(c, "handle=0x%llx", (unsigned long long)handle);
	if (r)
		return r;
	p->refs--;
	physical_unref(p);
	return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAllocationPropertiesFromHandle(struct call *c, CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	struct physical *p;
	CUresult r = physical_resolve(handle, &p);
	(void)c;
	if (r || !prop || p->team)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*prop = p->prop;
	return CUDA_SUCCESS;
}

/* ---- of several processes --------------------------------------------------------------------------------------- */

static void map_again(struct allocation *a, void *arg)
{
	const struct physical *p = arg;
	if (a->kind == ALLOC_VMM && a->physical == p)
		mmap((void *)(uintptr_t)a->base, a->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->file, (off_t)p->offset);
}

/* Gives memory a file of its own, with its contents. The driver's lock is held, so no work writes to the memory meanwhile. */
bool physical_move_out(struct physical *p)
{
	char name[64];
	exported_name(name, sizeof(name), p->number);
	int file = memfd_create(name, MFD_CLOEXEC);
	off_t from = (off_t)p->offset, end = (off_t)(p->offset + p->size);
	bool moved = file >= 0 && !ftruncate(file, (off_t)p->size);
	while (moved && from < end) {
		from = lseek(p->file, from, SEEK_DATA); /* holes stay holes */
		if (from < 0 || from >= end) {
			moved = from >= 0 || errno == ENXIO;
			break;
		}
		char piece[HOST_PAGE];
		ssize_t n = pread(p->file, piece, sizeof(piece), from);
		moved = n > 0 && pwrite(file, piece, (size_t)n, from - (off_t)p->offset) == n;
		from += n;
	}
	if (!moved) {
		if (file >= 0)
			close(file);
		return false;
	}
	fallocate(p->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)p->offset, (off_t)p->size);
	p->file = file;
	p->offset = 0;
	p->own = true;
	allocations_each(map_again, p);
	return true;
}

CUresult sim_cuMemExportToShareableHandle(struct call *c, void *shareable_handle, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handle_type, uint64_t flags)
{
	struct physical *p;
	CUresult r = physical_resolve(handle, &p);
	call_detail(c, "handle=0x%llx", (unsigned long long)handle);
	if (r || !shareable_handle || flags || handle_type == CU_MEM_HANDLE_TYPE_NONE || p->prop.requestedHandleTypes != handle_type)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	int file = p->own || physical_move_out(p) ? fcntl(p->file, F_DUPFD_CLOEXEC, 3) : -1;
	if (file < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(int *)shareable_handle = file;
	return CUDA_SUCCESS;
}

/* The number behind the name of an exported file; -1: it has another name. */
static int exported(int file, const char *name)
{
	char link[64], target[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = 0;
	const size_t kind = strlen("/memfd:"), len = strlen(name);
	return strncmp(target, "/memfd:", kind) == 0 && strncmp(target + kind, name, len) == 0 ? atoi(target + kind + len) : -1;
}

/* The descriptor stays the application's. */
CUresult sim_cuMemImportFromShareableHandle(struct call *c, CUmemGenericAllocationHandle *handle, void *os_handle, CUmemAllocationHandleType sh_handle_type)
{
	int file = (int)(intptr_t)os_handle, number = exported(file, EXPORTED);
	CUdevice dev = device_numbered(number);
	struct stat s;
	if (!handle || sh_handle_type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (exported(file, EXPORTED_TEAM) >= 0)
		return team_import(handle, file);
	if (number < 0 || fstat(file, &s) || (file = fcntl(file, F_DUPFD_CLOEXEC, 3)) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct physical made = {.size = (uint64_t)s.st_size, .refs = 1, .file = file, .number = number, .own = true, .imported = true};
	made.prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = sh_handle_type};
	made.prop.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, dev < 0 ? device_current() : dev};
	*handle = physical_add(made);
	call_detail(c, "handle=0x%llx\tbytes=%llu", (unsigned long long)*handle, (unsigned long long)made.size);
	return CUDA_SUCCESS;
}
