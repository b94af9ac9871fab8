/*
 * ptx_internal.h: types and functions that the parts of the PTX interpreter share.
 *
 * The path of a kernel: text -> tokens (ptx_lex) -> declarations and statements (ptx_parse, ptx_body) -> typed operations
 * on virtual registers (ptx_decode*) -> rows of a register file, resolved addresses and branch targets (ptx_link) ->
 * execution of whole warps (ptx_exec*) driven over blocks and grid (ptx_launch, ptx_sched).
 *
 * A register is a row of 32 lanes (structure of arrays), so that each operation is one loop the compiler vectorises.
 * 16-bit registers use 32-bit lanes with the upper half zero; predicates are one 32-bit mask.
 */
#ifndef PTX_INTERNAL_H
#define PTX_INTERNAL_H

#include "ptx.h"

#include <setjmp.h>
#include <stdbool.h>

#define PTX_LANES 32
#define PTX_ROW32 (PTX_LANES * 4)
#define PTX_ROW64 (PTX_LANES * 8)

/* Generic addresses of windows that are no device memory: not canonical on any host, so they never meet a real address. */
#define PTX_SHARED_WINDOW 0x5a5a000000000000ull
#define PTX_LOCAL_WINDOW 0x10ca000000000000ull
#define PTX_PARAM_WINDOW 0x9a9a000000000000ull
#define PTX_WINDOW_MASK 0xffffffff00000000ull
/* Parameters of device functions live in the thread's frame; this bit tells their addresses from kernel parameters. */
#define PTX_PARAM_IN_FRAME 0x01000000ull

#include "ptx_ops.h"

enum ptx_op {
#define X(name) OP_##name,
	PTX_OPS(X)
#undef X
	OP_COUNT
};

enum ptx_class { CLS_W16, CLS_W32, CLS_W64, CLS_PRED };

enum ptx_type {
	TY_NONE, TY_PRED,
	TY_B8, TY_U8, TY_S8, TY_B16, TY_U16, TY_S16, TY_B32, TY_U32, TY_S32, TY_B64, TY_U64, TY_S64,
	TY_F16, TY_F16X2, TY_BF16, TY_BF16X2, TY_F32, TY_F64,
	TY_E4M3X2, TY_E5M2X2 /* in cvt alone */
};

struct warp;
struct insn;
typedef const struct insn *(*ptx_fn)(struct warp *w, const struct insn *in);

/* One operation. o[0..ndef) are written, o[ndef..ndef+nuse) read: virtual registers before linking, byte offsets into the
 * warp's register file after. Branches hold a relative distance in imm. */
struct insn {
	ptx_fn fn;
	uint32_t o[6];
	int64_t imm;
	uint16_t op;
	uint8_t sub, size, vec, cls, ndef, nuse;
	uint32_t aux, line;
	const char *text;
};

/* struct insn.sub of memory operations */
enum { CLOCK_UPPER = 1, CLOCK_GLOBAL = 2 }; /* of a clock: its upper half; the global timer */
enum { MEM_ADDR32 = 1, MEM_SIGNED = 2, MEM_SPACE = 2 /* bits from here: enum ptx_space */ };
enum ptx_space { SP_GENERIC, SP_GLOBAL, SP_SHARED, SP_LOCAL, SP_PARAM };

enum ptx_vkind { V_REG, V_CONST, V_SREG, V_PINNED };
enum ptx_reloc { REL_NONE, REL_GLOBAL, REL_SHARED, REL_FRAME };

struct vreg {
	uint64_t value; /* V_CONST: bits or addend; V_SREG: enum ptx_sreg */
	uint32_t ref;   /* index of the global, or of the shared variable, that value is relative to */
	uint32_t next;  /* hash chain of constants */
	uint8_t cls, kind, reloc;
};

