/*
 * ptx_async.c: cp.async: copies from global to shared memory that are there once they were waited for.
 *
 * In:  an instruction and the lanes that execute it. Out: copies that wait in the warp, in their order, with the bytes that the
 *      source had when they were issued; a wait moves those of its lanes, so that a kernel without the wait finds the old bytes.
 * Fails: with a fault for an address that is not live or not aligned, or when memory is short.
 */
#include "ptx_internal.h"

#include <stdlib.h>
#include <string.h>

/* One lane's copy; group counts the groups that the lane committed before. */
struct async_copy { uint8_t *to; uint32_t group; uint8_t lane, n, bytes[16]; };

static struct async_copy *add(struct warp *w)
{
	if (w->nasync == w->cap_async) {
		uint32_t cap = w->cap_async ? 2 * w->cap_async : 256;
		struct async_copy *a = realloc(w->async, cap * sizeof *a);

		if (!a)
			return NULL;
		w->async = a;
		w->cap_async = cap;
	}
	return &w->async[w->nasync++];
}

static const struct insn *issue(struct warp *w, const struct insn *in)
{
	struct insn to = *in, from = *in;
	uint8_t acls = in->sub & MEM_ADDR32 ? CLS_W32 : CLS_W64;

	to.sub = SP_SHARED << MEM_SPACE;
	from.sub = SP_GLOBAL << MEM_SPACE;
	for (uint32_t m = w->mask; m; m &= m - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(m), n = in->size, given;
		uint8_t *d = ptx_resolve(w, &to, lane, ptx_lane(w, in->o[0], acls, lane) + in->o[3], n), *s = NULL;
		struct async_copy *c;

		if (!d)
			return NULL;
		/* Bytes beyond the given number are zero; a predicate leaves out all of them. */
		given = (uint32_t)ptx_lane(w, in->o[2], in->cls == CLS_PRED ? CLS_W32 : in->cls, in->cls == CLS_PRED ? 0 : lane);
		given = in->cls == CLS_PRED ? (given >> lane & 1 ? 0 : n) : given;
		if (given > n)
			return ptx_fault_at(w, in, lane, PTX_ILLEGAL_ADDRESS, given, "%u bytes of %u", given, n);
		if (given && !(s = ptx_resolve(w, &from, lane, ptx_lane(w, in->o[1], CLS_W64, lane) + (uint64_t)in->imm, n)))
			return NULL;
		c = add(w);
		if (!c)
			return ptx_fault_at(w, in, lane, PTX_UNSUPPORTED, 0, "out of host memory");
		*c = (struct async_copy){ .to = d, .group = w->async_group[lane], .lane = (uint8_t)lane, .n = (uint8_t)n };
		/* mutant: a copy has the bytes of its issue */
		if (given)
			memcpy(c->bytes, s, given);
	}
	return in + 1;
}

/* Copies of the lanes of the mask, but for those of their last groups. */
static void arrive(struct warp *w, uint32_t pending, bool all)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->nasync; i++) {
		struct async_copy *c = &w->async[i];

		/* mutant: copies of a group that was waited for */
		if (w->mask >> c->lane & 1 && (all || (uint64_t)c->group + pending < w->async_group[c->lane]))
			memcpy(c->to, c->bytes, c->n);
		else
			w->async[kept++] = *c;
	}
	w->nasync = kept;
}

const struct insn *ptx_async(struct warp *w, const struct insn *in)
{
	switch (in->op) {
	case OP_ASYNC_COPY:
		return issue(w, in);
	case OP_ASYNC_COMMIT:
		for (uint32_t m = w->mask; m; m &= m - 1)
			w->async_group[__builtin_ctz(m)]++;
		return in + 1;
	default:
		arrive(w, (uint32_t)(in->imm > INT32_MAX ? INT32_MAX : in->imm), in->sub);
		return in + 1;
	}
}
