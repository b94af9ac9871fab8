/*
 * ptx_memory.c: one lane's address to a host address, and atomic operations.
 *
 * In:  a lane's address in the space its instruction names. Out: a host address that is good for n bytes.
 * Fails: with a fault that names instruction, address and lane, for an address outside live memory or the thread's
 *        windows, and for one that is not a multiple of the access's size.
 */
#include "ptx_half.h"
#include "ptx_internal.h"

#include <stdio.h>

static uint8_t *outside(struct warp *w, const struct insn *in, uint32_t lane, uint64_t addr, const char *what, uint64_t size)
{
	ptx_fault_at(w, in, lane, PTX_ILLEGAL_ADDRESS, addr, "address 0x%llx is outside %s (%llu bytes)", (unsigned long long)addr, what,
	             (unsigned long long)size);
	return NULL;
}

uint8_t *ptx_resolve(struct warp *w, const struct insn *in, uint32_t lane, uint64_t addr, uint32_t n)
{
	struct launch *l = w->launch;
	enum ptx_space space = (enum ptx_space)(in->sub >> MEM_SPACE);
	uint64_t at = addr, frame = l->k->frame_bytes, params = ptx_kernel_param_bytes(l->k);
	struct ptx_range r;

	if (addr & (n - 1)) {
		ptx_fault_at(w, in, lane, PTX_MISALIGNED, addr, "address 0x%llx is not a multiple of %u", (unsigned long long)addr, n);
		return NULL;
	}
	if (space == SP_GENERIC) {
		uint64_t window = addr & PTX_WINDOW_MASK;

		space = window == PTX_SHARED_WINDOW ? SP_SHARED : window == PTX_LOCAL_WINDOW ? SP_LOCAL
		      : window == PTX_PARAM_WINDOW ? SP_PARAM : SP_GLOBAL;
		if (space != SP_GLOBAL)
			at = addr - window;
	}
	if (space == SP_PARAM && at & PTX_PARAM_IN_FRAME) {
		space = SP_LOCAL;
		at &= ~PTX_PARAM_IN_FRAME;
	}
	switch (space) {
	case SP_SHARED:
		if (at > l->shared_bytes || l->shared_bytes - at < n)
			return outside(w, in, lane, addr, "the block's shared memory", l->shared_bytes);
		return w->cta->shared + at;
	case SP_LOCAL:
		if (at > frame || frame - at < n)
			return outside(w, in, lane, addr, "the thread's local memory", frame);
		return w->frame + lane * frame + at;
	case SP_PARAM:
		if (at > params || params - at < n)
			return outside(w, in, lane, addr, "the kernel's parameters", params);
		return (uint8_t *)(uintptr_t)(l->params + at);
	default:
		r = l->cache[in->aux];
		if (addr - r.base >= r.size || r.size - (addr - r.base) < n) {
			r = l->mem->find(l->mem->ctx, addr);
			if (r.size == 0 || addr - r.base >= r.size) {
				ptx_fault_at(w, in, lane, PTX_ILLEGAL_ADDRESS, addr, "address 0x%llx is in no live allocation", (unsigned long long)addr);
				return NULL;
			}
			if (r.size - (addr - r.base) < n)
				return outside(w, in, lane, addr, "the allocation it starts in", r.size);
			l->cache[in->aux] = r;
		}
		return (uint8_t *)(uintptr_t)addr;
	}
}

static uint64_t float_atom(enum ptx_atom op, double a, double b, enum ptx_type t)
{
	double r = op == AT_ADD ? a + b : op == AT_MIN ? (a < b ? a : b) : (a > b ? a : b);

	return t == TY_F64 ? double_bits(r) : float_bits((float)r);
}

static uint64_t half_pair_add(uint64_t a, uint64_t b, enum ptx_type t)
{
	uint64_t r = 0;

	for (int s = 0; s < 32; s += 16) {
		uint32_t x = (uint32_t)(a >> s) & 0xffff, y = (uint32_t)(b >> s) & 0xffff;

		if (t == TY_F16 || t == TY_F16X2)
			r |= (uint64_t)float_half(half_float(x) + half_float(y)) << s;
		else
			r |= (uint64_t)float_bfloat(bfloat_float(x) + bfloat_float(y)) << s;
		if (t == TY_F16 || t == TY_BF16)
			break;
	}
	return r;
}

uint64_t ptx_atom_result(enum ptx_atom op, enum ptx_type t, uint64_t old, uint64_t b, uint64_t c)
{
	int64_t so = t == TY_S32 ? (int32_t)old : (int64_t)old, sb = t == TY_S32 ? (int32_t)b : (int64_t)b;
	bool is_signed = t == TY_S32 || t == TY_S64;

	switch (op) {
	case AT_ADD:
		if (t == TY_F32) /* rounded once, in float */
			return float_bits(bits_float((uint32_t)old) + bits_float((uint32_t)b));
		if (t == TY_F64)
			return float_atom(op, bits_double(old), bits_double(b), t);
		if (t >= TY_F16 && t <= TY_BF16X2)
			return half_pair_add(old, b, t);
		return old + b;
	case AT_MIN: return is_signed ? (so < sb ? old : b) : old < b ? old : b;
	case AT_MAX: return is_signed ? (so > sb ? old : b) : old > b ? old : b;
	case AT_AND: return old & b;
	case AT_OR: return old | b;
	case AT_XOR: return old ^ b;
	case AT_EXCH: return b;
	case AT_CAS: return old == b ? c : old;
	case AT_INC: return old >= b ? 0 : old + 1;
	default: return old == 0 || old > b ? b : old - 1;
	}
}

/* Replaces the value at p atomically towards other host threads (copies, other launches); returns the old one. */
uint64_t ptx_atom_at(uint8_t *p, uint32_t size, enum ptx_atom op, enum ptx_type t, uint64_t b, uint64_t c)
{
#define LOOP(T) \
	do { \
		T *q = (T *)(void *)p, old = __atomic_load_n(q, __ATOMIC_RELAXED), new; \
		do \
			new = (T)ptx_atom_result(op, t, old, b, c); \
		while (!__atomic_compare_exchange_n(q, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
		return old; \
	} while (0)

	if (size == 8)
		LOOP(uint64_t);
	if (size == 4)
		LOOP(uint32_t);
	LOOP(uint16_t);
#undef LOOP
}

/* o: result, address, b, c; o[4] enum ptx_atom, o[5] enum ptx_type. vec: 1 when the result is wanted. Lanes in order. */
const struct insn *ptx_atomic(struct warp *w, const struct insn *in)
{
	uint8_t acls = in->sub & MEM_ADDR32 ? CLS_W32 : CLS_W64;

	for (uint32_t m = w->mask; m; m &= m - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(m);
		uint8_t *p = ptx_resolve(w, in, lane, ptx_lane(w, in->o[1], acls, lane) + (uint64_t)in->imm, in->size);
		uint64_t b, c, old;

		if (!p)
			return NULL;
		b = ptx_lane(w, in->o[2], in->cls, lane);
		c = ptx_lane(w, in->o[3], in->cls, lane);
		old = ptx_atom_at(p, in->size, (enum ptx_atom)in->o[4], (enum ptx_type)in->o[5], b, c);
		if (in->vec)
			ptx_set_lane(w, in->o[0], in->cls, lane, old);
	}
	return in + 1;
}
