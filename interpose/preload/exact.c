/*
 * exact.c: see exact.h.
 *
 * The region has, from its base: allocations below a page (packed, so that they share pages), larger ones (whole pages), and the
 * same two zones for scratch. The rest is for reservations of the process itself. All of it is one reservation of the driver's:
 * reservations below 32 MiB would come from a place that the driver chooses, even if they ask for an address (driver 580.159).
 *
 * A mapping keeps physical memory alive, so handles are released at once. Only page counts are kept.
 */
#include "exact.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "communicator.h"
#include "core.h"
#include "hold.h"
#include "launch.h"
#include "medusa.h"
#include "table.h"

#define PAGE ((uint64_t)2 << 20)
#define SMALL_STEP 512 /* cuMemAlloc aligns to at least 256; texture descriptors need 512 */
#define DEVICE_STEP ((uint64_t)32 << 30) /* drivers reserve different amounts of MiB for themselves; rounding makes equal GPUs divide the region alike */
#define RECORD_ATTEMPTS 8
#define RDMA_WITH_VMM 110 /* CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED */

enum { SMALL, LARGE, SCRATCH_SMALL, SCRATCH_LARGE, RESERVED, ZONES };

/* Held during calls into the driver, which never calls back from them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct medusa_exact now;
static struct zone zones[ZONES];
static struct counts {
	uint32_t *n;
	size_t pages, cap;
} users[ZONES]; /* of the small zones: the allocations on each page */
static _Atomic uint64_t reserved_early; /* the size of the driver's reservation at the requested base, made by cuInit; 0: none */
static _Atomic uint64_t placed_early; /* the address of that reservation, wherever the driver placed it */
static _Atomic uint64_t region_end; /* of the part with memory; 0 without a region. May be read without the lock, as now.base then */
static uint64_t next_reservation;
static struct reservation { uint64_t addr, size; } *reservations; /* that the process has */
static size_t n_reservations, reservations_cap;
static CUdevice device;
static int rdma; /* whether memory can be made usable for RDMA, as that of cuMemAlloc is */
static const char *failed_call; /* of map_range */
static CUdeviceptr *probes; /* allocations that captures forbid to free */
static size_t n_probes, probes_cap;

static uint64_t pages(uint64_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

/* Set for good once it is known that no region was requested. An allocation then needs neither the lock nor the environment. */
static _Atomic bool absent;

__attribute__((format(printf, 1, 2))) static void refuse(const char *why, ...)
{
	va_list args;
	now.state = MEDUSA_EXACT_REFUSED;
	atomic_store(&region_end, 0);
	va_start(args, why);
	vsnprintf(now.reason, sizeof now.reason, why, args);
	va_end(args);
}

/* Size of each zone in halves of the device's memory, before stretching. It exceeds the device's memory because freed places
 * leave holes. */
static const uint64_t halves[RESERVED] = {[SMALL] = 1, [LARGE] = 4, [SCRATCH_SMALL] = 1, [SCRATCH_LARGE] = 1};

/* Divides a region from base on. False: it is too small for the device. */
static bool divide(uint64_t base, uint64_t size)
{
	size_t total = 0;
	uint64_t half, at = base;
	if (REAL(cuDeviceTotalMem_v2)(&total, device) != CUDA_SUCCESS || total == 0)
		return false;
	half = (total + DEVICE_STEP - 1) / DEVICE_STEP * (DEVICE_STEP / 2);
	for (int i = 0; i < ZONES; i++) {
		struct zone z = {at, base + size, i == SMALL || i == SCRATCH_SMALL ? SMALL_STEP : PAGE, core_gap_seed(), NULL, 0, 0, 0};
		if (i != RESERVED)
			z.end = at + zone_extent(&z, halves[i] * half);
		if (z.end < at || z.end > base + size)
			return false;
		zones[i] = z;
		at = z.end;
	}
	next_reservation = zones[RESERVED].start;
	return true;
}

/* A recording may use any base, because it records the base. A replay must use the recorded base. */
static void reserve(uint64_t base, uint64_t size)
{
	int attempts = core_mode() == MODE_RECORD ? RECORD_ATTEMPTS : 1;
	CUresult rc = CUDA_SUCCESS;
	CUdeviceptr got = base;
	for (int i = 0; i < attempts; i++, base += size) {
		bool early = atomic_exchange(&reserved_early, 0) == size;
		got = base;
		if (!divide(base, size)) {
			refuse("the region is too small for the device's memory");
			if (early)
				REAL(cuMemAddressFree)(base, size);
			return;
		}
		if (!early)
			rc = REAL(cuMemAddressReserve)(&got, size, 0, base, 0);
		/* mutant: the driver's answer to a hint */
		if (rc == CUDA_SUCCESS && got == base) {
			now.state = MEDUSA_EXACT_ON;
			now.base = base;
			atomic_store(&region_end, base + size);
			return;
		}
		if (rc == CUDA_SUCCESS)
			REAL(cuMemAddressFree)(got, size);
	}
	if (rc == CUDA_SUCCESS) /* where the driver went tells a taken base from a driver that follows no hint */
		refuse("the base is taken, or the driver places reservations elsewhere (%#llx, and %#" PRIx64 " after cuInit)", got, atomic_load(&placed_early));
	else
		refuse("the driver refuses a reservation at the base (result %d)", (int)rc);
}

/* The region belongs to the parent. */
static void child_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	refuse("the process was forked after the region was made");
}

