/*
 * ptx_launch.c: runs a linked kernel over a grid.
 *
 * In:  the kernel, grid and block shape, parameters and the caller's view of live memory.
 * Out: the writes of the kernel, or a fault.
 *
 * Blocks run one after another, or on several processors (ptx_spread.c); a block's warps take turns at barriers, in an order that
 * is drawn anew for each turn, so that a missing barrier shows. A block that does not finish within its slice stays resident while later blocks start, so blocks may
 * wait for each other as far as a device with RESIDENT slots allows. A seed gives the same orders every time.
 */
#include "ptx_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARP_SLICE (1 << 15)
#define BLOCK_SLICE (1ull << 20)
#define RESIDENT 64

uint64_t ptx_block_budget = 1ull << 32;
uint64_t ptx_order_seed;
static uint64_t total_instructions, launches;

uint64_t ptx_instructions(void) { return __atomic_load_n(&total_instructions, __ATOMIC_RELAXED); }

static const char *const kind_names[] = { "", "illegal address", "misaligned address", "unsupported instruction", "deadlock", "trap" };

static void fault_thread(struct warp *w, uint32_t lane, int kind, uint64_t addr)
{
	struct ptx_fault *f = w->launch->fault;
	const uint32_t *b = w->launch->block;
	uint32_t t = w->index * PTX_LANES + lane;

	f->kind = kind;
	f->addr = addr;
	memcpy(f->block, w->cta->ctaid, sizeof f->block);
	f->thread[0] = t % b[0];
	f->thread[1] = t / b[0] % b[1];
	f->thread[2] = t / b[0] / b[1];
	w->stop = STOP_FAULT;
}

const struct insn *ptx_fault_at(struct warp *w, const struct insn *in, uint32_t lane, int kind, uint64_t addr, const char *fmt, ...)
{
	struct ptx_fault *f = w->launch->fault;
	va_list ap;
	int n;

	fault_thread(w, lane, kind, addr);
	n = snprintf(f->text, sizeof f->text, "%.100s at line %u: ", in->text ? in->text : kind_names[kind], in->line);
	va_start(ap, fmt);
	if (n > 0 && (size_t)n < sizeof f->text)
		vsnprintf(f->text + n, sizeof f->text - (size_t)n, fmt, ap);
	va_end(ap);
	return NULL;
}

static uint64_t sreg_value(const struct launch *l, const struct cta *c, const struct warp *w, uint64_t sreg, uint32_t lane)
{
	uint32_t t = w->index * PTX_LANES + lane;

	switch (sreg) {
	case SR_TID_X: return t % l->block[0];
	case SR_TID_Y: return t / l->block[0] % l->block[1];
	case SR_TID_Z: return t / l->block[0] / l->block[1] % l->block[2];
	case SR_NTID_X: case SR_NTID_Y: case SR_NTID_Z: return l->block[sreg - SR_NTID_X];
	case SR_CTAID_X: case SR_CTAID_Y: case SR_CTAID_Z: return c->ctaid[sreg - SR_CTAID_X];
	case SR_NCTAID_X: case SR_NCTAID_Y: case SR_NCTAID_Z: return l->grid[sreg - SR_NCTAID_X];
	case SR_LANEID: return lane;
	case SR_WARPID: return w->index;
	case SR_NWARPID: return c->nwarps;
	case SR_NSMID: return 1;
	case SR_WARPSZ: return PTX_LANES;
	case SR_LANEMASK_EQ: return 1u << lane;
	case SR_LANEMASK_LT: return (1u << lane) - 1;
	case SR_LANEMASK_LE: return (2u << lane) - 1;
	case SR_LANEMASK_GT: return ~((2u << lane) - 1);
	case SR_LANEMASK_GE: return ~((1u << lane) - 1);
	case SR_DYN_SMEM: return l->shared_bytes - l->k->shared_bytes;
	case SR_TOTAL_SMEM: return l->shared_bytes;
	default: return 0;
	}
}

/* Fills constants and special registers; between blocks only the rows that depend on the block. */
static void fill_rows(const struct launch *l, const struct cta *c, struct warp *w, bool all)
{
	const struct ptx_kernel *k = l->k;
	uint32_t n = all ? k->nrows : k->nblock_rows;

	for (uint32_t i = 0; i < n; i++) {
		const struct init_row *r = &k->rows[i];
		uint32_t p;

		if (r->cls == CLS_PRED) {
			p = r->value ? UINT32_MAX : 0;
			memcpy(w->regs + r->offset, &p, 4);
		} else if (r->kind == V_SREG) {
			for (uint32_t lane = 0; lane < PTX_LANES; lane++)
				ptx_set_lane(w, r->offset, r->cls, lane, sreg_value(l, c, w, r->value, lane));
		} else if (r->cls == CLS_W64) {
			uint64_t v = r->value + (r->reloc == REL_GLOBAL ? k->module->globals[r->ref]->bound : 0);

			for (uint32_t lane = 0; lane < PTX_LANES; lane++)
				memcpy(w->regs + r->offset + 8 * lane, &v, 8);
		} else {
			for (uint32_t lane = 0; lane < PTX_LANES; lane++)
				ptx_set_lane(w, r->offset, r->cls, lane, r->value);
		}
	}
}

