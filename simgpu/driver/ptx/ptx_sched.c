/*
 * ptx_sched.c: which lanes of a warp run next.
 *
 * In:  a warp whose lanes stopped being together (branch, exit, barrier, .sync instruction), or ran out of fuel.
 * Out: the next instruction with the group set up, or NULL with w->stop saying why the warp cannot go on.
 *
 * Among the lanes that can run, those with the lowest pc go first, so that the sides of a branch meet again at its end. A
 * group that uses up several slices while others wait gives way once: a lane may be spinning on a lock that a waiting lane
 * of its own warp holds.
 */
#include "ptx_internal.h"

#include <string.h>

#ifndef __clang__
#pragma GCC optimize("O3")
#endif

#define PATIENCE 2 /* slices */

static uint32_t pc_of(const struct warp *w, const struct insn *in) { return (uint32_t)(in - w->code); }

/* A table instead of a shift by i lets the loops over lanes vectorise on any host. */
#define BITS4(b) 1u << (b), 2u << (b), 4u << (b), 8u << (b)
static const uint32_t bit[PTX_LANES] = { BITS4(0), BITS4(4), BITS4(8), BITS4(12), BITS4(16), BITS4(20), BITS4(24), BITS4(28) };

/* Smallest pc, not below from, of the lanes in set; UINT32_MAX if there is none. */
static uint32_t lowest_pc(const struct warp *w, uint32_t set, uint32_t from)
{
	uint32_t best = UINT32_MAX;

	for (int i = 0; i < PTX_LANES; i++) {
		uint32_t pc = (set & bit[i]) && w->lane_pc[i] >= from ? w->lane_pc[i] : UINT32_MAX;

		best = pc < best ? pc : best;
	}
	return best;
}

static uint32_t lanes_at(const struct warp *w, uint32_t pc)
{
	uint32_t lanes = 0;

	for (int i = 0; i < PTX_LANES; i++)
		lanes |= w->lane_pc[i] == pc ? bit[i] : 0;
	return lanes;
}

static void park(struct warp *w, uint32_t lanes, const struct insn *at)
{
	uint32_t pc = pc_of(w, at);

	for (int i = 0; i < PTX_LANES; i++)
		w->lane_pc[i] = lanes & bit[i] ? pc : w->lane_pc[i];
}

/* The group becomes these lanes; join is the lowest pc above its own at which others are ready. */
static void set_group(struct warp *w, uint32_t lanes)
{
	w->group = lanes;
	w->active = (uint32_t)__builtin_popcount(lanes);
	ptx_set_mask(w, lanes);
}

static void set_join(struct warp *w, uint32_t pc)
{
	uint32_t next = w->ready ? lowest_pc(w, w->ready, pc + 1) : UINT32_MAX;

	w->join = next == UINT32_MAX ? PTX_NO_JOIN : w->code + next;
}

const struct insn *ptx_regroup(struct warp *w)
{
	uint32_t pc, group, from = 0;
	const struct insn *in;

	if (!w->ready) {
		w->group = w->mask = 0;
		w->stop = w->dead == UINT32_MAX ? STOP_DONE : STOP_BLOCKED;
		return NULL;
	}
	if (w->yields >= PATIENCE) {
		w->yields = 0;
		from = w->last_pc + 1;
	}
	pc = lowest_pc(w, w->ready, from);
	if (pc == UINT32_MAX)
		pc = lowest_pc(w, w->ready, 0);
	group = lanes_at(w, pc) & w->ready;
	w->ready &= ~group;
	set_group(w, group);
	set_join(w, pc);
	w->last_pc = pc;
	in = w->code + pc;
	if (in->op != OP_BLOCK)
		return in;
	w->fuel -= in->imm;
	w->lane_instructions += (uint64_t)in->imm * w->active;
	return in + 1;
}

const struct insn *ptx_block_slow(struct warp *w, const struct insn *in)
{
	bool tired = w->fuel < 0;

	if (in == w->join && !tired) {
		uint32_t pc = pc_of(w, in), more = lanes_at(w, pc) & w->ready;

		w->ready &= ~more;
		w->lane_instructions += (uint64_t)in->imm * (uint32_t)__builtin_popcount(more);
		set_group(w, w->group | more);
		set_join(w, pc);
		return in + 1;
	}
	/* The block is entered, and counted, when the group that includes these lanes runs it. */
	w->fuel += in->imm;
	w->lane_instructions -= (uint64_t)in->imm * w->active;
	park(w, w->group, in);
	if (tired) {
		w->yields = w->ready ? w->yields + 1 : 0;
		w->ready |= w->group;
		w->group = w->mask = 0;
		w->stop = STOP_YIELD;
		return NULL;
	}
	w->ready |= w->group;
	return ptx_regroup(w);
}