/*
 * The driver never places a reservation over addresses that were mapped while it was initialized, even if they are unmapped later
 * (driver 580.159). So the hold ends before cuInit, and a reservation by the driver follows it. That reservation needs no context,
 * but the region does: its size depends on the device.
 */
CUresult cuInit(unsigned int flags)
{
	static _Atomic bool begun;
	uint64_t base, size;
	CUdeviceptr got = 0;
	CUresult rc;
	bool first = !atomic_exchange(&begun, true);
	/* mutant: the hold ends before cuInit */
	if (first)
		hold_release();
	rc = REAL(cuInit)(flags);
	if (rc != CUDA_SUCCESS)
		atomic_store(&begun, false);
	if (rc != CUDA_SUCCESS || !first || hold_requested(&base, &size) != HOLD_REGION)
		return rc;
	if (REAL(cuMemAddressReserve)(&got, size, 0, base, 0) == CUDA_SUCCESS) {
		atomic_store(&placed_early, got);
		if (got == base)
			atomic_store(&reserved_early, size);
		else
			REAL(cuMemAddressFree)(got, size);
	}
	return rc;
}

static CUresult map_range(uint64_t addr, uint64_t size)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
		.allocFlags = {.gpuDirectRDMACapable = rdma > 0}};
	CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUresult released, rc = REAL(cuMemCreate)(&handle, size, &prop, 0);
	failed_call = "cuMemCreate";
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = REAL(cuMemMap)(addr, size, 0, handle, 0);
	failed_call = "cuMemMap";
	released = REAL(cuMemRelease)(handle);
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = REAL(cuMemSetAccess)(addr, size, &access, 1);
	failed_call = "cuMemSetAccess";
	if (rc == CUDA_SUCCESS && released != CUDA_SUCCESS) {
		rc = released;
		failed_call = "cuMemRelease";
	}
	if (rc != CUDA_SUCCESS)
		REAL(cuMemUnmap)(addr, size);
	return rc;
}

/*
 * Maps the first page of the region once. There are devices on which memory can be allocated and not mapped, although their attributes say
 * otherwise: a hypervisor passes only some calls on. An allocation that failed later would end an engine that runs without a region.
 */
static void try_mapping(void)
{
	CUresult rc;
	REAL(cuDeviceGetAttribute)(&rdma, (CUdevice_attribute)RDMA_WITH_VMM, device);
	rc = map_range(now.base, PAGE);
	if (rc != CUDA_SUCCESS && rdma > 0) {
		rdma = 0;
		rc = map_range(now.base, PAGE);
	}
	if (rc == CUDA_SUCCESS) {
		rc = REAL(cuMemUnmap)(now.base, PAGE);
		failed_call = "cuMemUnmap";
	}
	/* mutant: device that maps no memory */
	if (rc == CUDA_SUCCESS)
		return;
	REAL(cuMemAddressFree)(now.base, now.size);
	refuse("%s fails on this device (result %d)", failed_call, (int)rc);
}

