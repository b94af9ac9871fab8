/*
 * medusa.h: the contract between the interposer and everything that talks to it.
 *
 * Three parties include or mirror this file:
 *   engines    mark facts that only they know (phases, graph labels, tensors). They look up every function with
 *              dlsym(RTLD_DEFAULT, ...) at run time. A function may be missing: an engine without Medusa runs unchanged.
 *   restore/   (Go, same process) reads the allocation and module maps and runs call programs.
 *   interpose/ (Go, parent process) starts the engine and reads the trace that record mode writes.
 *
 * The structs, enums and names of variables here are generated from internal/contract/contract.spec, as are those for Go and
 * Python. Change them there (go generate ./internal/contract).
 *
 * A new function needs no version change. Any other change (a field added or moved, another meaning) increments MEDUSA_PROTOCOL,
 * which the trace has in its header. A struct keeps its size, because either side may have been compiled earlier than the other.
 */
#ifndef MEDUSA_H
#define MEDUSA_H

#include <stddef.h>
#include <stdint.h>

#define MEDUSA_PROTOCOL 1

#pragma GCC visibility push(default)

/* ---- environment, read once at the first hooked driver call or mark ---------------------------------------- */

/* record: write a trace; replay: keep the maps in memory, write nothing; otherwise inert */
#define MEDUSA_ENV_MODE "MEDUSA_MODE"
/* record: the trace file to create; if it exists already, the process is not recorded. One of several workers creates
 * MEDUSA_TRACE.RANK */
#define MEDUSA_ENV_TRACE "MEDUSA_TRACE"
/* record: non-zero puts seeded gaps of whole 2 MiB pages between allocations. Two recordings that differ only in
 * addresses show which words are pointers */
#define MEDUSA_ENV_GAP_SEED "MEDUSA_GAP_SEED"
/* base:size, multiples of 2 MiB: device memory comes from a reserved region at that base, and addresses depend on the
 * order of allocations alone. The addresses are held before main. A recording uses another base if this one is
 * occupied. With gaps, allocations lie further apart, in the same order */
#define MEDUSA_ENV_EXACT "MEDUSA_EXACT"
/* record: "exit" ends the process with status 0 once phase "ready" is marked and the trace is sealed */
#define MEDUSA_ENV_AT_READY "MEDUSA_AT_READY"
/* record: "exit" does the same at the first phase after the identity, before the engine works on that phase */
#define MEDUSA_ENV_AT_IDENTITY "MEDUSA_AT_IDENTITY"
/* replay: a named pipe. If a process begins a capture before it marks a phase, it restores no graphs, and it writes
 * one byte to this pipe */
#define MEDUSA_ENV_UNMARKED "MEDUSA_UNMARKED"
/* absent or other: this process is one of several ranks, and none of the others is running (ranks). restore does not
 * take it */
#define MEDUSA_ENV_PEERS "MEDUSA_PEERS"
/* rank of this worker process, counted from 0 (ranks). If neither this nor MEDUSA_WORLD_SIZE is set, torchrun's
 * variables are used if they agree: RANK equal to LOCAL_RANK, WORLD_SIZE equal to LOCAL_WORLD_SIZE. Read when first
 * needed, so a worker may set both itself before it uses CUDA or marks a phase */
#define MEDUSA_ENV_RANK "MEDUSA_RANK"
/* number of the engine's worker processes */
#define MEDUSA_ENV_WORLD_SIZE "MEDUSA_WORLD_SIZE"

/* ---- marks, engine -> interposer -------------------------------------------------------------------------- */

/* Phases in the order of a restored start: structure, kv_cache, weights, tokenizer, warmup, capture, ready. Every allocation
 * from "warmup" on belongs to the capture phase; in a restored process the restorer makes it. */
void medusa_mark_phase(const char *phase);

/* Names the next graph whose capture ends on the calling thread. batch is the number of sequences it decodes. */
void medusa_mark_graph(const char *label, int64_t batch);

/* The role of a tensor in the graphs. */
enum medusa_role {
	MEDUSA_WEIGHT = 1,
	MEDUSA_KV = 2,
	MEDUSA_INPUT = 3,
	MEDUSA_OUTPUT = 4,
	MEDUSA_SCRATCH = 5, /* the engine and its graphs compute in it by turns; between replays its contents do not count */
};

/* The type of a tensor's elements. */
enum medusa_dtype {
	MEDUSA_F32 = 1,
	MEDUSA_F16 = 2,
	MEDUSA_BF16 = 3,
	MEDUSA_I32 = 4,
	MEDUSA_I64 = 5,
	MEDUSA_U8 = 6,
	MEDUSA_ADDRESS = 7, /* of device memory: the engine writes them, in each process its own */
};

