/*
 * sim.h: the objects of the simulated driver and what its parts offer each other.
 *
 * Everything here is protected by the one lock that call.h describes. Handles given to the application are the addresses
 * of these objects; object_live tells a live one from garbage.
 */
#ifndef SIMGPU_SIM_H
#define SIMGPU_SIM_H

#include "call.h"
#include "ptx.h"

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

/* Grows an array so that it holds at least n items. Running out of host memory ends the process: nothing can go on. */
void *grow(void *array, size_t *cap, size_t n, size_t item);
void *xalloc(size_t size); /* zeroed */
char *xdup(const char *text, size_t len);

/* ---- config.c ------------------------------------------------------------------------------------------------- */

enum vmm_hints { HINTS_HONOUR, HINTS_REFUSE, HINTS_FAIL };

struct config {
	uint64_t seed, memory;
	bool compute, leaks, machine_code;
	int cc_major, cc_minor;
	enum vmm_hints vmm_hints;
	const char *call_log, *truth, *log;
};
const struct config *config_get(void); /* reads the environment at the first call */
uint64_t random_address(void);         /* addresses and order draw from separate sequences, so that the */
uint64_t random_order(void);           /* addresses of a seed do not depend on how work was scheduled */
uint64_t random_base(uint64_t low, uint64_t spread, uint64_t step); /* of a range of addresses */

/* ---- log.c ---------------------------------------------------------------------------------------------------- */

uint64_t now_us(void); /* since the process met the driver */
unsigned thread_number(void);
void call_log_write(const struct call *c, CUresult r);
__attribute__((format(printf, 1, 2))) void error_log(const char *format, ...);
const char *result_name(CUresult r); /* NULL for an unknown number */
const char *result_text(CUresult r);

/* ---- context.c ------------------------------------------------------------------------------------------------ */

struct context {
	bool primary, active; /* inactive: destroyed or not retained; the handle may still be current somewhere */
	unsigned retained, flags;
	uint64_t id;
	CUresult sticky;
	struct stream *legacy;
	struct stream **per_thread; /* by thread number */
	size_t per_thread_cap;
	size_t limits[CU_LIMIT_MAX];
};

struct thread_state {
	struct context *stack[64];
	size_t depth;
	CUstreamCaptureMode capture_mode;
	bool in_host_function;
};
struct thread_state *thread_state(void);
struct context *context_current(void); /* NULL where there is none */
/* Ends every object and allocation of the context. */
void context_clear(struct context *ctx);
struct context *context_primary(void);
CUresult device_check(CUdevice dev);
int device_attribute(CUdevice_attribute attr); /* -1: not an attribute */

/* ---- heap.c, memory.c ----------------------------------------------------------------------------------------- */

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
	ALLOC_GLOBAL = 100
};

struct allocation {
	uint64_t base, size;     /* as asked for */
	uint64_t index;          /* order of allocation in the process, module globals not counted */
	enum alloc_kind kind;
	unsigned flags;
	struct context *ctx;
	struct pool *pool;
	struct block *block; /* where it lies in device memory; NULL for host memory and mappings */
	struct physical *physical; /* of a mapping */
	bool accessible;           /* ... after cuMemSetAccess */
	bool free_queued;    /* by cuMemFreeAsync */
};

/* Device memory. place returns NULL where the device is full. */
struct block *heap_place(uint64_t size);
void heap_return(struct block *b);
uint64_t block_address(const struct block *b);
uint64_t heap_used(void);
/* Accounts for memory that lies elsewhere; false where the device is full. */
bool heap_take(uint64_t size);
void heap_give(uint64_t size);
#define HEAP_PATTERN 0xcb /* what memory holds that nobody has written: nothing useful as int, float or pointer */

struct allocation *allocation_at(uint64_t addr); /* the live allocation that contains addr, or NULL */
/* True where [addr, addr+size) lies in one live allocation, or in neighbouring accessible mappings. */
bool range_live(uint64_t addr, uint64_t size);
bool range_host(uint64_t addr); /* addr is outside the window of device addresses and of reserved ranges */
CUresult allocation_new(struct context *ctx, enum alloc_kind kind, uint64_t size, unsigned flags, struct allocation **out);
/* A mapping, at an address of a reserved range. */
struct allocation *allocation_mapping(uint64_t addr, uint64_t size, struct physical *p);
bool allocation_within(uint64_t addr, uint64_t size); /* any part of it */
void allocation_end(struct allocation *a);
void allocations_end(struct context *ctx);
size_t allocation_count(void);
extern const struct ptx_memory device_memory; /* how the interpreter asks for live ranges */

