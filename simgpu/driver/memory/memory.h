/*
 * memory.h: device and host memory: its places, the live parts of it, and mappings.
 */
#ifndef SIMGPU_MEMORY_H
#define SIMGPU_MEMORY_H

#include "core/core.h"
#include "ptx/ptx.h"

/* ---- heap.c, allocations.c ----------------------------------------------------------------------------------------- */

/* The numbers are those of interpose/trace.spec, so that a reader of the truth file can compare; 100 is ours alone. */
enum alloc_kind {
	ALLOC_DEVICE = 1,
	ALLOC_MANAGED = 2,
	ALLOC_PINNED = 3,
	ALLOC_REGISTERED = 4,
	ALLOC_ASYNC = 5,
	ALLOC_POOL = 6,
	ALLOC_VMM = 7,
	ALLOC_PITCH = 8,
	ALLOC_IPC = 9, /* of another process */
	ALLOC_GLOBAL = 100
};

struct allocation {
	uint64_t base, size;     /* as asked for */
	uint64_t index;          /* order of allocation in the process, module globals not counted */
	enum alloc_kind kind;
	unsigned flags;
	struct context *ctx; /* NULL: of a mapping */
	CUdevice device;
	struct pool *pool;
	struct block *block; /* its place in device memory; NULL for host memory and mappings */
	struct physical *physical; /* of a mapping */
	unsigned access;           /* ... and bit i: device i may access it, after cuMemSetAccess */
	bool free_queued;    /* by cuMemFreeAsync */
	struct ticket *ticket; /* of exported memory, and of memory of another process */
	struct import *import; /* of memory of another process */
};

/* Device memory. place returns NULL if the device is full. */
struct block *heap_place(CUdevice dev, uint64_t size);
void heap_return(struct block *b);
uint64_t block_address(const struct block *b);
uint64_t heap_free(CUdevice dev);
uint64_t heap_used(void); /* by this process, on all devices */
/* Accounts for memory elsewhere; false if the device is full. */
bool heap_take(CUdevice dev, uint64_t size);
void heap_give(CUdevice dev, uint64_t size);
#define HEAP_PATTERN 0xcb /* fills memory that was never written: not useful as int, float or pointer */

/* shared.c: a process that takes or gives back memory says so between the two calls, and the second names all that it has. */
void shared_begin(CUdevice dev);
void shared_end(CUdevice dev, uint64_t used);
uint64_t shared_by_others(CUdevice dev);

/* overhead.c */
void overhead_context(CUdevice dev, bool begins);
void overhead_code(CUdevice dev); /* of a kernel that is launched for the first time */
void overhead_nodes(CUdevice dev, uint64_t count, bool begins); /* of an executable graph */
uint64_t overhead(CUdevice dev);
uint64_t overhead_own(CUdevice dev); /* without that of other processes */

/* usage.c */
void usage_tell(void); /* that the process has more or less device memory */

struct allocation *allocation_at(uint64_t addr); /* the live allocation that contains addr, or NULL */
/* True if [addr, addr+size) lies in one live allocation, or in neighbouring mappings that some device may access. */
bool range_live(uint64_t addr, uint64_t size);
/* ... and work of the context may touch it. A copy may touch another device's memory of cuMemAlloc without peer access. */
enum touch { BY_KERNEL, BY_COPY };
bool range_reached(const struct context *ctx, uint64_t addr, uint64_t size, enum touch by);
/* Zeroes live memory. The host does not back large parts until they are touched again. */
void memory_zero(uint64_t addr, uint64_t size);
bool range_host(uint64_t addr); /* addr is outside the window of device addresses and of reserved ranges */
CUresult allocation_new(struct context *ctx, enum alloc_kind kind, uint64_t size, unsigned flags, struct allocation **out);
/* A mapping, at an address of a reserved range. */
struct allocation *allocation_mapping(uint64_t addr, uint64_t size, CUdevice dev, struct physical *p);
struct allocation *allocation_import(struct context *ctx, uint64_t addr, uint64_t size, struct ticket *t, struct import *i);
bool allocation_within(uint64_t addr, uint64_t size); /* any part of it */
void allocation_end(struct allocation *a);
void allocations_end(struct context *ctx);
void allocations_each(void (*visit)(struct allocation *a, void *arg), void *arg); /* ends none */
size_t allocation_count(void);
struct ptx_memory memory_of(struct context *ctx); /* how the interpreter asks for ranges that a context's kernels may touch */

/* ipc.c */
bool range_exported(uint64_t addr); /* to other processes, now or before */
bool range_imported(uint64_t addr);
void import_end(struct allocation *a);
void export_end(struct allocation *a);

/* physical.c: memory of cuMemCreate, or a multicast object */
struct team;
struct physical {
	uint64_t offset, size; /* in the file */
	int file;
	int number; /* of its device, on the machine */
	bool own, imported; /* the file is this memory's alone; it is no memory of this process */
	unsigned refs;         /* of the application: cuMemCreate and cuMemRetainAllocationHandle */
	unsigned mappings;     /* and bindings to multicast objects */
	struct team *team;     /* of a multicast object, else NULL */
	CUmemAllocationProp prop;
};
#define VMM_GRANULARITY PAGE_SIZE_DEVICE
CUmemGenericAllocationHandle physical_add(struct physical made);
CUresult physical_resolve(CUmemGenericAllocationHandle handle, struct physical **out);
void physical_unref(struct physical *p); /* after a reference or a mapping went; may end it */
bool physical_move_out(struct physical *p); /* to a file of its own */
void exported_name(char *name, size_t size, int number); /* of that file */

/* multicast.c */
#define EXPORTED_TEAM "simgpu-multicast-" /* name of the file of a multicast object, before a number */
CUresult team_import(CUmemGenericAllocationHandle *handle, int file);
void team_wait(struct team *t); /* until each of its devices was added; other threads may use the driver meanwhile */
void team_end(struct team *t);
/* Host addresses of what a multicast address stands for: bytes of memory of each device. 0: it stands for none now. */
size_t multicast_hosts(void *ctx, uint64_t addr, uint64_t bytes, uint8_t *hosts[PTX_MOST_DEVICES]);

/* vmm.c */
bool range_reserved(uint64_t addr);
uint64_t reserve_anywhere(uint64_t size, uint64_t alignment); /* host addresses that no memory has; 0: none found */
void vmm_leaks(size_t *handles, size_t *ranges);

struct pool {
	CUdevice device;
	uint64_t threshold, used, used_high;
	int reuse[3];
};

/* truth.c */
void truth_alloc(const struct allocation *a);
void truth_free(const struct allocation *a);

#endif
