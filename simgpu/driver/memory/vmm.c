/*
 * vmm.c: virtual memory management: reserved ranges of addresses, physical memory without an address, mappings of one into
 * the other, and who may access them.
 *
 * In: the cuMemAddressReserve and cuMemCreate families. Out: ranges, handles and, in allocations.c, one allocation a
 * mapping, which is no live memory before cuMemSetAccess. Fails: INVALID_VALUE for ranges that are not whole (sizes and
 * addresses in units of 2 MiB, mappings of one reservation, unmapping of whole mappings), OUT_OF_MEMORY, and with
 * SIMGPU_VMM_HINTS=fail for any address that was asked for. SIMGPU_VMM_HINTS=refuse grants another one, as drivers may, and a number
 * of bytes does so for larger reservations. Any that is below 32 MiB gets another one, too.
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

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define GRANULARITY PAGE_SIZE_DEVICE
#define HOST_PAGE 4096
#define LEAST_HONOURED (32 * MIB) /* smaller reservations come from pieces that driver 580.159 has already */
#define EXPORTED "simgpu-exported-" /* name of a memory file, before the number of the device on the machine */
#define FILE_STEP ((uint64_t)64 << 30) /* a hole takes no memory */
#define UNTOUCHED_LIMIT (64 * MIB) /* as in heap.c: larger memory is not filled with a pattern */

struct reservation { uint64_t addr, size; };

struct physical {
	uint64_t offset, size; /* in the file */
	int file;
	bool own, imported; /* the file is this memory's alone; it is another process's */
	unsigned refs;         /* of the application: cuMemCreate and cuMemRetainAllocationHandle */
	unsigned mappings;
	CUmemAllocationProp prop;
};

static struct reservation *reserved;
static size_t reserved_count, reserved_cap, handle_count;
static int memory_file = -1;
static uint64_t file_end, file_size; /* handed out; made. No part is ever handed out twice */

/* ---- addresses -------------------------------------------------------------------------------------------------- */

static uint64_t reserve_at(uint64_t addr, uint64_t size)
{
	void *p = mmap((void *)(uintptr_t)addr, size, PROT_NONE,
	               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == MAP_FAILED)
		return 0;
	if ((uint64_t)(uintptr_t)p != addr) { /* a kernel that takes the flag for a hint */
		munmap(p, size);
		return 0;
	}
	madvise(p, size, MADV_DONTDUMP);
	return addr;
}

/* Below the window of plain allocations, another place in each process. */
uint64_t reserve_anywhere(uint64_t size, uint64_t alignment)
{
	for (int attempt = 0; attempt < 64; attempt++) {
		uint64_t addr = random_base(0x200000000000u, 0x0f0000000000u, alignment);
		if (reserve_at(addr, size))
			return addr;
	}
	return 0;
}

static struct reservation *reservation_of(uint64_t addr, uint64_t size)
{
	for (size_t i = 0; i < reserved_count; i++)
		if (addr - reserved[i].addr < reserved[i].size && size <= reserved[i].size - (addr - reserved[i].addr))
			return &reserved[i];
	return NULL;
}

bool range_reserved(uint64_t addr)
{
	return reservation_of(addr, 1) != NULL;
}