/* vmm.c */
bool range_reserved(uint64_t addr);
void vmm_leaks(size_t *handles, size_t *ranges);

struct pool {
	struct context *ctx;
	bool is_default;
	uint64_t threshold, used, used_high;
	int reuse[3];
};
struct pool *pool_default(void);

/* ---- module.c, library.c, function.c ---------------------------------------------------------------------------- */

struct attributes {
	int max_dynamic_shared, carveout, non_portable_cluster; /* -2: not set */
	int cache_config;
};

struct function {
	struct module *module;
	const struct ptx_kernel *code;
	struct attributes attrs;
	bool loaded;
	struct kernel *kernel; /* the library's kernel behind it, or NULL */
};

struct module {
	struct context *ctx;
	struct library *library; /* NULL: loaded as a module */
	struct ptx_module *ptx;
	struct function *functions; /* one a kernel of ptx, in its order */
	size_t function_count;
	struct allocation **globals; /* one a variable of ptx */
	unsigned refs;               /* graphs and queued launches that still use its code */
	bool unloaded;
};

struct kernel {
	struct library *library;
	size_t index;
	struct attributes attrs;
};

struct library {
	char *text; /* PTX or machine code, for a module in each context that asks */
	size_t text_len;
	struct ptx_module *ptx;
	struct kernel *kernels;
	size_t kernel_count;
	struct module **modules; /* one a context */
	size_t module_count, module_cap;
};

/* PTX text or machine code; owned is set where it had to be decompressed. */
struct image { const char *data; size_t len; char *owned; };
#define IMAGE_SIZE_UNKNOWN SIZE_MAX /* of an image that a program has in memory */
CUresult image_find(struct call *c, const void *image, size_t size, struct image *out);
void image_drop(struct image *image);
CUresult fatbin_pick(struct call *c, const void *container, size_t size, struct image *out);
bool lz4_decode(const void *src, size_t src_len, void *dst, size_t dst_len);
CUresult image_from_file(struct call *c, const char *path, char **data, size_t *size);
CUresult image_parse(const char *text, size_t len, int nopt, const CUjit_option *opt, void *const *val, struct ptx_module **out);
struct module *module_new(struct context *ctx, struct ptx_module *ptx, struct library *lib, CUresult *r);
void module_unload(struct module *m);
void module_release(struct module *m); /* drops one of refs */
CUresult module_global(struct module *m, const char *name, CUdeviceptr *addr, size_t *size);
CUresult library_module(struct context *ctx, struct library *lib, struct module **out);
void attributes_reset(struct attributes *a);

/* The function behind a CUfunction, which may be a CUkernel in its place. */
CUresult function_resolve(struct context *ctx, const void *handle, struct function **out);
const char *function_name(const struct function *f);
int function_attribute(const struct function *f, CUfunction_attribute attr, int *value); /* -1: not an attribute */
int occupancy(const struct function *f, uint64_t threads, uint64_t dynamic_shared);

/* ---- queue.c: streams' deferred work ---------------------------------------------------------------------------- */

enum op_kind { OP_KERNEL, OP_COPY, OP_FILL, OP_HOST, OP_CALLBACK, OP_EVENT, OP_GRAPH, OP_FREE, OP_NOTHING };

struct launch {
	struct function *function;
	CUfunction handle; /* as the caller passed it */
	bool by_kern;      /* ... in the kern field of node parameters */
	uint32_t grid[3], block[3], shared;
	bool cooperative;
	unsigned char *params; /* ptx_kernel_param_bytes bytes */
	void **pointers;       /* one a parameter, into params */
	void *extra[5];        /* what the caller passed instead of pointers: option list over params; empty: pointers */
	size_t extra_size;
};

struct copy {
	CUDA_MEMCPY3D p;
	void *snapshot; /* pageable source, as it was at the call */
};
struct host_call { CUhostFn fn; void *data; };

struct op {
	enum op_kind kind;
	unsigned refs;
	bool done, running;
	struct op *next;
	struct stream *stream;
	struct op **deps;
	size_t dep_count, dep_cap;
	uint64_t done_us;
	union {
		struct launch *launch;
		struct copy copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		struct host_call host;
		struct { CUstreamCallback fn; void *data; } callback;
		struct exec_body *graph;
		struct allocation *freed;
	};
};