/* Called once, when a context is current: opens the region that the environment requests. */
static void open_region(void)
{
	CUcontext ctx = NULL;
	enum hold_request requested = hold_requested(&now.base, &now.size);
	if (requested == HOLD_NOTHING) {
		atomic_store(&absent, true);
		return;
	}
	if (REAL(cuCtxGetCurrent)(&ctx) != CUDA_SUCCESS || !ctx)
		return;
	hold_release();
	if (requested == HOLD_MALFORMED)
		refuse(MEDUSA_ENV_EXACT " is not base:size");
	else if (REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS)
		reserve(now.base, now.size);
	if (now.state == MEDUSA_EXACT_ON)
		try_mapping();
	if (now.state == MEDUSA_EXACT_ON) {
		struct trace_writer *w;
		pthread_atfork(NULL, NULL, child_after_fork);
		core_lock();
		w = core_trace();
		if (w)
			trace_exact(w, now.base, now.size);
		core_unlock();
	}
}

/* Whether memory for the calling thread belongs into the region. */
static bool serves(void)
{
	CUdevice dev;
	if (now.state == MEDUSA_EXACT_UNASKED)
		open_region();
	return now.state == MEDUSA_EXACT_ON && REAL(cuCtxGetDevice)(&dev) == CUDA_SUCCESS && dev == device;
}

/* Whether a caller's memory is the driver's in any case. A communicator hands its memory to other processes, which memory of a region does not bear. Not under the lock. */
static bool outside(void)
{
	/* mutant: addresses of a communicator's memory */
	return atomic_load(&absent) || communicator_at_work();
}

/* ---- mapping ---------------------------------------------------------------------------------------------------- */

/* The number of allocations on the page at addr, or NULL if there is no memory for it. */
static uint32_t *users_of(int zone, uint64_t addr)
{
	struct counts *c = &users[zone];
	size_t page = (addr - zones[zone].start) / PAGE;
	if (page >= c->pages) {
		if (!table_grow((void **)&c->n, &c->cap, page + 1, sizeof *c->n))
			return NULL;
		memset(c->n + c->pages, 0, (c->cap - c->pages) * sizeof *c->n);
		c->pages = c->cap;
	}
	return &c->n[page];
}

static CUresult drop_pages(int zone, uint64_t first, uint64_t end)
{
	CUresult rc = CUDA_SUCCESS;
	for (uint64_t page = first; page < end; page += PAGE) {
		uint32_t *n = users_of(zone, page);
		--*n;
		/* mutant: pages shared by small allocations */
		if (*n > 0)
			continue;
		if (REAL(cuMemUnmap)(page, PAGE) != CUDA_SUCCESS)
			rc = CUDA_ERROR_UNKNOWN;
	}
	return rc;
}

static CUresult take_pages(int zone, uint64_t first, uint64_t end)
{
	for (uint64_t page = first; page < end; page += PAGE) {
		uint32_t *n = users_of(zone, page);
		CUresult rc = !n ? CUDA_ERROR_OUT_OF_MEMORY : *n ? CUDA_SUCCESS : map_range(page, PAGE);
		if (rc != CUDA_SUCCESS) {
			drop_pages(zone, first, page);
			return rc;
		}
		++*n;
	}
	return CUDA_SUCCESS;
}

static CUresult map_piece(int zone, const struct piece *p)
{
	if (zones[zone].step == PAGE)
		return map_range(p->addr, pages(p->size));
	return take_pages(zone, p->addr / PAGE * PAGE, p->addr + p->size);
}

static CUresult unmap_piece(int zone, const struct piece *p)
{
	if (zones[zone].step != PAGE)
		return drop_pages(zone, p->addr / PAGE * PAGE, p->addr + p->size);
	return REAL(cuMemUnmap)(p->addr, pages(p->size));
}

