/*
 * ptx_warp.c: operations in which the lanes of a warp see each other, apart from shfl: vote, match, redux, elect.
 *
 * In:  the instruction and the member mask. Out: results in every lane of the mask, once all live members have arrived.
 */
#include "ptx_internal.h"

#include <string.h>

static uint32_t first_lane(const struct warp *w) { return (uint32_t)__builtin_ctz(w->mask); }

static uint32_t predicate(const struct warp *w, uint32_t offset)
{
	uint32_t p;

	memcpy(&p, w->regs + offset, 4);
	return p;
}

static void set_predicate(struct warp *w, uint32_t offset, uint32_t lanes)
{
	uint32_t p = (predicate(w, offset) & ~w->mask) | (lanes & w->mask);

	memcpy(w->regs + offset, &p, 4);
}

static void broadcast(struct warp *w, uint32_t offset, uint32_t v)
{
	for (uint32_t m = w->mask; m; m &= m - 1)
		ptx_set_lane(w, offset, CLS_W32, (uint32_t)__builtin_ctz(m), v);
}

static void match(struct warp *w, const struct insn *in)
{
	uint32_t all = 0, lead = first_lane(w);
	uint64_t v[PTX_LANES] = { 0 };

	/* Read all lanes first: the result may take the operand's row. */
	for (uint32_t m = w->mask; m; m &= m - 1)
		v[__builtin_ctz(m)] = ptx_lane(w, in->o[2], in->cls, (uint32_t)__builtin_ctz(m));
	for (uint32_t m = w->mask; m; m &= m - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(m), same = 0;

		for (uint32_t k = w->mask; k; k &= k - 1)
			same |= (uint32_t)(v[__builtin_ctz(k)] == v[lane]) << __builtin_ctz(k);
		if (!in->sub)
			ptx_set_lane(w, in->o[0], CLS_W32, lane, same);
		all |= (uint32_t)(v[lane] == v[lead]) << lane;
	}
	if (in->sub) {
		bool same = !(w->mask & ~all);

		broadcast(w, in->o[0], same ? w->mask : 0);
		set_predicate(w, in->o[1], same ? UINT32_MAX : 0);
	}
}

static uint32_t reduce(const struct warp *w, const struct insn *in)
{
	uint32_t r = (uint32_t)ptx_lane(w, in->o[1], CLS_W32, first_lane(w));

	for (uint32_t m = w->mask & (w->mask - 1); m; m &= m - 1) {
		uint32_t v = (uint32_t)ptx_lane(w, in->o[1], CLS_W32, (uint32_t)__builtin_ctz(m));

		switch (in->sub) {
		case RX_ADD: r += v; break;
		case RX_MIN_U: r = v < r ? v : r; break;
		case RX_MAX_U: r = v > r ? v : r; break;
		case RX_MIN_S: r = (int32_t)v < (int32_t)r ? v : r; break;
		case RX_MAX_S: r = (int32_t)v > (int32_t)r ? v : r; break;
		case RX_AND: r &= v; break;
		case RX_OR: r |= v; break;
		default: r ^= v; break;
		}
	}
	return r;
}

/* With the lanes of one member mask. */
static const struct insn *act(struct warp *w, const struct insn *in)
{
	uint32_t yes;

	switch (in->op) {
	case OP_MATCH:
		match(w, in);
		break;
	case OP_REDUX:
		broadcast(w, in->o[0], reduce(w, in));
		break;
	case OP_ELECT:
		broadcast(w, in->o[0], first_lane(w));
		set_predicate(w, in->o[1], 1u << first_lane(w));
		break;
	default: /* vote: o[0] result, o[1] predicate; aux: 1 for !p */
		yes = predicate(w, in->o[1]);
		yes = (in->aux ? ~yes : yes) & w->mask;
		if (in->sub == VOTE_BALLOT)
			broadcast(w, in->o[0], yes);
		else
			set_predicate(w, in->o[0], (in->sub == VOTE_ANY ? yes != 0 : in->sub == VOTE_ALL ? yes == w->mask : yes == w->mask || !yes) ? UINT32_MAX : 0);
		break;
	}
	return in + 1;
}

/* The member mask is the last operand that is read. */
const struct insn *ptx_vote(struct warp *w, const struct insn *in)
{
	const uint32_t *members = (const uint32_t *)(const void *)(w->regs + in->o[in->ndef + in->nuse - 1]);

	return ptx_all_here(w, members) ? act(w, in) : ptx_sync(w, in, members, act);
}