enum ptx_sreg {
	SR_TID_X, SR_TID_Y, SR_TID_Z, SR_NTID_X, SR_NTID_Y, SR_NTID_Z, SR_CTAID_X, SR_CTAID_Y, SR_CTAID_Z,
	SR_NCTAID_X, SR_NCTAID_Y, SR_NCTAID_Z, SR_LANEID, SR_WARPID, SR_NWARPID, SR_SMID, SR_NSMID, SR_WARPSZ, SR_ZERO,
	SR_LANEMASK_EQ, SR_LANEMASK_LT, SR_LANEMASK_LE, SR_LANEMASK_GT, SR_LANEMASK_GE, SR_DYN_SMEM, SR_TOTAL_SMEM
};

struct ptx_arena { struct arena_chunk *head; };
void *ptx_alloc(struct ptx_arena *a, size_t n, size_t each); /* zeroed; NULL when memory is short */
void ptx_arena_free(struct ptx_arena *a);

/* A formal parameter or return value: bytes in the frame, or in the kernel's parameter block. */
struct formal { uint32_t offset, size, align; };

struct svar { uint64_t size; uint32_t align; bool dynamic; }; /* a .shared variable */

struct func {
	const char *name;
	bool entry, body, register_formals;
	struct formal *in, *out;
	uint32_t nin, nout, param_bytes;
	struct vreg *v;
	uint32_t nv, cap_v;
	struct insn *code;
	uint32_t ncode, cap_code;
	uint32_t frame_bytes; /* .local variables and the call area of one thread */
	uint32_t max_threads;
	/* linking */
	uint32_t *offset;    /* register file offset of each virtual register */
	uint32_t reg_bytes, visit, base_reg, base_frame, base_pc, ret_row;
};

/* A row to be filled before a kernel runs. */
struct init_row { uint32_t offset, ref; uint64_t value; uint8_t cls, kind, reloc; };

struct ptx_kernel {
	const struct ptx_module *module;
	struct func *f;
	struct ptx_param *params;
	struct insn *code;
	uint32_t ncode, reg_bytes, frame_bytes, ncache, nparams;
	uint32_t shared_bytes, dynamic_base, entry;
	struct init_row *rows; /* those that depend on the block come first */
	uint32_t nrows, nblock_rows;
	bool machine_code; /* cubin.c: it has no PTX, and a launch has no effect */
};

struct global_init { uint64_t offset, value; uint32_t ref; }; /* the address of global ref, plus value, at offset */
struct gvar {
	struct ptx_global pub;
	struct global_init *refs; /* addresses inside the initialiser */
	uint32_t nrefs;
	uint64_t bound;
};

struct ptx_module {
	struct ptx_arena arena;
	struct func **funcs;
	struct gvar **globals;
	struct svar *shared;
	struct ptx_kernel *kernels;
	size_t nfuncs, cap_funcs, nglobals, cap_globals, nshared, cap_shared, nkernels;
};

/* Lays out registers, frames, shared memory and code of every kernel. Returns NULL or a message. */
const char *ptx_link(struct ptx_module *m);
/* Assigns register file offsets to f's virtual registers, reusing rows of dead ones. False when memory is short. */
bool ptx_assign_rows(struct ptx_arena *a, struct func *f);

static inline uint32_t ptx_class_bytes(uint8_t cls) { return cls == CLS_W64 ? PTX_ROW64 : cls == CLS_PRED ? 4 : PTX_ROW32; }

/* ---- execution ---- */

enum { STOP_NONE, STOP_BLOCKED, STOP_DONE, STOP_YIELD, STOP_FAULT };
#define PTX_NO_JOIN ((const struct insn *)UINTPTR_MAX)