CUresult sim_cuMemAddressReserve(struct call *c, CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, uint64_t flags)
{
	enum vmm_hints hints = config_get()->vmm_hints;
	uint64_t got = 0, step = alignment > GRANULARITY ? alignment : GRANULARITY;
	if (!ptr || !size || size % GRANULARITY || addr % GRANULARITY || alignment & (alignment - 1) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (addr && hints == HINTS_FAIL)
		return CUDA_ERROR_INVALID_VALUE;
	if (addr && hints == HINTS_HONOUR && addr % step == 0 && size >= LEAST_HONOURED && size <= config_get()->hint_limit && !maps_noted(addr, size))
		got = reserve_at(addr, size);
	if (!got)
		got = reserve_anywhere(size, step);
	if (!got)
		return CUDA_ERROR_OUT_OF_MEMORY;
	reserved = grow(reserved, &reserved_cap, reserved_count + 1, sizeof(*reserved));
	reserved[reserved_count++] = (struct reservation){got, size};
	*ptr = got;
	call_detail(c, "addr=0x%llx\tbytes=%zu\thint=0x%llx", (unsigned long long)got, size, (unsigned long long)addr);
	return CUDA_SUCCESS;
}

CUresult sim_cuMemAddressFree(struct call *c, CUdeviceptr ptr, size_t size)
{
	struct reservation *r = reservation_of(ptr, size);
	call_detail(c, "addr=0x%llx\tbytes=%zu", (unsigned long long)ptr, size);
	if (!size || !r || r->addr != ptr || r->size != size || allocation_within(ptr, size))
		return CUDA_ERROR_INVALID_VALUE;
	munmap((void *)(uintptr_t)ptr, size);
	*r = reserved[--reserved_count];
	return CUDA_SUCCESS;
}

/* ---- physical memory -------------------------------------------------------------------------------------------- */

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
	*granularity = GRANULARITY;
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

static CUmemGenericAllocationHandle physical_add(struct physical made)
{
	struct physical *p = xalloc(sizeof(*p));
	*p = made;
	handle_count++;
	object_add(p, OBJECT_PHYSICAL);
	return (uintptr_t)p;
}

CUresult sim_cuMemCreate(struct call *c, CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop, uint64_t flags)
{
	CUresult r = prop_check(c, prop);
	if (r)
		return r;
	if (!handle || !size || size % GRANULARITY || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (memory_file < 0)
		memory_file = memfd_create("device memory", MFD_CLOEXEC);
	if (memory_file < 0 || !heap_take(prop->location.id, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!file_holds(file_end + size) || (size < UNTOUCHED_LIMIT && config_get()->compute && !fill(file_end, size))) {
		heap_give(prop->location.id, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*handle = physical_add((struct physical){.offset = file_end, .size = size, .file = memory_file, .refs = 1, .prop = *prop});
	file_end += size;
	call_detail(c, "handle=0x%llx\tbytes=%zu", (unsigned long long)*handle, size);
	return CUDA_SUCCESS;
}

static void unref(struct physical *p)
{
	if (p->refs || p->mappings)
		return;
	if (p->own)
		close(p->file);
	else
		fallocate(p->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)p->offset, (off_t)p->size);
	if (!p->imported)
		heap_give(p->prop.location.id, p->size);
	object_remove(p);
	handle_count--;
	free(p);
}

static CUresult physical_resolve(CUmemGenericAllocationHandle handle, struct physical **out)
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
	unref(p);
	return CUDA_SUCCESS;
}

CUresult sim_cuMemRetainAllocationHandle(struct call *c, CUmemGenericAllocationHandle *handle, void *addr)
{
	struct allocation *a = allocation_at((uintptr_t)addr);
	(void)c;
	if (!handle || !a || a->kind != ALLOC_VMM)
		return CUDA_ERROR_INVALID_VALUE;
	a->physical->refs++;
	*handle = (uintptr_t)a->physical;
	return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAllocationPropertiesFromHandle(struct call *c, CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	struct physical *p;
	CUresult r = physical_resolve(handle, &p);
	(void)c;
	if (r || !prop)
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
static bool move_out(struct physical *p)
{
	char name[64];
	snprintf(name, sizeof(name), EXPORTED "%d", device_number(p->prop.location.id));
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
	int file = p->own || move_out(p) ? fcntl(p->file, F_DUPFD_CLOEXEC, 3) : -1;
	if (file < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(int *)shareable_handle = file;
	return CUDA_SUCCESS;
}

/* The number of the device whose exported memory a descriptor is; -1: it is none. */
static int exported(int file)
{
	char link[64], target[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = 0;
	return strncmp(target, "/memfd:" EXPORTED, sizeof("/memfd:" EXPORTED) - 1) == 0 ? atoi(target + sizeof("/memfd:" EXPORTED) - 1) : -1;
}

/* The descriptor stays the application's. */
CUresult sim_cuMemImportFromShareableHandle(struct call *c, CUmemGenericAllocationHandle *handle, void *os_handle, CUmemAllocationHandleType sh_handle_type)
{
	int file = (int)(intptr_t)os_handle, number = exported(file);
	CUdevice dev = device_numbered(number);
	struct stat s;
	if (!handle || sh_handle_type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || number < 0 || fstat(file, &s) || (file = fcntl(file, F_DUPFD_CLOEXEC, 3)) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct physical made = {.size = (uint64_t)s.st_size, .refs = 1, .file = file, .own = true, .imported = true};
	made.prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = sh_handle_type};
	made.prop.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, dev < 0 ? device_current() : dev};
	*handle = physical_add(made);
	call_detail(c, "handle=0x%llx\tbytes=%llu", (unsigned long long)*handle, (unsigned long long)made.size);
	return CUDA_SUCCESS;
}

/* ---- mappings --------------------------------------------------------------------------------------------------- */

CUresult sim_cuMemMap(struct call *c, CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, uint64_t flags)
{
	struct physical *p;
	CUresult r = physical_resolve(handle, &p);
	if (r)
		return r;
	call_detail(c, "addr=0x%llx\tbytes=%zu\thandle=0x%llx", (unsigned long long)ptr, size, (unsigned long long)handle);
	if (!size || ptr % GRANULARITY || size % GRANULARITY || offset || flags || size > p->size || !reservation_of(ptr, size) ||
	    allocation_within(ptr, size))
		return CUDA_ERROR_INVALID_VALUE;
	if (mmap((void *)(uintptr_t)ptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->file, (off_t)p->offset) == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->mappings++;
	call_detail(c, "index=%llu", (unsigned long long)allocation_mapping(ptr, size, p->prop.location.id, p)->index);
	return CUDA_SUCCESS;
}

/* Calls visit for each mapping of [ptr, ptr+size), which must consist of whole ones. */
static CUresult each_mapping(uint64_t ptr, uint64_t size, void (*visit)(struct allocation *a, const void *arg), const void *arg)
{
	for (int pass = 0; pass < 2; pass++)
		for (uint64_t at = ptr; at < ptr + size;) {
			struct allocation *a = allocation_at(at);
			if (!a || a->kind != ALLOC_VMM || a->base != at || a->size > ptr + size - at)
				return CUDA_ERROR_INVALID_VALUE;
			at += a->size;
			if (pass)
				visit(a, arg);
		}
	return size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void unmap(struct allocation *a, const void *arg)
{
	struct physical *p = a->physical;
	(void)arg;
	mmap((void *)(uintptr_t)a->base, a->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	allocation_end(a);
	p->mappings--;
	unref(p);
}

/* Work that is still queued finds the memory gone, as on a device: the driver does not wait for it. */
CUresult sim_cuMemUnmap(struct call *c, CUdeviceptr ptr, size_t size)
{
	call_detail(c, "addr=0x%llx\tbytes=%zu", (unsigned long long)ptr, size);
	return each_mapping(ptr, size, unmap, NULL);
}

/* What a list of descriptions says of each device. */
struct access { unsigned named, granted; };

static void set_access(struct allocation *a, const void *arg)
{
	const struct access *to = arg;
	a->access = (a->access & ~to->named) | to->granted;
}

CUresult sim_cuMemSetAccess(struct call *c, CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	struct access to = {0, 0};
	call_detail(c, "addr=0x%llx\tbytes=%zu", (unsigned long long)ptr, size);
	if (!desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			return call_unsupported_part(c, "access by the host");
		if (device_check(desc[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
			return call_unsupported_part(c, "read-only mappings");
		unsigned bit = 1u << desc[i].location.id;
		if (to.named & bit || (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
			return CUDA_ERROR_INVALID_VALUE;
		to.named |= bit;
		to.granted |= desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? bit : 0;
	}
	return each_mapping(ptr, size, set_access, &to);
}

CUresult sim_cuMemGetAccess(struct call *c, uint64_t *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	const struct allocation *a = allocation_at(ptr);
	(void)c;
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE || device_check(location->id) || !a || a->kind != ALLOC_VMM)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = a->access >> location->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

void vmm_leaks(size_t *handles, size_t *ranges)
{
	*handles = handle_count;
	*ranges = reserved_count;
}