struct stream {
	struct context *ctx;
	unsigned flags;
	int priority;
	uint64_t id;
	bool is_legacy, is_per_thread, destroyed;
	struct op *head, *tail; /* tail holds a reference */
	size_t length;
	struct capture *capture;
	struct dependency *deps; /* of the next captured node */
	size_t dep_count, dep_cap;
};

/* Puts work behind everything the stream (and the legacy stream's rules) orders it after. Takes over op. */
struct op *op_new(enum op_kind kind);
void op_ref(struct op *op);
void op_unref(struct op *op);
void op_after(struct op *op, struct op *dep);
void queue_add(struct stream *s, struct op *op);
/* Runs queued work, in an order drawn from the seed, until op is done. */
CUresult queue_run(struct context *ctx, struct op *op);
CUresult queue_run_stream(struct stream *s);
CUresult queue_run_all(struct context *ctx);
void queue_step(struct op *op); /* one piece of work towards op */
void queue_drop(struct stream *s);
bool stream_busy(const struct stream *s);

/* run.c: what work does. A failure is the context's sticky error. */
CUresult run_launch(const struct launch *l);
CUresult run_copy(const CUDA_MEMCPY3D *p);
CUresult run_fill(const CUDA_MEMSET_NODE_PARAMS *p);
void run_host(const struct host_call *h);
void run_callback(const struct op *op);
CUresult run_body(struct exec_body *b); /* graph_run.c */

/* ---- stream.c, event.c ------------------------------------------------------------------------------------------ */

CUresult stream_resolve(struct call *c, CUstream handle, struct stream **out);
struct stream *stream_new(struct context *ctx, unsigned flags, int priority);
void stream_end(struct stream *s);
extern struct stream **all_streams;
extern size_t all_stream_count;

struct event {
	struct context *ctx;
	unsigned flags;
	struct op *record; /* the last one, or NULL */
	uint64_t capture_id; /* non-zero: last recorded in this capture */
	struct dependency *deps;
	size_t dep_count, dep_cap;
};
void event_end(struct event *e);
void event_set(struct event *e, struct op *op);

/* ---- launch.c, copy.c: checks and construction, shared by calls, capture and graph nodes -------------------------- */

CUresult launch_new(struct context *ctx, const void *handle, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                    void **params, void **extra, bool cooperative, struct launch **out);
struct launch *launch_copy(const struct launch *l);
void launch_free(struct launch *l);
CUresult copy_check(struct call *c, const CUDA_MEMCPY3D *p);
CUresult fill_check(const CUDA_MEMSET_NODE_PARAMS *p);
CUDA_MEMCPY3D copy_linear(CUmemorytype dst_type, uint64_t dst, CUmemorytype src_type, uint64_t src, uint64_t bytes);
CUresult copy_submit(struct call *c, struct stream *s, const CUDA_MEMCPY3D *p, bool async);
bool copy_empty(const CUDA_MEMCPY3D *p);

/* ---- capture.c -------------------------------------------------------------------------------------------------- */

struct dependency { struct node *node; CUgraphEdgeData edge; };

struct capture {
	uint64_t id;
	CUstreamCaptureMode mode;
	unsigned thread;
	bool invalidated;
	struct graph *graph;
	struct stream *origin;
};

/* Calls that could disturb a capture somewhere: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (and the captures are invalidated)
 * where the calling thread's capture mode forbids them now. */
CUresult capture_unsafe(struct call *c);
/* Before work on s: fails for the legacy stream while a blocking stream captures. *capturing tells whether s captures. */
CUresult capture_check(struct call *c, struct stream *s, bool *capturing);
void capture_invalidate(struct capture *cap);
void capture_invalidate_id(uint64_t id);
bool capture_invalidate_all(const struct context *ctx); /* true where there were any */
/* Adds a node after the stream's dependencies and makes it the next one's only dependency. */
CUresult capture_node(struct stream *s, struct node *n);
CUresult capture_wait_event(struct call *c, struct stream *s, struct event *e, unsigned flags);
CUresult capture_record_event(struct call *c, struct stream *s, struct event *e, unsigned flags);
/* A set of dependencies without duplicates. */
void dependencies_add(struct dependency **deps, size_t *count, size_t *cap, struct dependency d);
void dependencies_forget(struct graph *g, const struct node *n); /* n is about to go */
void captures_end(struct context *ctx);
void capture_stream_gone(struct stream *s);