struct warp {
	uint8_t *regs;
	uint32_t mask;   /* lanes the current instruction works on */
	uint32_t full;   /* nonzero: lanes outside mask are dead, so whole rows may be overwritten */
	uint32_t group;  /* lanes running together at this pc */
	uint32_t active; /* number of lanes in group */
	uint32_t dead;   /* exited, or beyond the block's last thread */
	uint32_t ready;  /* lanes outside group that could run at lane_pc */
	uint32_t syncing; /* lanes waiting in a .sync instruction */
	uint32_t warp_barrier; /* lanes waiting in bar.warp.sync */
	uint32_t at_barrier;
	uint32_t carry;  /* condition code register */
	const struct insn *join; /* lowest pc of a ready lane: reaching it means to regroup */
	const struct insn *code;
	int64_t fuel;
	uint64_t lane_instructions;
	uint32_t yields, last_pc; /* slices used up while diverged; where the group that last ran started */
	uint32_t index, stop;
	struct cta *cta;
	struct launch *launch;
	uint8_t *frame; /* local memory: frame_bytes for each lane */
	struct async_copy *async; /* copies that no wait has moved yet */
	uint32_t nasync, cap_async, async_group[PTX_LANES];
	uint32_t lane_pc[PTX_LANES], warp_members[PTX_LANES]; /* of a lane: where it goes on; its mask in bar.warp.sync */
	uint8_t barrier_id[PTX_LANES];
	uint8_t scratch[PTX_ROW64] __attribute__((aligned(128)));
};

struct barrier { uint32_t arrived, expected, acc_and, acc_or, acc_popc; };

struct cta {
	struct launch *launch;
	struct warp *warps;
	uint32_t nwarps, ctaid[3];
	uint8_t turn[1024 / PTX_LANES]; /* the warps, in the order in which they run up to the next barrier */
	uint8_t *shared, *regs, *frames;
	uint64_t executed, order; /* order: the state that orders of its warps are drawn from */
	struct barrier bar[16];
	uint32_t pending; /* barriers with arrivals */
	struct cta *next;
};

/* The blocks of a launch, which the threads that run it take one by one. */
struct blocks { uint64_t total, next; bool stop; };

struct launch {
	const struct ptx_kernel *k;
	struct blocks *blocks;
	uint32_t grid[3], block[3], threads, shared_bytes;
	const uint8_t *params;
	const struct ptx_memory *mem;
	struct ptx_range *cache;
	struct ptx_fault *fault;
	uint64_t clock, order; /* order: the start of the blocks' orders */
};

/* Calls run in several threads if it is worth it, each with a copy of the launch (ptx_spread.c). Returns 0, or -1 with the fault filled. */
int ptx_spread(struct launch *l, int (*run)(struct launch *));
/* Threads of a launch at most; 0: as many as the process has processors. For tests. */
extern int ptx_threads;

/* Instructions one warp of a launch may take per block before it counts as stuck; tests lower it. */
extern uint64_t ptx_block_budget;

/* Scheduling (ptx_sched.c). Each returns the next instruction, or NULL with w->stop set. */
const struct insn *ptx_regroup(struct warp *w);                             /* picks the group with the lowest pc */
const struct insn *ptx_block_slow(struct warp *w, const struct insn *in);   /* at a block start: join, or out of fuel */
const struct insn *ptx_diverge(struct warp *w, const struct insn *in, uint32_t taken, const struct insn *target);
const struct insn *ptx_scatter(struct warp *w, const struct insn *in, const uint32_t *target); /* lanes of mask to their own pc */
const struct insn *ptx_exit(struct warp *w, const struct insn *in);
const struct insn *ptx_barrier(struct warp *w, const struct insn *in);
const struct insn *ptx_warp_barrier(struct warp *w, const struct insn *in);
/* Calls act once for each member mask all of whose live lanes are at this .sync instruction with that mask. The other lanes wait. act returns NULL after a fault. */
const struct insn *ptx_sync(struct warp *w, const struct insn *in, const uint32_t *members, ptx_fn act);
/* Whether the lanes of the mask are exactly the live members of one mask, so that act can be called at once. */
static inline bool ptx_all_here(const struct warp *w, const uint32_t *members)
{
	uint32_t first = members[__builtin_ctz(w->mask)], differ = 0;

	for (int i = 0; i < PTX_LANES; i++)
		differ |= (members[i] ^ first) & -(w->mask >> i & 1);
	return !differ && (first & ~w->dead) == w->mask;
}
void ptx_release_barriers(struct cta *c);
static inline void ptx_set_mask(struct warp *w, uint32_t mask) { w->mask = mask; w->full = (mask | w->dead) == UINT32_MAX; }