/* How the verifier may fill an input so that every graph accepts the values. */
enum medusa_fill {
	MEDUSA_UNIFORM = 0, /* any value in [lo, hi) */
	MEDUSA_DISTINCT = 1, /* ... no value twice */
	MEDUSA_BLOCK = 2, /* ... numbers of blocks of the KV cache, of which there are hi: those whose memory verification looks at as a whole */
};

/* Memory that the engine names. */
struct medusa_tensor {
	const char *name;
	uint64_t addr;
	uint64_t size; /* bytes */
	uint32_t role;
	uint32_t dtype;
	uint32_t fill;
	uint32_t ndim;
	int64_t shape[8];
	int64_t lo; /* lo and hi: integer inputs only */
	int64_t hi;
};
void medusa_mark_tensor(const struct medusa_tensor *t);

/* The next graph whose capture ends on the calling thread leaves a result in the output of this name. If graphs share memory, a graph
 * may leave bytes in the outputs of others that are no numbers. An output that was named for no graph may belong to any graph. */
void medusa_mark_result(const char *tensor);

/* A call of the engine's communicator. operation, dtype, reduce and root are numbers of the engine's own, which it gets back unchanged. */
struct medusa_collective {
	uint32_t operation;
	uint32_t dtype;
	uint32_t reduce;
	uint32_t root;
	uint64_t count;
	uint64_t send;
	uint64_t send_bytes;
	uint64_t recv;
	uint64_t recv_bytes;
};
/* The engine is about to call its communicator on a stream (a CUstream), and has called it. The nodes that the call adds to a capture are a
 * hole of the artifact: a restored start makes the call anew (medusa_session_collectives). Memory that any thread allocates meanwhile is the communicator's, as in
 * medusa_mark_communicator. */
void medusa_mark_collective(const struct medusa_collective *call, uint64_t stream);
void medusa_mark_collective_end(uint64_t stream);
/* The engine is about to make a communicator (begins = 1), or has made it (0). All memory that the process allocates meanwhile, on any thread, is the
 * communicator's and in no artifact. */
void medusa_mark_communicator(int begins);

/* The framework's allocator handed out (live = 1) or took back (live = 0) a block inside a driver allocation. */
void medusa_mark_block(uint64_t addr, uint64_t size, int live);

/* Opaque metadata of the engine, returned unchanged in a restored start: for example, the address of the buffer in which a
 * piece of the model leaves its results. It must be the same in every start. If a name is noted twice, the last value counts. */
void medusa_mark_note(const char *name, const void *value, size_t size);

/* One factor that the artifact must match, for example ("model.config", "sha256:..."). See artifacts/README.md. */
void medusa_mark_identity(const char *key, const char *value);

/* Result of the KV-cache profile: the bytes that remain for the cache, and the numbers from which they follow. workspace is the
 * size of the buffers that the profile forward has grown and that stay. An engine that skips this forward reserves that size. */
struct medusa_kv_profile {
	uint64_t kv_bytes;
	uint64_t total;
	uint64_t free_before;
	uint64_t free_after;
	uint64_t peak_forward;
	double utilization;
	int64_t profile_tokens;
	uint64_t workspace;
};
void medusa_mark_kv_profile(const struct medusa_kv_profile *p);
/* The KV cache has the addresses of its full size, and any memory from least bytes on. A block has block bytes, over all layers.
 * medusa_session_elastic marks it as well. */
void medusa_mark_elastic(uint64_t least, uint64_t block);

/* Which of the engine's workers this process is. Returns 0 and the rank (0 of 1 if it is the only one), or -1 if the
 * environment contradicts itself. */
int medusa_rank(uint32_t *rank, uint32_t *world);

/* ---- maps, interposer -> restore (modes record and replay) ------------------------------------------------ */

/* The i-th allocation of the process, counted over all kinds in call order, trigger scopes left out. */
struct medusa_alloc {
	uint64_t addr;
	uint64_t size;
	uint32_t kind; /* enum alloc_kind of interpose/trace.spec */
	uint32_t thread; /* order of first appearance */
	uint32_t live;
	uint32_t phase; /* how many phases had been marked */
};
size_t medusa_alloc_count(void);
int medusa_alloc_get(size_t i, struct medusa_alloc *out); /* 0, or -1 if i is out of range */

/* The ordered sequence of allocations and frees: entry >= 0 allocates that index, entry < 0 frees index -entry-1. */
size_t medusa_sequence(int64_t *out, size_t cap); /* returns the full length */