static CUresult take(int zone, uint64_t addr, uint64_t bytes, uint64_t *out)
{
	struct zone *z = &zones[zone];
	CUcontext ctx = NULL;
	struct piece *p;
	CUresult rc;
	REAL(cuCtxGetCurrent)(&ctx);
	p = zone_take(z, addr, bytes, ctx);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	rc = map_piece(zone, p);
	*out = p->addr;
	if (rc != CUDA_SUCCESS)
		zone_give(z, p);
	return rc;
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* The driver decides which calls a capture forbids: a small allocation of its own gives the same answer as the requested one
 * would. It is freed when no stream captures any more, because a free waits for work and an allocation does not. */
static CUresult probe_alloc(void)
{
	CUdeviceptr p;
	CUresult rc = REAL(cuMemAlloc_v2)(&p, 1);
	if (rc == CUDA_SUCCESS && table_grow((void **)&probes, &probes_cap, n_probes + 1, sizeof *probes))
		probes[n_probes++] = p;
	return rc;
}

static CUresult free_probes(void)
{
	while (n_probes > 0)
		REAL(cuMemFree_v2)(probes[--n_probes]);
	return CUDA_SUCCESS;
}

/* A capture forbids freeing the probe exactly if it forbids the requested free, and freeing the probe waits for the same work. */
static CUresult probe_free(void)
{
	CUdeviceptr p;
	CUresult rc = REAL(cuMemAlloc_v2)(&p, 1);
	return rc == CUDA_SUCCESS ? REAL(cuMemFree_v2)(p) : rc;
}

bool exact_alloc(CUdeviceptr *ptr, size_t bytes, CUresult *rc)
{
	bool served;
	uint64_t addr = 0;
	if (outside())
		return false;
	pthread_mutex_lock(&lock);
	served = ptr && bytes && serves();
	if (served) {
		/* mutant: scratch for trigger scopes */
		int zone = (bytes < PAGE ? SMALL : LARGE) + (launch_in_trigger() ? SCRATCH_SMALL : 0);
		*rc = capture_active() ? probe_alloc() : free_probes();
		if (*rc == CUDA_SUCCESS)
			*rc = take(zone, 0, bytes, &addr);
		if (*rc == CUDA_SUCCESS)
			*ptr = addr;
	}
	pthread_mutex_unlock(&lock);
	return served;
}

/* The driver chooses the pitch. One row of the same width reveals it. */
bool exact_alloc_pitch(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height, unsigned int elem_size, CUresult *rc)
{
	CUdeviceptr row;
	size_t apart = 0;
	bool served;
	if (outside())
		return false;
	pthread_mutex_lock(&lock);
	served = ptr && pitch && height && serves();
	pthread_mutex_unlock(&lock);
	if (!served)
		return false;
	*rc = REAL(cuMemAllocPitch_v2)(&row, &apart, width, 1, elem_size);
	if (*rc == CUDA_SUCCESS)
		*rc = REAL(cuMemFree_v2)(row);
	if (*rc != CUDA_SUCCESS)
		return true;
	if (apart > SIZE_MAX / height) {
		*rc = CUDA_ERROR_INVALID_VALUE;
		return true;
	}
	*pitch = apart;
	return exact_alloc(ptr, apart * height, rc);
}

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size) { return a < b ? b - a < a_size : a - b < b_size; }

/* The addresses of a reservation are for mappings of the process itself. */
static bool in_reservation(uint64_t addr, uint64_t bytes)
{
	for (size_t i = 0; i < n_reservations; i++)
		/* mutant: memory placed in a reservation */
		if (overlap(addr, bytes, reservations[i].addr, reservations[i].size))
			return true;
	return false;
}

/* The first place for a reservation, at the cursor or behind memory that was placed there. */
static uint64_t next_place(uint64_t bytes, uint64_t step)
{
	uint64_t place = (next_reservation + step - 1) & ~(step - 1);
	for (size_t i = 0; i < zones[RESERVED].n; i++) {
		const struct piece *p = &zones[RESERVED].pieces[i];
		/* mutant: a reservation where memory was placed */
		if (overlap(place, bytes, p->addr, p->size))
			place = (p->addr + p->size + step - 1) & ~(step - 1);
	}
	return place;
}

