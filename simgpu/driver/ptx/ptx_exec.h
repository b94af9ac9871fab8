/*
 * ptx_exec.h: the handlers of all operations, compiled once for each instruction set by the ptx_exec_*.c files.
 *
 * In:  a warp and a linked instruction. Out: the next instruction, or NULL with the reason in w->stop.
 *
 * A handler computes all 32 lanes. If some live lane must keep its old value, the result goes to a scratch row first
 * and is blended in, so that the arithmetic loops have no conditions and vectorise.
 */
#include <math.h>
#include <string.h>
#include <time.h>

typedef uint8_t __attribute__((may_alias)) u8a;
typedef uint16_t __attribute__((may_alias)) u16a;
typedef uint32_t __attribute__((may_alias)) u32a;
typedef int32_t __attribute__((may_alias)) s32a;
typedef uint64_t __attribute__((may_alias)) u64a;
typedef int64_t __attribute__((may_alias)) s64a;
typedef float __attribute__((may_alias)) f32a;
typedef double __attribute__((may_alias)) f64a;

#define ROW(T, n) ((T *)__builtin_assume_aligned(w->regs + in->o[n], 128))
#define PRED(n) (*(u32a *)(w->regs + in->o[n]))
/* Lanes never depend on each other; a destination row is either a source row or disjoint from it. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
#define EACH INDEPENDENT for (int i = 0; i < PTX_LANES; i++)
#define HANDLER(NAME) static const struct insn *h_##NAME(struct warp *w, const struct insn *in)
#define OUT(T, n) (w->full ? ROW(T, n) : (T *)__builtin_assume_aligned(w->scratch, 128))
#define COMMIT(T, n) \
	do { \
		if (!w->full) { \
			if (sizeof(T) == 8) \
				blend64(ROW(u64a, n), (const u64a *)w->scratch, w->mask); \
			else \
				blend32(ROW(u32a, n), (const u32a *)w->scratch, w->mask); \
		} \
	} while (0)

/* Arithmetic goes straight to the next handler, which saves a return and gives each handler an indirect jump of its own to
 * predict. Only handlers without locals in memory may: there the call is a jump. Others return to the loop of run_warp. */
#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define NEXT return in[1].fn(w, in + 1)
#else
#define NEXT return in + 1
#endif

static void blend32(u32a *d, const u32a *s, uint32_t mask)
{
	EACH d[i] = mask >> i & 1 ? s[i] : d[i];
}

static void blend64(u64a *d, const u64a *s, uint32_t mask)
{
	EACH d[i] = mask >> i & 1 ? s[i] : d[i];
}

static inline uint32_t pred_blend(const struct warp *w, uint32_t old, uint32_t m) { return (old & ~w->mask) | (m & w->mask); }

#define UNARY(NAME, TD, TA, E) \
	HANDLER(NAME) \
	{ \
		const TA *pa = ROW(TA, 1); \
		TD *d = OUT(TD, 0); \
		EACH { TA a = pa[i]; d[i] = (TD)(E); } \
		COMMIT(TD, 0); \
		NEXT; \
	}
#define BINARY(NAME, TD, TA, TB, E) \
	HANDLER(NAME) \
	{ \
		const TA *pa = ROW(TA, 1); \
		const TB *pb = ROW(TB, 2); \
		TD *d = OUT(TD, 0); \
		EACH { TA a = pa[i]; TB b = pb[i]; d[i] = (TD)(E); } \
		COMMIT(TD, 0); \
		NEXT; \
	}
#define TERNARY(NAME, TD, TA, TB, TC, E) \
	HANDLER(NAME) \
	{ \
		const TA *pa = ROW(TA, 1); \
		const TB *pb = ROW(TB, 2); \
		const TC *pc = ROW(TC, 3); \
		TD *d = OUT(TD, 0); \
		EACH { TA a = pa[i]; TB b = pb[i]; TC c = pc[i]; d[i] = (TD)(E); } \
		COMMIT(TD, 0); \
		NEXT; \
	}
/* Predicate d = compare, combined with predicate c by sub (0 none, 1 and, 2 or, 3 xor), and its complement's combination. */
#define COMPARE(NAME, T, PRE, E) \
	HANDLER(NAME) \
	{ \
		const T *pa = ROW(T, 2), *pb = ROW(T, 3); \
		uint32_t m = 0; \
		for (int i = 0; i < PTX_LANES; i++) { T a = pa[i], b = pb[i]; PRE; m |= (E) ? 1u << i : 0; } \
		return set_predicates(w, in, m); \
	}

static const struct insn *set_predicates(struct warp *w, const struct insn *in, uint32_t m)
{
	uint32_t p = m, q = ~m;

	if (in->sub) {
		uint32_t c = PRED(4);

		if (in->aux)
			c = ~c;
		p = in->sub == 1 ? p & c : in->sub == 2 ? p | c : p ^ c;
		q = in->sub == 1 ? q & c : in->sub == 2 ? q | c : q ^ c;
	}
	PRED(0) = pred_blend(w, PRED(0), p);
	if (in->vec == 2)
		PRED(1) = pred_blend(w, PRED(1), q);
	return in + 1;
}

#include "ptx_exec_int.h"
#include "ptx_exec_float.h"
#include "ptx_exec_mem.h"
#include "ptx_exec_control.h"

const ptx_fn PTX_TABLE[OP_COUNT] = {
#define X(name) h_##name,
	PTX_OPS(X)
#undef X
};