/* Whether device memory lies at fixed addresses. */
enum medusa_exact_state {
	MEDUSA_EXACT_UNASKED = 0, /* or nothing was allocated yet */
	MEDUSA_EXACT_ON = 1,
	MEDUSA_EXACT_REFUSED = 2, /* the driver places memory; reason says why */
};
/* Device memory at fixed addresses. */
struct medusa_exact {
	uint64_t base;
	uint64_t size;
	uint32_t state;
	char reason[124];
};
void medusa_exact_get(struct medusa_exact *out);
/* Allocates size bytes at an address of the region, for cuMemFree. Returns a CUresult. */
int medusa_exact_place(uint64_t addr, uint64_t size);

/* The i-th event of the process in creation order, trigger scopes left out. */
struct medusa_event {
	uint64_t handle;
	uint32_t flags; /* of cuEventCreate */
	uint32_t live;
	uint32_t steps; /* entries of the sequence above when it was created */
	uint32_t reserved;
};
size_t medusa_event_count(void);
int medusa_event_get(size_t i, struct medusa_event *out); /* 0, or -1 if i is out of range */

/* Watches the live allocations that begin at these addresses and returns their number. medusa_watched_frees points to a counter
 * (at a fixed address, read atomically) of the frees of watched allocations. Once it changes, graphs that refer to them must not
 * run any more. An unmap of a watched mapping counts in medusa_watched_unmaps, and the mapping is suspended until one of the same
 * size is made at its address. If its address is given back, that is a free. medusa_suspended points to the number of mappings
 * that are suspended now. */
size_t medusa_watch(const uint64_t *addresses, size_t n);
const uint32_t *medusa_watched_frees(void);
const uint32_t *medusa_watched_unmaps(void);
const uint32_t *medusa_suspended(void);
/* The same for modules and libraries that are unloaded, and events that are destroyed. */
void medusa_watch_handles(const uint64_t *handles, size_t n);
const uint32_t *medusa_watched_ends(void);

/* Modules and libraries loaded through the public calls, in load order. If a DSO with a build-id contains the image, in memory
 * that cannot be written, build-id and offset identify it, and its hash is computed only on request. */
struct medusa_module {
	uint64_t handle;
	uint32_t is_library;
	uint32_t unloaded;
	uint8_t image_sha256[32]; /* zero if build_id and dso_offset identify the image */
	uint64_t image_size;
	char build_id[64]; /* hex, empty if the image is in no DSO */
	uint64_t dso_offset;
};
size_t medusa_module_count(void);
int medusa_module_get(size_t i, struct medusa_module *out);
/* The hash of an image that is identified by its place. -1: the i-th image is not, or its DSO is gone. */
int medusa_module_hash(size_t i, uint8_t out[32]);

/* While a trigger scope is open on a thread, the interposer counts the thread's launches, keeps their functions, and leaves its
 * allocations out of the sequence above. The first layer runs eagerly in such a scope, and may do the work of the skipped
 * warm-up. */
void medusa_trigger_begin(void);
void medusa_trigger_end(void);
size_t medusa_trigger_functions(uint64_t *out, size_t cap); /* distinct handles that were launched, CUfunction or CUkernel; returns the full count */
uint64_t medusa_trigger_launches(void);

/* Captured graphs, in capture order: the label and the CUgraphExec last instantiated from each graph (0 if there is none). */
size_t medusa_graph_count(void);
int medusa_graph_get(size_t i, char *label, size_t cap, uint64_t *exec);

/* The address at which a tensor was last named (medusa_mark_tensor). Returns 0, or -1 if it was never named. */
int medusa_tensor_get(const char *name, uint64_t *addr, uint64_t *size);

/* The blocks of the framework's allocator when the capture phase began (phase "warmup" or "capture"), in no order. Those
 * in allocations of trigger scopes are left out. */
struct medusa_block {
	uint32_t alloc; /* index */
	uint32_t live;
	uint64_t offset;
	uint64_t size;
};
size_t medusa_block_map(struct medusa_block *out, size_t cap); /* returns the full count */

/* ---- the player, restore -> driver ------------------------------------------------------------------------ */

/* One driver call. Bit i of deref: arg[i] is the address of a 64-bit slot whose value at the time of the call is passed
 * (handles that an earlier call of the same program stored). Calls are made on the calling thread. */
struct medusa_call {
	uint64_t fn;
	uint32_t nargs; /* at most 8 */
	uint32_t deref;
	uint64_t arg[8];
};
/* Runs the calls in order. Returns 0, or the first CUresult that is not 0, with its index in *failed. */
int medusa_play(const struct medusa_call *calls, size_t n, size_t *failed);

#pragma GCC visibility pop

#endif
