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

#define PATIENCE 8 /* slices */

static uint32_t pc_of(const struct warp *w, const struct insn *in) { return (uint32_t)(in - w->code); }

/* Smallest pc of a lane in set that is above floor, or UINT32_MAX. floor + 1 wraps to 0 for "any". */
static uint32_t lowest_pc(const struct warp *w, uint32_t set, uint32_t from)
{
	uint32_t best = UINT32_MAX;

	for (int i = 0; i < PTX_LANES; i++) {
		uint32_t pc = set >> i & 1 && w->lane_pc[i] >= from ? w->lane_pc[i] : UINT32_MAX;

		best = pc < best ? pc : best;
	}
	return best;
}

static void park(struct warp *w, uint32_t lanes, const struct insn *at)
{
	uint32_t pc = pc_of(w, at);

	for (int i = 0; i < PTX_LANES; i++)
		w->lane_pc[i] = lanes >> i & 1 ? pc : w->lane_pc[i];
}

const struct insn *ptx_regroup(struct warp *w)
{
	uint32_t pc, next, group = 0, from = 0;
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
	for (int i = 0; i < PTX_LANES; i++)
		group |= w->lane_pc[i] == pc ? 1u << i : 0;
	group &= w->ready;
	w->ready &= ~group;
	w->group = group;
	w->active = (uint32_t)__builtin_popcount(group);
	w->last_pc = pc;
	ptx_set_mask(w, group);
	w->join = PTX_NO_JOIN;
	if (w->ready) {
		next = lowest_pc(w, w->ready, pc + 1);
		if (next != UINT32_MAX)
			w->join = w->code + next;
	}
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

const struct insn *ptx_diverge(struct warp *w, const struct insn *in, uint32_t taken, const struct insn *target)
{
	park(w, taken, target);
	park(w, w->group & ~taken, in);
	w->ready |= w->group;
	return ptx_regroup(w);
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

static void release_warp_barrier(struct warp *w)
{
	uint32_t need = w->warp_barrier_members & ~w->dead;

	if (w->warp_barrier && !(need & ~w->warp_barrier)) {
		w->ready |= w->warp_barrier;
		w->warp_barrier = 0;
	}
}

const struct insn *ptx_exit(struct warp *w, const struct insn *in)
{
	w->dead |= w->mask;
	w->group &= ~w->mask;
	w->active = (uint32_t)__builtin_popcount(w->group);
	/* Those who waited for the dead look again. */
	w->ready |= w->syncing;
	w->syncing = 0;
	release_warp_barrier(w);
	if (w->group && !w->ready)
		return in + 1;
	park(w, w->group, in + 1);
	w->ready |= w->group;
	return ptx_regroup(w);
}

bool ptx_sync(struct warp *w, const struct insn *in, uint32_t members, const struct insn **next)
{
	uint32_t need = members & ~w->dead, here = 0, pc = pc_of(w, in);

	if (!(need & ~w->mask))
		return true;
	for (int i = 0; i < PTX_LANES; i++)
		here |= w->syncing >> i & 1 && w->lane_pc[i] == pc ? 1u << i : 0;
	if (!(need & ~(w->mask | here))) {
		w->syncing &= ~here;
		w->group |= here;
		w->active = (uint32_t)__builtin_popcount(w->group);
		ptx_set_mask(w, w->mask | here);
		return true;
	}
	wait_here(w, in, in);
	w->syncing |= w->mask;
	*next = ptx_regroup(w);
	return false;
}

const struct insn *ptx_warp_barrier(struct warp *w, const struct insn *in)
{
	uint32_t members = (uint32_t)ptx_lane(w, in->o[0], CLS_W32, (uint32_t)__builtin_ctz(w->mask));

	if (!(members & ~w->dead & ~w->mask))
		return in + 1;
	wait_here(w, in, in + 1);
	w->warp_barrier |= w->mask;
	w->warp_barrier_members = members;
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

static void release(struct cta *c, uint32_t id)
{
	struct barrier *b = &c->bar[id];

	for (uint32_t i = 0; i < c->nwarps; i++) {
		struct warp *w = &c->warps[i];

		for (uint32_t m = w->at_barrier; m; m &= m - 1) {
			uint32_t lane = (uint32_t)__builtin_ctz(m);
			const struct insn *in = w->code + w->lane_pc[lane];
			uint32_t old, bit = 1u << lane;

			if (w->barrier_id[lane] != id)
				continue;
			w->at_barrier &= ~bit;
			w->ready |= bit;
			w->lane_pc[lane]++;
			if (in->sub == BAR_POPC) {
				ptx_set_lane(w, in->o[0], CLS_W32, lane, b->acc_popc);
			} else if (in->sub == BAR_AND || in->sub == BAR_OR) {
				memcpy(&old, w->regs + in->o[0], 4);
				old = (in->sub == BAR_AND ? b->acc_and : b->acc_or) ? old | bit : old & ~bit;
				memcpy(w->regs + in->o[0], &old, 4);
			}
		}
	}
	*b = (struct barrier){ .acc_and = 1 };
}

void ptx_release_barriers(struct cta *c)
{
	for (uint32_t id = 0; id < 16; id++) {
		const struct barrier *b = &c->bar[id];

		if (b->arrived && b->arrived >= (b->expected ? b->expected : live_threads(c)))
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
	b->arrived += (uint32_t)__builtin_popcount(w->mask);
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