/* The side with the lower pc goes on, the other one waits at its block. */
const struct insn *ptx_diverge(struct warp *w, const struct insn *in, uint32_t taken, const struct insn *target)
{
	bool ahead = target > in;
	uint32_t wait = ahead ? taken : w->group & ~taken;
	const struct insn *other = ahead ? target : in;

	park(w, wait, other);
	w->ready |= wait;
	set_group(w, w->group & ~wait);
	if (other < w->join)
		w->join = other;
	return ahead ? in : target;
}

const struct insn *ptx_scatter(struct warp *w, const struct insn *in, const uint32_t *target)
{
	park(w, w->group & ~w->mask, in + 1);
	for (uint32_t m = w->mask; m; m &= m - 1)
		w->lane_pc[__builtin_ctz(m)] = target[__builtin_ctz(m)];
	w->ready |= w->group;
	return ptx_regroup(w);
}

/* Lanes of the mask leave the group for a waiting set; the rest of the group goes on behind in. */
static const struct insn *wait_here(struct warp *w, const struct insn *in, const struct insn *resume)
{
	park(w, w->mask, resume);
	park(w, w->group & ~w->mask, in + 1);
	w->ready |= w->group & ~w->mask;
	return NULL;
}

static uint32_t with_mask(const uint32_t *members, uint32_t lanes, uint32_t mask)
{
	uint32_t same = 0;

	for (int i = 0; i < PTX_LANES; i++)
		same |= members[i] == mask ? bit[i] : 0;
	return same & lanes;
}

/* NULL after the fault of a lane that its own mask leaves out. */
static const struct insn *in_own_mask(struct warp *w, const struct insn *in, const uint32_t *members)
{
	for (uint32_t m = w->mask; m; m &= m - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(m);

		if (!(members[lane] & bit[lane]))
			return ptx_fault_at(w, in, lane, PTX_ILLEGAL_ADDRESS, members[lane], "member mask 0x%08x is without the lane itself, %u", members[lane], lane);
	}
	return in;
}

/* Lanes with different member masks are sets of their own. */
static void release_warp_barrier(struct warp *w)
{
	for (uint32_t left = w->warp_barrier; left;) {
		uint32_t mask = w->warp_members[__builtin_ctz(left)], here = with_mask(w->warp_members, w->warp_barrier, mask);

		left &= ~here;
		if (!(mask & ~w->dead & ~here)) {
			w->ready |= here;
			w->warp_barrier &= ~here;
		}
	}
}

const struct insn *ptx_exit(struct warp *w, const struct insn *in)
{
	w->dead |= w->mask;
	w->group &= ~w->mask;
	w->active = (uint32_t)__builtin_popcount(w->group);
	/* Lanes that waited for the dead ones look again. */
	w->ready |= w->syncing;
	w->syncing = 0;
	release_warp_barrier(w);
	if (w->group && !w->ready)
		return in + 1;
	park(w, w->group, in + 1);
	w->ready |= w->group;
	return ptx_regroup(w);
}

const struct insn *ptx_sync(struct warp *w, const struct insn *in, const uint32_t *masks, ptx_fn act)
{
	uint32_t came = w->mask, others = w->group & ~came, done = 0, waited = lanes_at(w, pc_of(w, in)) & w->syncing;
	uint32_t members[PTX_LANES];

	memcpy(members, masks, sizeof members); /* the result may take their row */
	if (!in_own_mask(w, in, members))
		return NULL;
	for (uint32_t left = came; left;) {
		uint32_t mask = members[__builtin_ctz(left)], here = with_mask(members, came | waited, mask);

		left &= ~here;
		if (mask & ~w->dead & ~here)
			continue;
		ptx_set_mask(w, here);
		if (!act(w, in))
			return NULL;
		done |= here;
	}
	park(w, came & ~done, in);
	w->syncing = (w->syncing & ~done) | (came & ~done);
	if (done) {
		set_group(w, others | done);
		ptx_set_mask(w, done);
		return in + 1;
	}
	park(w, others, in + 1);
	w->ready |= others;
	return ptx_regroup(w);
}