/* ---- graph*.c --------------------------------------------------------------------------------------------------- */

struct edge { struct node *from, *to; CUgraphEdgeData data; };

#define NODE_ATTRIBUTES 16

struct node {
	struct graph *graph;
	CUgraphNodeType type;
	size_t slot; /* index in graph->nodes */
	struct node *cloned_from;
	struct edge **in, **out;
	size_t in_count, in_cap, out_count, out_cap;
	struct context *ctx;
	unsigned attr_set; /* bit i: attribute i was set */
	CUlaunchAttributeValue attrs[NODE_ATTRIBUTES];
	union {
		struct launch *launch;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		struct host_call host;
		struct graph *child;
		struct event *event;
	};
};

struct graph {
	struct node **nodes; /* in order of creation */
	size_t node_count, node_cap;
	struct edge **edges; /* in order of creation */
	size_t edge_count, edge_cap;
	bool owned; /* by a child node or a capture: not the application's to destroy */
};

struct graph *graph_new(void);
struct graph *graph_clone(const struct graph *g);
void graph_end(struct graph *g);
struct node *node_new(CUgraphNodeType type, struct context *ctx);
void node_free(struct node *n); /* one that no graph holds yet */
void graph_attach(struct graph *g, struct node *n);
CUresult graph_connect(struct graph *g, struct node *from, struct node *to, CUgraphEdgeData data);
void graph_disconnect(struct graph *g, struct edge *e);
bool edge_default(CUgraphEdgeData d);
bool edge_valid(const struct node *from, const struct node *to, CUgraphEdgeData d);
CUresult graph_resolve(CUgraph handle, struct graph **out);
CUresult node_resolve(CUgraphNode handle, struct node **out);
/* A node that no graph holds yet, from parameters in their general form; and the special forms in it. */
CUresult node_from_params(struct call *c, const CUgraphNodeParams *p, struct node **out);
CUgraphNodeParams params_kernel_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p);
CUgraphNodeParams params_kernel(const CUDA_KERNEL_NODE_PARAMS *p);
CUgraphNodeParams params_memcpy(const CUDA_MEMCPY3D *p, CUcontext ctx);
CUgraphNodeParams params_memset(const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx);
CUresult node_attribute_check(CUlaunchAttributeID id, const CUlaunchAttributeValue *v);
/* INVALID_CLUSTER_SIZE where f cannot run in clusters of that size. */
CUresult cluster_check(const struct function *f, const CUlaunchAttributeValue *v);

/* What an executable graph runs: a copy of the graph, shared with launches in flight and copied when it is changed. */
struct exec_node {
	CUgraphNodeType type;
	const struct node *origin; /* only compared, never followed: it may be gone */
	struct context *ctx;
	bool enabled;
	unsigned attr_set;
	CUlaunchAttributeValue attrs[NODE_ATTRIBUTES];
	size_t *next;
	CUgraphEdgeData *next_data;
	size_t next_count, waits; /* nodes after it; number of nodes before it */
	union {
		struct launch *launch;
		CUDA_MEMCPY3D copy;
		CUDA_MEMSET_NODE_PARAMS fill;
		struct host_call host;
		struct exec_body *child;
		struct event *event;
	};
};

struct exec_body {
	unsigned refs;
	struct exec_node *nodes;
	size_t count;
};

struct exec {
	struct context *ctx;
	uint64_t flags;
	struct exec_body *body;
	struct op *last; /* its last launch: launches of one executable graph never overlap */
};

CUresult body_new(const struct graph *g, struct exec_body **out);
struct exec_body *body_copy(const struct exec_body *b);
void body_unref(struct exec_body *b);
/* The events that a launch waits for and records: as a whole, before and after all of its nodes. */
void body_events(const struct exec_body *b, struct op *op);
void body_set_node(struct exec_node *x, const struct node *n); /* takes a copy of n's parameters and attributes */
CUresult exec_resolve(CUgraphExec handle, struct exec **out);
void exec_end(struct exec *e);

/* ---- truth.c ---------------------------------------------------------------------------------------------------- */

void truth_alloc(const struct allocation *a);
void truth_free(const struct allocation *a);
void truth_node(const struct capture *cap, const struct node *n);
void truth_instance(const struct graph *g, const struct exec *e);

#endif