CUresult exact_place(uint64_t addr, uint64_t bytes)
{
	CUresult rc = CUDA_ERROR_NOT_SUPPORTED;
	uint64_t got;
	pthread_mutex_lock(&lock);
	if (addr && serves())
		for (int i = 0; i < ZONES; i++)
			if (addr >= zones[i].start && addr < zones[i].end)
				rc = i == RESERVED && in_reservation(addr, bytes) ? CUDA_ERROR_OUT_OF_MEMORY : take(i, addr, bytes, &got);
	pthread_mutex_unlock(&lock);
	return rc;
}

static struct piece *find(uint64_t addr, int *zone)
{
	if (now.state == MEDUSA_EXACT_ON)
		for (*zone = 0; *zone < ZONES; ++*zone)
			if (addr >= zones[*zone].start && addr < zones[*zone].end)
				return zone_find(&zones[*zone], addr);
	return NULL;
}

bool exact_find(CUdeviceptr ptr, struct piece *out)
{
	const struct piece *p;
	int zone;
	if (atomic_load(&absent))
		return false;
	pthread_mutex_lock(&lock);
	p = find(ptr, &zone);
	if (p)
		*out = *p;
	pthread_mutex_unlock(&lock);
	return p != NULL;
}

bool exact_free(CUdeviceptr ptr, CUresult *rc)
{
	struct piece *p;
	CUcontext ctx = NULL;
	bool served;
	int zone;
	/* now.base is set before region_end, once. */
	if (ptr >= atomic_load(&region_end) || ptr < now.base || REAL(cuCtxGetCurrent)(&ctx) != CUDA_SUCCESS || !ctx)
		return false; /* the driver's own error then */
	/* mutant: free waits for work */
	*rc = capture_active() ? probe_free() : REAL(cuCtxSynchronize)();
	if (*rc != CUDA_SUCCESS)
		return true;
	pthread_mutex_lock(&lock);
	p = find(ptr, &zone);
	served = p && p->addr == ptr;
	if (served) {
		*rc = unmap_piece(zone, p);
		zone_give(&zones[zone], p);
	}
	pthread_mutex_unlock(&lock);
	return served;
}

uint64_t exact_reserve(size_t bytes, size_t alignment)
{
	uint64_t at = 0, step = alignment > PAGE ? alignment : PAGE;
	if (outside())
		return at;
	pthread_mutex_lock(&lock);
	if (bytes && bytes % PAGE == 0 && !(step & (step - 1)) && serves() && !launch_in_trigger() &&
	    table_grow((void **)&reservations, &reservations_cap, n_reservations + 1, sizeof *reservations)) {
		uint64_t place = next_place(bytes, step);
		if (place < zones[RESERVED].end && bytes <= zones[RESERVED].end - place) {
			at = place;
			next_reservation = place + bytes;
			if (core_gap_seed())
				next_reservation += (1 + (core_gap_seed() ^ place / PAGE) % 64) * PAGE;
			reservations[n_reservations++] = (struct reservation){at, bytes};
		}
	}
	pthread_mutex_unlock(&lock);
	return at;
}

/* Its addresses are not used again: the order of addresses is to stay that of the calls. */
bool exact_unreserve(CUdeviceptr ptr, size_t bytes)
{
	bool found = false;
	if (ptr >= atomic_load(&region_end) || ptr < now.base)
		return false;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_reservations && !found; i++) {
		found = reservations[i].addr == ptr && reservations[i].size == bytes;
		if (found)
			reservations[i] = reservations[--n_reservations];
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void exact_context_gone(CUcontext ctx)
{
	pthread_mutex_lock(&lock);
	n_probes = 0; /* their context freed them, and other allocations may have their addresses by now */
	for (int i = 0; i < ZONES; i++)
		for (size_t k = zones[i].n; k-- > 0;)
			if (zones[i].pieces[k].owner == ctx) {
				unmap_piece(i, &zones[i].pieces[k]);
				zone_give(&zones[i], &zones[i].pieces[k]);
			}
	pthread_mutex_unlock(&lock);
}

void medusa_exact_get(struct medusa_exact *out)
{
	pthread_mutex_lock(&lock);
	*out = now;
	pthread_mutex_unlock(&lock);
}