/* Faults. Each fills the launch's fault and returns NULL. */
const struct insn *ptx_fault_at(struct warp *w, const struct insn *in, uint32_t lane, int kind, uint64_t addr, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

/* Host address of n bytes at a lane's address, or NULL after a fault (ptx_memory.c). */
uint8_t *ptx_resolve(struct warp *w, const struct insn *in, uint32_t lane, uint64_t addr, uint32_t n);
const struct insn *ptx_atomic(struct warp *w, const struct insn *in);
const struct insn *ptx_multimem(struct warp *w, const struct insn *in); /* ptx_multimem.c */
const struct insn *ptx_vote(struct warp *w, const struct insn *in);
const struct insn *ptx_async(struct warp *w, const struct insn *in);  /* cp.async (ptx_async.c) */
const struct insn *ptx_matrix(struct warp *w, const struct insn *in); /* ldmatrix, stmatrix, mma (ptx_matrix.c) */
const struct insn *ptx_convert(struct warp *w, const struct insn *in);

enum ptx_atom { AT_ADD, AT_MIN, AT_MAX, AT_AND, AT_OR, AT_XOR, AT_EXCH, AT_CAS, AT_INC, AT_DEC };
/* struct insn.sub (A) and .vec (B) of OP_MMA */
enum ptx_matrix_type { MX_BF16, MX_F16, MX_TF32, MX_S8, MX_U8, MX_E4M3, MX_E5M2 };
/* The value that an atomic operation leaves where old was; the same at a host address, which gives old. */
uint64_t ptx_atom_result(enum ptx_atom op, enum ptx_type t, uint64_t old, uint64_t b, uint64_t c);
uint64_t ptx_atom_at(uint8_t *p, uint32_t size, enum ptx_atom op, enum ptx_type t, uint64_t b, uint64_t c);
/* struct insn.aux of OP_MULTIMEM: what it does, then from these bits on enum ptx_atom and enum ptx_type */
enum { MM_REDUCE, MM_STORE, MM_ADD, MM_KIND = 3, MM_OP = 4, MM_TYPE = 8, MM_ACC32 = 1 << 16 };
enum ptx_barrier_kind { BAR_SYNC, BAR_ARRIVE, BAR_POPC, BAR_AND, BAR_OR };
enum ptx_shfl { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
enum ptx_vote { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum ptx_redux { RX_ADD, RX_MIN_U, RX_MIN_S, RX_MAX_U, RX_MAX_S, RX_AND, RX_OR, RX_XOR };
/* struct insn.imm of OP_CVT */
enum { CVT_RN, CVT_RZ, CVT_RM, CVT_RP, CVT_MODE = 3, CVT_TO_INT = 8, CVT_FTZ = 16, CVT_SAT = 32, CVT_RELU = 64, CVT_TF32 = 128 };
/* struct insn.aux of OP_BAR */
enum { BAR_HAS_COUNT = 1, BAR_NOT = 2 };

/* One lane of a register (ptx_convert.c). */
uint64_t ptx_lane(const struct warp *w, uint32_t offset, uint8_t cls, uint32_t lane);
void ptx_set_lane(struct warp *w, uint32_t offset, uint8_t cls, uint32_t lane, uint64_t v);

/* The operations, in the instruction set the host offers. */
extern const ptx_fn ptx_table_base[OP_COUNT];
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PTX_X86_VARIANTS 1
extern const ptx_fn ptx_table_v3[OP_COUNT];
#endif

/* For tests: the table to link with instead of the host's best. */
extern const ptx_fn *ptx_force_table;

#endif