static void cta_start(struct cta *c, uint64_t index, bool fresh)
{
	struct launch *l = c->launch;

	c->ctaid[0] = (uint32_t)(index % l->grid[0]);
	c->ctaid[1] = (uint32_t)(index / l->grid[0] % l->grid[1]);
	c->ctaid[2] = (uint32_t)(index / l->grid[0] / l->grid[1]);
	c->executed = 0;
	c->order = l->order ^ index * 0xd1342543de82ef95u;
	c->pending = 0;
	for (int i = 0; i < 16; i++)
		c->bar[i] = (struct barrier){ .acc_and = 1 };
	/* Shared memory has no value at the start of a block: all ones make a read of it show (NaN, or a wild index). */
	memset(c->shared, 0xff, l->shared_bytes);
	for (uint32_t i = 0; i < c->nwarps; i++) {
		struct warp *w = &c->warps[i];
		uint32_t left = l->threads - i * PTX_LANES;

		w->dead = left >= PTX_LANES ? 0 : UINT32_MAX << left;
		w->ready = ~w->dead;
		w->group = w->mask = w->syncing = w->warp_barrier = w->at_barrier = w->carry = w->yields = w->last_pc = 0;
		w->nasync = 0;
		for (int lane = 0; lane < PTX_LANES; lane++) {
			w->lane_pc[lane] = l->k->entry;
			w->async_group[lane] = 0;
		}
		fill_rows(l, c, w, fresh);
	}
}

static void cta_free(struct cta *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; c->warps && i < c->nwarps; i++)
		free(c->warps[i].async);
	free(c->warps);
	free(c->regs);
	free(c->frames);
	free(c->shared);
	free(c);
}

static void free_list(struct cta *c)
{
	for (struct cta *next; c; c = next) {
		next = c->next;
		cta_free(c);
	}
}

static void *aligned(size_t n)
{
	size_t size = (n + 255) & ~(size_t)127;
	void *p = aligned_alloc(128, size);

	if (p)
		memset(p, 0, size);
	return p;
}

static struct cta *cta_new(struct launch *l)
{
	const struct ptx_kernel *k = l->k;
	struct cta *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->launch = l;
	c->nwarps = (l->threads + PTX_LANES - 1) / PTX_LANES;
	c->warps = aligned(sizeof(struct warp) * c->nwarps);
	c->regs = aligned((size_t)k->reg_bytes * c->nwarps);
	c->frames = aligned((size_t)k->frame_bytes * PTX_LANES * c->nwarps);
	c->shared = aligned(l->shared_bytes);
	if (!c->warps || !c->regs || !c->frames || !c->shared) {
		cta_free(c);
		return NULL;
	}
	for (uint32_t i = 0; i < c->nwarps; i++) {
		struct warp *w = &c->warps[i];

		w->regs = c->regs + (size_t)k->reg_bytes * i;
		w->frame = c->frames + (size_t)k->frame_bytes * PTX_LANES * i;
		w->index = i;
		w->cta = c;
		w->launch = l;
		w->code = k->code;
		c->turn[i] = (uint8_t)i;
	}
	return c;
}

static void run_warp(struct warp *w)
{
	const struct insn *in;

	w->stop = STOP_NONE;
	w->fuel = WARP_SLICE;
	for (in = ptx_regroup(w); in;)
		in = in->fn(w, in);
	w->cta->executed += (uint64_t)(WARP_SLICE - w->fuel);
}

static int stuck(struct cta *c, const char *why)
{
	struct warp *w = &c->warps[0];
	uint32_t waiting;

	for (uint32_t i = 0; i < c->nwarps; i++)
		if (~c->warps[i].dead) {
			w = &c->warps[i];
			break;
		}
	waiting = ~w->dead;
	uint32_t lane = waiting ? (uint32_t)__builtin_ctz(waiting) : 0;

	ptx_fault_at(w, &w->code[w->lane_pc[lane]], lane, PTX_DEADLOCK, 0, "%s", why);
	return STOP_FAULT;
}

