/*
 * multicast.c: see multicast.h.
 *
 * A handle is an object's from cuMulticastCreate on, or in a process that imported it, from the call that adds a device: a mapping comes
 * later, because it waits for that. A handle is bound memory's from the binding on, and earlier mappings of it count as well. The driver may
 * give a number again, but not before cuMemCreate or cuMulticastCreate returns it.
 */
#include "multicast.h"

#include "core.h"
#include "maps.h"
#include "table.h"

struct mapping { CUmemGenericAllocationHandle handle; uint64_t addr, size; uint32_t id; };

/* All under core.h's lock. */
static struct mapping *mappings;
static size_t n_mappings, mappings_cap;
static struct map handles; /* that belong to an object; values are those of reason_of */
static struct map marked;  /* allocations with a record, by number + 1 */

enum { OBJECT = 1, BOUND };

static void mark(const struct mapping *m, uint64_t as)
{
	const struct alloc *a = maps_at(m->addr);
	struct trace_writer *w = core_trace();
	if (!a || !a->live || a->trigger || a->id != m->id || map_get(&marked, (uint64_t)a->id + 1, 0))
		return;
	map_put(&marked, (uint64_t)a->id + 1, as);
	if (w)
		trace_multicast(w, a->id, as == OBJECT ? "cuMulticastCreate: an address of several GPUs" : "cuMulticastBindMem: memory that several GPUs write");
}

static void belongs(CUmemGenericAllocationHandle handle, uint64_t as)
{
	map_put(&handles, handle, as);
	for (size_t i = 0; i < n_mappings; i++)
		if (mappings[i].handle == handle)
			mark(&mappings[i], as);
}

/* The number is another object's now. */
static void forget(CUmemGenericAllocationHandle handle)
{
	map_remove(&handles, handle);
	for (size_t i = n_mappings; i-- > 0;)
		if (mappings[i].handle == handle)
			mappings[i] = mappings[--n_mappings];
}

void multicast_mapped(CUmemGenericAllocationHandle handle, uint64_t addr, uint64_t size)
{
	if (core_mode() != MODE_RECORD)
		return;
	core_lock();
	const struct alloc *a = maps_at(addr);
	for (size_t i = n_mappings; i-- > 0;) /* what was unmapped there before */
		if (mappings[i].addr < addr + size && addr < mappings[i].addr + mappings[i].size)
			mappings[i] = mappings[--n_mappings];
	if (a && table_grow((void **)&mappings, &mappings_cap, n_mappings + 1, sizeof *mappings)) {
		mappings[n_mappings++] = (struct mapping){handle, addr, size, a->id};
		uint64_t as = map_get(&handles, handle, 0);
		/* mutant: mapping of a multicast object */
		if (as)
			mark(&mappings[n_mappings - 1], as);
	}
	core_unlock();
}

bool multicast_has(uint32_t id) { return map_get(&marked, (uint64_t)id + 1, 0) != 0; }

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop, uint64_t flags)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMemCreate)(handle, size, prop, flags);
	rc = REAL(cuMemCreate)(handle, size, prop, flags);
	if (rc == CUDA_SUCCESS && core_mode() == MODE_RECORD) {
		/* mutant: device of memory that is created for another device */
		if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
			core_note_device_of(prop->location.id);
		core_lock();
		forget(*handle);
		core_unlock();
	}
	hook_leave();
	return rc;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMulticastCreate)(handle, prop);
	rc = REAL(cuMulticastCreate)(handle, prop);
	if (rc == CUDA_SUCCESS && core_mode() == MODE_RECORD) {
		core_lock();
		forget(*handle);
		belongs(*handle, OBJECT);
		core_unlock();
	}
	hook_leave();
	return rc;
}

static void note(CUmemGenericAllocationHandle handle, uint64_t as)
{
	if (core_mode() != MODE_RECORD)
		return;
	core_lock();
	belongs(handle, as);
	core_unlock();
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice dev)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMulticastAddDevice)(handle, dev);
	rc = REAL(cuMulticastAddDevice)(handle, dev);
	if (rc == CUDA_SUCCESS)
		note(handle, OBJECT);
	hook_leave();
	return rc;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t mc_offset, CUmemGenericAllocationHandle mem_handle, size_t mem_offset, size_t size, uint64_t flags)
{
	CUresult rc;
	if (!hook_enter())
		return REAL(cuMulticastBindMem)(handle, mc_offset, mem_handle, mem_offset, size, flags);
	rc = REAL(cuMulticastBindMem)(handle, mc_offset, mem_handle, mem_offset, size, flags);
	if (rc == CUDA_SUCCESS) {
		note(handle, OBJECT);
		note(mem_handle, BOUND);
	}
	hook_leave();
	return rc;
}

/* The handle that was mapped at an address, or 0. */
static CUmemGenericAllocationHandle handle_at(CUdeviceptr ptr)
{
	CUmemGenericAllocationHandle found = 0;
	core_lock();
	for (size_t i = 0; i < n_mappings; i++)
		if (ptr - mappings[i].addr < mappings[i].size)
			found = mappings[i].handle;
	core_unlock();
	return found;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t mc_offset, CUdeviceptr ptr, size_t size, uint64_t flags)
{
	CUresult rc;
	CUmemGenericAllocationHandle memory;
	if (!hook_enter())
		return REAL(cuMulticastBindAddr)(handle, mc_offset, ptr, size, flags);
	rc = REAL(cuMulticastBindAddr)(handle, mc_offset, ptr, size, flags);
	if (rc == CUDA_SUCCESS && core_mode() == MODE_RECORD) {
		note(handle, OBJECT);
		memory = handle_at(ptr);
		if (memory)
			note(memory, BOUND);
		else
			core_fault("cuMulticastBindAddr", "memory at 0x%llx is of no mapping that was recorded", (unsigned long long)ptr);
	}
	hook_leave();
	return rc;
}
