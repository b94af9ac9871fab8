/*
 * multicast.c: multicast objects: addresses that stand for memory of several devices, in one process or in several.
 *
 * In: the cuMulticast calls. Out: handles, which vmm.c maps like those of memory, and for multimem instructions the host addresses behind
 * a multicast address. Fails: NOT_SUPPORTED without SIMGPU_MULTICAST=1; INVALID_VALUE for offsets and sizes that are no multiple of 2 MiB or
 * reach beyond their object, for a second binding of the same part, and for an unbinding of another range than was bound; INVALID_DEVICE
 * for memory of a device that was not added. A binding and a mapping wait until each device was added, as documented, also for ever.
 *
 * What processes share of an object is a memory file: the devices that were added, and who bound which file of memory. A process maps
 * the other ones' memory when an instruction first needs it. Stricter than hardware: a binding ends with the last reference of its process.
 */
#include "memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MOST_BINDINGS 256
_Static_assert(PTX_MOST_DEVICES == MOST_DEVICES, "an instruction reaches each device of a machine");

/* Memory of a device at [at, at + size) of the object: from an offset on in a process's descriptor. */
struct binding {
	uint64_t id, at, size, offset; /* id 0: none */
	int32_t device, process, file;
};

struct common {
	pthread_mutex_t lock;
	uint64_t size, last_id;
	uint32_t want, devices, shareable; /* devices: bit i: device i of the machine was added */
	struct binding bindings[MOST_BINDINGS];
};

struct window { uint64_t id; uint8_t *host; uint64_t size; };
struct bound { uint64_t id; struct physical *memory; };

struct team {
	struct common *common;
	struct window *windows; /* where this process has mapped bound memory for itself */
	size_t window_count, window_cap;
	struct bound *bound; /* by this process */
	size_t bound_count, bound_cap;
};

/* A process that ended with the lock left no half of a change: each is one store of an id. */
static void lock(struct team *t)
{
	if (pthread_mutex_lock(&t->common->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&t->common->lock);
}

static void unlock(struct team *t) { pthread_mutex_unlock(&t->common->lock); }

/* ---- objects ---------------------------------------------------------------------------------------------------- */

static CUresult prop_check(struct call *c, const CUmulticastObjectProp *prop)
{
	if (!config_get()->multicast)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!prop || prop->flags || prop->numDevices < 2 || prop->numDevices > (unsigned)config_get()->devices)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->handleTypes & ~(uint64_t)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return call_unsupported_part(c, "multicast objects with handles other than file descriptors");
	return CUDA_SUCCESS;
}

CUresult sim_cuMulticastGetGranularity(struct call *c, size_t *granularity, const CUmulticastObjectProp *prop, int option)
{
	CUresult r = prop_check(c, prop);
	if (r || !granularity || (option != CU_MULTICAST_GRANULARITY_MINIMUM && option != CU_MULTICAST_GRANULARITY_RECOMMENDED))
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*granularity = VMM_GRANULARITY;
	return CUDA_SUCCESS;
}

/* Takes over the file. */
static CUresult open_team(CUmemGenericAllocationHandle *handle, int file)
{
	struct common *common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (common == MAP_FAILED) {
		close(file);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct team *t = xalloc(sizeof(*t));
	t->common = common;
	struct physical made = {.size = common->size, .file = file, .own = true, .imported = true, .refs = 1, .team = t};
	made.prop.requestedHandleTypes = common->shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
	made.prop.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, device_current()};
	*handle = physical_add(made);
	return CUDA_SUCCESS;
}

CUresult team_import(CUmemGenericAllocationHandle *handle, int file)
{
	if (!config_get()->multicast)
		return CUDA_ERROR_NOT_SUPPORTED;
	file = fcntl(file, F_DUPFD_CLOEXEC, 3);
	return file < 0 ? CUDA_ERROR_OUT_OF_MEMORY : open_team(handle, file);
}