const struct insn *ptx_warp_barrier(struct warp *w, const struct insn *in)
{
	uint32_t members[PTX_LANES];

	memcpy(members, w->regs + in->o[0], sizeof members);
	if (ptx_all_here(w, members))
		return in + 1;
	if (!in_own_mask(w, in, members))
		return NULL;
	wait_here(w, in, in + 1);
	w->warp_barrier |= w->mask;
	for (int i = 0; i < PTX_LANES; i++)
		w->warp_members[i] = w->mask & bit[i] ? members[i] : w->warp_members[i];
	release_warp_barrier(w);
	return ptx_regroup(w);
}

static uint32_t live_threads(const struct cta *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->nwarps; i++)
		n += (uint32_t)__builtin_popcount(~c->warps[i].dead);
	return n;
}

static void give_result(struct warp *w, const struct insn *in, const struct barrier *b, uint32_t lanes)
{
	uint32_t old;

	if (in->sub == BAR_POPC) {
		for (uint32_t m = lanes; m; m &= m - 1)
			ptx_set_lane(w, in->o[0], CLS_W32, (uint32_t)__builtin_ctz(m), b->acc_popc);
		return;
	}
	memcpy(&old, w->regs + in->o[0], 4);
	old = (in->sub == BAR_AND ? b->acc_and : b->acc_or) ? old | lanes : old & ~lanes;
	memcpy(w->regs + in->o[0], &old, 4);
}

static void release(struct cta *c, uint32_t id)
{
	struct barrier *b = &c->bar[id];

	for (uint32_t i = 0; i < c->nwarps; i++) {
		struct warp *w = &c->warps[i];
		uint32_t lanes = 0;

		for (int k = 0; k < PTX_LANES; k++)
			lanes |= w->barrier_id[k] == id ? bit[k] : 0;
		lanes &= w->at_barrier;
		w->at_barrier &= ~lanes;
		w->ready |= lanes;
		for (uint32_t left = lanes; left;) {
			uint32_t pc = w->lane_pc[__builtin_ctz(left)], same = lanes_at(w, pc) & left;

			if (w->code[pc].sub >= BAR_POPC)
				give_result(w, &w->code[pc], b, same);
			park(w, same, &w->code[pc + 1]);
			left &= ~same;
		}
	}
	*b = (struct barrier){ .acc_and = 1 };
	c->pending &= ~(1u << id);
}

void ptx_release_barriers(struct cta *c)
{
	for (uint32_t m = c->pending; m; m &= m - 1) {
		uint32_t id = (uint32_t)__builtin_ctz(m);
		const struct barrier *b = &c->bar[id];

		if (b->arrived >= (b->expected ? b->expected : live_threads(c)))
			release(c, id);
	}
}

const struct insn *ptx_barrier(struct warp *w, const struct insn *in)
{
	uint32_t first = (uint32_t)__builtin_ctz(w->mask), id = (uint32_t)ptx_lane(w, in->o[1], CLS_W32, first), p;
	struct barrier *b;

	if (id > 15)
		return ptx_fault_at(w, in, first, PTX_ILLEGAL_ADDRESS, id, "barrier %u of 16", id);
	b = &w->cta->bar[id];
	if (in->aux & BAR_HAS_COUNT)
		b->expected = (uint32_t)ptx_lane(w, in->o[2], CLS_W32, first);
	/* A block of one warp that is all here does not wait. */
	if (w->cta->nwarps == 1 && (w->mask | w->dead) == UINT32_MAX && in->sub == BAR_SYNC && !b->arrived && !b->expected)
		return in + 1;
	b->arrived += (uint32_t)__builtin_popcount(w->mask);
	w->cta->pending |= 1u << id;
	if (in->sub >= BAR_POPC) {
		memcpy(&p, w->regs + in->o[3], 4);
		p = (in->aux & BAR_NOT ? ~p : p) & w->mask;
		b->acc_popc += (uint32_t)__builtin_popcount(p);
		b->acc_or |= p != 0;
		b->acc_and &= p == w->mask;
	}
	if (in->sub == BAR_ARRIVE) {
		ptx_release_barriers(w->cta);
		return in + 1;
	}
	wait_here(w, in, in);
	w->at_barrier |= w->mask;
	for (uint32_t m = w->mask; m; m &= m - 1)
		w->barrier_id[__builtin_ctz(m)] = (uint8_t)id;
	/* The group is spoken for: it must not count as running while the barrier looks at the lanes. */
	w->group = 0;
	ptx_release_barriers(w->cta);
	return ptx_regroup(w);
}