static uint64_t draw(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* All orders of the warps are equally likely. */
static void shuffle(struct cta *c)
{
	for (uint32_t i = c->nwarps - 1; i > 0; i--) {
		uint32_t j = (uint32_t)((draw(&c->order) >> 32) * (i + 1) >> 32);
		uint8_t t = c->turn[i];

		c->turn[i] = c->turn[j];
		c->turn[j] = t;
	}
}

/* Runs the block until it ends, faults, or has used up its slice. */
static int cta_run(struct cta *c)
{
	uint64_t until = c->executed + BLOCK_SLICE;

	for (;;) {
		bool ran = false, alive = false;

		/* mutant: warps in any order */
		shuffle(c);
		for (uint32_t i = 0; i < c->nwarps; i++) {
			struct warp *w = &c->warps[c->turn[i]];

			if (w->ready) {
				run_warp(w);
				ran = true;
				if (w->stop == STOP_FAULT)
					return STOP_FAULT;
			}
			alive |= w->dead != UINT32_MAX;
		}
		if (!alive)
			return STOP_DONE;
		ptx_release_barriers(c);
		if (!ran) {
			for (uint32_t i = 0; i < c->nwarps && !ran; i++)
				ran = c->warps[i].ready != 0;
			if (!ran)
				return stuck(c, "no thread of the block can go on");
		}
		if (c->executed > ptx_block_budget)
			return stuck(c, "the block runs without end");
		if (c->executed > until)
			return STOP_YIELD;
	}
}

static void count(const struct cta *c)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < c->nwarps; i++) {
		n += c->warps[i].lane_instructions;
		c->warps[i].lane_instructions = 0;
	}
	__atomic_fetch_add(&total_instructions, n, __ATOMIC_RELAXED);
}

/* The next block that no thread has taken; false: there is none, or another thread has found a fault. */
static bool take(struct launch *l, uint64_t *index)
{
	struct blocks *b = l->blocks;

	if (__atomic_load_n(&b->stop, __ATOMIC_RELAXED))
		return false;
	*index = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
	return *index < b->total;
}

static int run_grid(struct launch *l)
{
	uint64_t index = 0, live = 0;
	struct cta *active = NULL, *spare = NULL;
	bool more = true;
	int rc = 0;

	while (rc == 0 && (more || active) && !__atomic_load_n(&l->blocks->stop, __ATOMIC_RELAXED)) {
		struct cta **at;

		if (more && live < RESIDENT) {
			bool fresh = !spare;
			struct cta *c = spare ? spare : cta_new(l);

			if (!c && !live) {
				snprintf(l->fault->text, sizeof l->fault->text, "out of host memory for a block of %u threads", l->threads);
				l->fault->kind = PTX_UNSUPPORTED;
				rc = -1;
				break;
			}
			more = !c || take(l, &index);
			if (c && !more && fresh) {
				cta_free(c);
			} else if (c && more) {
				spare = fresh ? NULL : c->next;
				for (at = &active; *at; at = &(*at)->next)
					;
				c->next = NULL;
				*at = c;
				live++;
				cta_start(c, index, fresh);
			}
		}
		for (at = &active; *at && rc == 0;) {
			struct cta *c = *at;
			int stop = cta_run(c);

			count(c);
			if (stop == STOP_FAULT) {
				rc = -1;
			} else if (stop == STOP_DONE) {
				*at = c->next;
				c->next = spare;
				spare = c;
				live--;
			} else {
				at = &c->next;
			}
		}
	}
	if (rc)
		__atomic_store_n(&l->blocks->stop, true, __ATOMIC_RELAXED);
	free_list(active);
	free_list(spare);
	return rc;
}

int ptx_launch(const struct ptx_kernel *k, const uint32_t grid[3], const uint32_t block[3], uint32_t dynamic_shared, const void *params,
               const struct ptx_memory *mem, struct ptx_fault *fault)
{
	struct launch l = { .k = k, .mem = mem, .fault = fault, .order = ptx_order_seed ^ __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED) << 32 };
	uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
	struct blocks blocks = { .total = (uint64_t)grid[0] * grid[1] * grid[2] };
	uint8_t *copy;
	int rc;

	memset(fault, 0, sizeof *fault);
	memcpy(l.grid, grid, sizeof l.grid);
	memcpy(l.block, block, sizeof l.block);
	if (!grid[0] || !grid[1] || !grid[2] || k->machine_code)
		return 0;
	if (block[0] > 1024 || block[1] > 1024 || block[2] > 1024 || threads == 0 || threads > 1024) {
		fault->kind = PTX_UNSUPPORTED;
		snprintf(fault->text, sizeof fault->text, "block of %ux%ux%u threads", block[0], block[1], block[2]);
		return -1;
	}
	l.threads = (uint32_t)threads;
	l.shared_bytes = k->dynamic_base ? k->dynamic_base + dynamic_shared : k->shared_bytes + dynamic_shared;
	/* One byte more keeps a kernel without parameters from needing a case of its own. */
	copy = malloc(k->f->param_bytes + 1);
	l.cache = calloc(k->ncache + 1, sizeof *l.cache);
	if (!copy || !l.cache) {
		fault->kind = PTX_UNSUPPORTED;
		snprintf(fault->text, sizeof fault->text, "out of host memory");
		rc = -1;
	} else {
		if (k->f->param_bytes)
			memcpy(copy, params, k->f->param_bytes);
		l.params = copy;
		l.blocks = &blocks;
		rc = ptx_spread(&l, run_grid);
	}
	free(copy);
	free(l.cache);
	return rc;
}
