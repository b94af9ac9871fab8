/*
 * core.h: the base of every other part of the driver: objects, configuration, logs, contexts and threads, the device.
 *
 * Everything here is protected by the one lock that call.h describes. Handles given to the application are the addresses
 * of objects; object_live tells a live one from garbage.
 */
#ifndef SIMGPU_CORE_H
#define SIMGPU_CORE_H

#include "core/call.h"

#include <stdbool.h>
#include <stdio.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIB ((uint64_t)1 << 20)
#define PAGE_SIZE_DEVICE (2 * MIB) /* the granularity in which a device hands out physical memory */

/* ---- objects.c ------------------------------------------------------------------------------------------------ */

enum object_type {
	OBJECT_CONTEXT = 1,
	OBJECT_MODULE,
	OBJECT_LIBRARY,
	OBJECT_FUNCTION,
	OBJECT_KERNEL,
	OBJECT_STREAM,
	OBJECT_EVENT,
	OBJECT_GRAPH,
	OBJECT_NODE,
	OBJECT_EXEC,
	OBJECT_POOL,
	OBJECT_PHYSICAL,
	OBJECT_TYPES
};

void object_add(const void *handle, enum object_type type);
void object_remove(const void *handle);
bool object_live(const void *handle, enum object_type type);
size_t object_count(enum object_type type);
/* Calls visit for each live object of the type; visit may remove the object it is given. */
void object_each(enum object_type type, void (*visit)(void *handle, void *arg), void *arg);

/* Grows an array so that it holds at least n items. Running out of host memory ends the process. */
void *grow(void *array, size_t *cap, size_t n, size_t item);
void *xalloc(size_t size); /* zeroed */
char *xdup(const char *text, size_t len);

/* ---- config.c ------------------------------------------------------------------------------------------------- */

#define MOST_DEVICES 8

enum vmm_hints { HINTS_HONOUR, HINTS_REFUSE, HINTS_FAIL };
/* A node's answer about its kernel: the launched handle, the function of its context, or that and the kernel. */
enum node_kernels { KERNELS_BOTH, KERNELS_FUNCTION, KERNELS_LAUNCHED };
/* In which order a graph lists its nodes and edges: of their making, from the last to the first, or any, by the seed. */
enum graph_order { ORDER_CREATED, ORDER_REVERSED, ORDER_SHUFFLED };

struct config {
	uint64_t seed, memory;
	uint64_t neighbour; /* bytes that another process has */
	const char *shared; /* file of the processes that share the device's memory */
	int devices; /* of the machine */
	int visible[MOST_DEVICES], seen; /* those that this process sees, by ordinal */
	bool compute, leaks, machine_code, overhead, multicast;
	int cc_major, cc_minor, version;
	enum vmm_hints vmm_hints;
	uint64_t hint_limit; /* larger reservations get another address */
	uint64_t copy_rate;  /* bytes a second; 0: copies take no time */
	enum node_kernels node_kernels;
	enum graph_order graph_order;
	const char *call_log, *truth, *log, *processes;
};
const struct config *config_get(void); /* reads the environment at the first call */
uint64_t random_address(void);         /* addresses and order draw from separate sequences, so that the */
uint64_t random_order(void);           /* addresses of a seed do not depend on how work was scheduled */
uint64_t random_of(uint64_t number);    /* the same whenever it is asked for the same number */
uint64_t random_base(uint64_t low, uint64_t spread, uint64_t step); /* of a range of addresses */

/* ---- maps.c --------------------------------------------------------------------------------------------------- */

void maps_note(void); /* at cuInit */
bool maps_noted(uint64_t addr, uint64_t size);

/* ---- log.c ---------------------------------------------------------------------------------------------------- */

uint64_t now_ns(void); /* since the process met the driver */
uint64_t now_us(void);
unsigned thread_number(void);
void call_log_write(const struct call *c, CUresult r);
void call_log_mark(const char *text);
/* The name of a file. %p in it is the process: an engine starts several with one environment. */
const char *log_path(const char *name);
void error_log_open(void); /* and empties it */
__attribute__((format(printf, 1, 2))) void error_log(const char *format, ...);
const char *result_name(CUresult r); /* NULL for an unknown number */
const char *result_text(CUresult r);

/* ---- context.c ------------------------------------------------------------------------------------------------ */

struct stream;

struct context {
	bool primary, active; /* inactive: destroyed or not retained; the handle may still be current somewhere */
	CUdevice device;
	unsigned retained, flags;
	uint64_t id;
	CUresult sticky;
	struct stream *legacy;
	struct stream **per_thread; /* by thread number */
	size_t per_thread_cap;
	size_t limits[CU_LIMIT_MAX];
	struct context **peers; /* of other devices, whose memory this one's kernels may touch */
	size_t peer_count, peer_cap;
};

struct thread_state {
	struct context *stack[64];
	size_t depth;
	CUstreamCaptureMode capture_mode;
	bool in_host_function;
};
struct thread_state *thread_state(void);
struct context *context_current(void); /* NULL if there is none */
struct context *context_primary(CUdevice dev); /* of a device that the process sees */
bool context_reaches(const struct context *ctx, const struct context *peer); /* after cuCtxEnablePeerAccess */
CUresult device_check(CUdevice dev); /* INVALID_DEVICE: the process sees none of this ordinal */
CUdevice device_current(void); /* of the current context; the first without one */
int device_number(CUdevice dev); /* on the machine */
void device_uuid(int number, char bytes[16]); /* of a device of the machine */
CUdevice device_numbered(int number); /* -1: the process does not see it */
int device_attribute(CUdevice_attribute attr); /* -1: not an attribute */

/* ---- ticket.c: objects of other processes ------------------------------------------------------------------------- */

enum handle_kind { HANDLE_MEMORY = 1, HANDLE_EVENT };

/* The 64 bytes of a CUipcMemHandle or of a CUipcEventHandle, which an application passes on. */
struct handle {
	uint64_t magic;
	int32_t kind, process, ticket, file; /* file: of memory; both are the exporter's descriptors */
	uint64_t number;                     /* of the ticket */
	uint64_t offset, size, mapped;       /* of memory: its place in the file, and how much of the file to map */
	uint64_t range;                      /* number of the file */
};
_Static_assert(sizeof(struct handle) == sizeof(CUipcMemHandle) && sizeof(struct handle) == sizeof(CUipcEventHandle), "handles have 64 bytes");

struct ticket {
	int file; /* -1: of another process */
	uint64_t number;
	volatile uint32_t *gone;
};
struct ticket *ticket_new(void); /* NULL: the host gives no more files or memory */
void ticket_end(struct ticket *t); /* of an exporter: the object is gone for everyone. t may be NULL */
struct handle ticket_handle(const struct ticket *t, enum handle_kind kind);
CUresult handle_open(const struct handle *h, enum handle_kind kind, struct ticket **out);
/* The exporter's memory file of that name, or a negative result. */
int handle_file(const struct handle *h, int file, const char *name);

/* ---- truth.c -------------------------------------------------------------------------------------------------- */

/* A line of the ground truth. Parts write lines about their own objects, and only if truth_wanted. */
struct truth_line { char *text; size_t len, cap; };
bool truth_wanted(void);
struct truth_line truth_start(const char *kind);
__attribute__((format(printf, 2, 3))) void truth_append(struct truth_line *l, const char *format, ...);
void truth_end(struct truth_line *l);

#endif