CUresult sim_cuMulticastCreate(struct call *c, CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop)
{
	CUresult r = prop_check(c, prop);
	if (r)
		return r;
	if (!handle || !prop->size || prop->size % VMM_GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	int file = memfd_create(EXPORTED_TEAM "0", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, sizeof(struct common)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	struct common *common = r ? MAP_FAILED : mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (common == MAP_FAILED) {
		if (file >= 0)
			close(file);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&common->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	common->size = prop->size;
	common->want = prop->numDevices;
	common->shareable = prop->handleTypes != 0;
	munmap(common, sizeof(*common));
	r = open_team(handle, file);
	call_detail(c, "handle=0x%llx\tbytes=%zu", (unsigned long long)*handle, prop->size);
	return r;
}

static void release(struct team *t, size_t i)
{
	struct physical *memory = t->bound[i].memory;
	lock(t);
	for (size_t b = 0; b < MOST_BINDINGS; b++)
		if (t->common->bindings[b].id == t->bound[i].id)
			t->common->bindings[b].id = 0;
	unlock(t);
	t->bound[i] = t->bound[--t->bound_count];
	memory->mappings--;
	physical_unref(memory);
}

void team_end(struct team *t)
{
	while (t->bound_count)
		release(t, 0);
	for (size_t i = 0; i < t->window_count; i++)
		munmap(t->windows[i].host, t->windows[i].size);
	munmap(t->common, sizeof(*t->common));
	free(t->windows);
	free(t->bound);
	free(t);
}

static CUresult resolve(CUmemGenericAllocationHandle handle, struct physical **out)
{
	if (!config_get()->multicast)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult r = physical_resolve(handle, out);
	return r ? r : (*out)->team ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMulticastAddDevice(struct call *c, CUmemGenericAllocationHandle handle, CUdevice dev)
{
	struct physical *p;
	CUresult r = resolve(handle, &p);
	call_detail(c, "handle=0x%llx", (unsigned long long)handle);
	if (r)
		return r;
	if (device_check(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	struct common *common = p->team->common;
	uint32_t bit = 1u << device_number(dev);
	lock(p->team);
	if (common->devices & bit || (unsigned)__builtin_popcount(common->devices) == common->want)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		common->devices |= bit;
	unlock(p->team);
	return r;
}

static bool complete(struct team *t)
{
	lock(t);
	bool all = (unsigned)__builtin_popcount(t->common->devices) == t->common->want;
	unlock(t);
	return all;
}

void team_wait(struct team *t)
{
	while (!complete(t)) {
		struct timespec pause = {0, 200000};
		driver_unlock();
		nanosleep(&pause, NULL);
		driver_lock();
	}
}

/* ---- bindings --------------------------------------------------------------------------------------------------- */

static bool whole(uint64_t at, uint64_t size, uint64_t end)
{
	return size && at % VMM_GRANULARITY == 0 && size % VMM_GRANULARITY == 0 && at <= end && size <= end - at;
}

static CUresult add_binding(struct team *t, struct binding b, uint64_t *id)
{
	struct binding *place = NULL;
	for (size_t i = 0; i < MOST_BINDINGS; i++) {
		struct binding *o = &t->common->bindings[i];
		if (!o->id)
			place = place ? place : o;
		else if (o->device == b.device && b.at < o->at + o->size && o->at < b.at + b.size)
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (!place)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*id = ++t->common->last_id;
	*place = b;
	place->id = *id;
	return CUDA_SUCCESS;
}

static CUresult bind(struct call *c, CUmemGenericAllocationHandle handle, uint64_t at, struct physical *memory, uint64_t offset, uint64_t size, uint64_t flags)
{
	struct physical *p;
	CUresult r = resolve(handle, &p);
	call_detail(c, "handle=0x%llx\tbytes=%llu", (unsigned long long)handle, (unsigned long long)size);
	if (r)
		return r;
	if (flags || memory->team || !whole(at, size, p->size) || !whole(offset, size, memory->size))
		return CUDA_ERROR_INVALID_VALUE;
	if (p->team->common->shareable && memory->prop.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	/* Both live until the call is over. */
	p->mappings++;
	memory->mappings++;
	team_wait(p->team);
	struct team *t = p->team;
	uint64_t id = 0;
	if (!(t->common->devices >> memory->number & 1))
		r = CUDA_ERROR_INVALID_DEVICE;
	else if (!memory->own && !physical_move_out(memory))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	else {
		lock(t);
		r = add_binding(t, (struct binding){0, at, size, memory->offset + offset, memory->number, getpid(), memory->file}, &id);
		unlock(t);
	}
	if (r) {
		memory->mappings--;
		physical_unref(memory);
	} else {
		t->bound = grow(t->bound, &t->bound_cap, t->bound_count + 1, sizeof(*t->bound));
		t->bound[t->bound_count++] = (struct bound){id, memory};
	}
	p->mappings--;
	physical_unref(p);
	return r;
}

CUresult sim_cuMulticastBindMem(struct call *c, CUmemGenericAllocationHandle handle, size_t mc_offset, CUmemGenericAllocationHandle mem_handle, size_t mem_offset, size_t size, uint64_t flags)
{
	struct physical *memory;
	CUresult r = config_get()->multicast ? physical_resolve(mem_handle, &memory) : CUDA_ERROR_NOT_SUPPORTED;
	return r ? r : bind(c, handle, mc_offset, memory, mem_offset, size, flags);
}

CUresult sim_cuMulticastBindAddr(struct call *c, CUmemGenericAllocationHandle handle, size_t mc_offset, CUdeviceptr ptr, size_t size, uint64_t flags)
{
	const struct allocation *a = allocation_at(ptr);
	if (!config_get()->multicast)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (a && (a->kind == ALLOC_ASYNC || a->kind == ALLOC_POOL))
		return call_unsupported_part(c, "memory of a pool in a multicast object");
	if (!a || a->kind != ALLOC_VMM || size > a->size - (ptr - a->base))
		return CUDA_ERROR_INVALID_VALUE;
	return bind(c, handle, mc_offset, a->physical, ptr - a->base, size, flags);
}

CUresult sim_cuMulticastUnbind(struct call *c, CUmemGenericAllocationHandle handle, CUdevice dev, size_t mc_offset, size_t size)
{
	struct physical *p;
	CUresult r = resolve(handle, &p);
	call_detail(c, "handle=0x%llx\tbytes=%zu", (unsigned long long)handle, size);
	if (r)
		return r;
	if (device_check(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	struct team *t = p->team;
	for (size_t i = 0; i < t->bound_count; i++)
		for (size_t b = 0; b < MOST_BINDINGS; b++) {
			const struct binding *o = &t->common->bindings[b];
			if (o->id == t->bound[i].id && o->device == device_number(dev) && o->at == mc_offset && o->size == size) {
				release(t, i);
				return CUDA_SUCCESS;
			}
		}
	return CUDA_ERROR_INVALID_VALUE;
}

/* ---- instructions ----------------------------------------------------------------------------------------------- */

static uint8_t *window_of(struct team *t, const struct binding *b)
{
	for (size_t i = 0; i < t->window_count; i++)
		if (t->windows[i].id == b->id)
			return t->windows[i].host;
	char name[64];
	exported_name(name, sizeof(name), b->device);
	const struct handle owner = {.process = b->process};
	int file = handle_file(&owner, b->file, name);
	void *host = file < 0 ? MAP_FAILED : mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)b->offset);
	if (file >= 0)
		close(file);
	if (host == MAP_FAILED)
		return NULL;
	t->windows = grow(t->windows, &t->window_cap, t->window_count + 1, sizeof(*t->windows));
	t->windows[t->window_count++] = (struct window){b->id, host, b->size};
	return host;
}

/* The place of the object's bytes [at, at + bytes) in a device's memory; NULL: nothing is bound there. */
static uint8_t *host_of(struct team *t, int device, uint64_t at, uint64_t bytes)
{
	for (size_t i = 0; i < MOST_BINDINGS; i++) {
		const struct binding *b = &t->common->bindings[i];
		if (!b->id || b->device != device || at < b->at || at - b->at > b->size - bytes)
			continue;
		uint8_t *window = window_of(t, b);
		return window ? window + (at - b->at) : NULL;
	}
	return NULL;
}

/* Runs on one thread of a launch at a time: such kernels are not spread. */
size_t multicast_hosts(void *ctx, uint64_t addr, uint64_t bytes, uint8_t *hosts[PTX_MOST_DEVICES])
{
	const struct allocation *a = allocation_at(addr);
	CUdevice dev = ((const struct context *)ctx)->device;
	if (!a || a->kind != ALLOC_VMM || !a->physical->team || !(a->access >> dev & 1) || bytes > a->size - (addr - a->base))
		return 0;
	struct team *t = a->physical->team;
	size_t n = 0;
	lock(t);
	bool all = t->common->devices >> device_number(dev) & 1;
	for (int device = 0; all && device < MOST_DEVICES; device++)
		if (t->common->devices >> device & 1)
			all = (hosts[n++] = host_of(t, device, addr - a->base, bytes)) != NULL;
	unlock(t);
	return all ? n : 0;
}
