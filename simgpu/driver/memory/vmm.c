/*
 * vmm.c: virtual memory management: reserved ranges of addresses, mappings of physical memory and multicast objects into them, and who
 * may access them.
 *
 * In: the cuMemAddressReserve and cuMemMap families. Out: ranges and, in allocations.c, one allocation a mapping, which is no live memory
 * before cuMemSetAccess. Fails: INVALID_VALUE for ranges that are not whole (sizes and addresses in units of 2 MiB, mappings of one
 * reservation, unmapping of whole mappings), OUT_OF_MEMORY, and with SIMGPU_VMM_HINTS=fail for any address that was asked for.
 * SIMGPU_VMM_HINTS=refuse grants another one, as drivers may, and a number of bytes does so for larger reservations. Any that is below
 * 32 MiB gets another one, too.
 */
#include "memory/memory.h"

#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define LEAST_HONOURED (32 * MIB) /* smaller reservations come from pieces that driver 580.159 has already */

struct reservation { uint64_t addr, size; };

static struct reservation *reserved;
static size_t reserved_count, reserved_cap;

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
	uint64_t got = 0, step = alignment > VMM_GRANULARITY ? alignment : VMM_GRANULARITY;
	if (!ptr || !size || size % VMM_GRANULARITY || addr % VMM_GRANULARITY || alignment & (alignment - 1) || flags)
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

/* ---- mappings --------------------------------------------------------------------------------------------------- */

CUresult sim_cuMemMap(struct call *c, CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, uint64_t flags)
{
	struct physical *p;
	CUresult r = physical_resolve(handle, &p);
	if (r)
		return r;
	call_detail(c, "addr=0x%llx\tbytes=%zu\thandle=0x%llx", (unsigned long long)ptr, size, (unsigned long long)handle);
	if (!size || ptr % VMM_GRANULARITY || size % VMM_GRANULARITY || offset || flags || size > p->size || !reservation_of(ptr, size) ||
	    allocation_within(ptr, size))
		return CUDA_ERROR_INVALID_VALUE;
	p->mappings++; /* keeps it while the call waits */
	if (p->team) /* its addresses hold no memory of their own */
		team_wait(p->team);
	else if (mmap((void *)(uintptr_t)ptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, p->file, (off_t)p->offset) == MAP_FAILED)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r && p->team && (!reservation_of(ptr, size) || allocation_within(ptr, size))) /* meanwhile */
		r = CUDA_ERROR_INVALID_VALUE;
	if (r) {
		p->mappings--;
		physical_unref(p);
		return r;
	}
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
	physical_unref(p);
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
	*handles = object_count(OBJECT_PHYSICAL);
	*ranges = reserved_count;
}
