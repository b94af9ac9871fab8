/*
 * ptx_rows.c: register file offsets for a function's virtual registers.
 *
 * In:  a decoded function. Out: f->offset (UINT32_MAX if a register is never used) and f->reg_bytes.
 * Fails: when memory is short.
 *
 * Compilers print thousands of registers of which few live at a time; with a row each, a warp would not fit into the
 * host's caches. So rows are reused by linear scan over live ranges. The ranges of one thread hold for the warp: lanes
 * own their part of a row, and instructions write only the lanes that execute them.
 */
#include "ptx_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LIVENESS_WORDS (1u << 25)

struct block { uint32_t first, last; uint64_t *in, *out, *use, *def; };
struct range { uint32_t reg, start, end; };

struct rows {
	struct func *f;
	struct block *blocks;
	uint32_t nblocks, words;
	uint32_t *block_of; /* by instruction */
	struct range *ranges;
	uint64_t *bits;
};

static bool shared_row(const struct func *f, uint32_t reg) { return f->v[reg].kind == V_REG; }
static bool get(const uint64_t *set, uint32_t i) { return set[i / 64] >> (i % 64) & 1; }
static void put(uint64_t *set, uint32_t i) { set[i / 64] |= 1ull << (i % 64); }

static bool find_blocks(struct rows *r)
{
	const struct func *f = r->f;

	r->block_of = calloc(f->ncode, sizeof *r->block_of);
	if (!r->block_of)
		return false;
	for (uint32_t i = 0; i < f->ncode; i++) {
		if (i == 0 || f->code[i].op == OP_BLOCK || f->code[i - 1].op == OP_BRA)
			r->nblocks++;
		r->block_of[i] = r->nblocks - 1;
	}
	r->words = (f->nv + 63) / 64;
	if ((uint64_t)r->nblocks * r->words * 4 > MAX_LIVENESS_WORDS)
		return false;
	r->blocks = calloc(r->nblocks, sizeof *r->blocks);
	r->bits = calloc((size_t)r->nblocks * r->words * 4, sizeof *r->bits);
	if (!r->blocks || !r->bits)
		return false;
	for (uint32_t i = f->ncode; i-- > 0;) {
		struct block *b = &r->blocks[r->block_of[i]];

		if (!b->last)
			b->last = i;
		b->first = i;
	}
	for (uint32_t i = 0; i < r->nblocks; i++) {
		struct block *b = &r->blocks[i];

		b->in = r->bits + (size_t)i * r->words * 4;
		b->out = b->in + r->words;
		b->use = b->out + r->words;
		b->def = b->use + r->words;
	}
	return true;
}

/* Under a guard a lane may keep its old value: such a write ends no range. */
static void scan_block(struct rows *r, struct block *b)
{
	const struct func *f = r->f;
	bool guarded = false;

	for (uint32_t i = b->first; i <= b->last; i++) {
		const struct insn *in = &f->code[i];

		for (uint32_t j = in->ndef; j < (uint32_t)in->ndef + in->nuse; j++)
			if (!get(b->def, in->o[j]))
				put(b->use, in->o[j]);
		if (in->op == OP_GUARD)
			guarded = true;
		else if (in->op == OP_UNGUARD)
			guarded = false;
		for (uint32_t j = 0; j < in->ndef; j++) {
			if (!guarded)
				put(b->def, in->o[j]);
			else if (!get(b->def, in->o[j]))
				put(b->use, in->o[j]);
		}
	}
}

static bool merge(uint64_t *to, const uint64_t *from, uint32_t words)
{
	uint64_t changed = 0;

	for (uint32_t i = 0; i < words; i++) {
		changed |= from[i] & ~to[i];
		to[i] |= from[i];
	}
	return changed;
}

static void flow(struct rows *r)
{
	const struct func *f = r->f;
	bool changed = true;

	for (uint32_t i = 0; i < r->nblocks; i++) {
		scan_block(r, &r->blocks[i]);
		memcpy(r->blocks[i].in, r->blocks[i].use, r->words * sizeof(uint64_t));
	}
	while (changed) {
		changed = false;
		for (uint32_t i = r->nblocks; i-- > 0;) {
			struct block *b = &r->blocks[i];
			bool grown = false;

			/* Every branch in the block, wherever it stands: tables of brx hold several. */
			for (uint32_t k = b->first; k <= b->last; k++)
				if (f->code[k].op == OP_BRA || f->code[k].op == OP_BRA_P)
					grown |= merge(b->out, r->blocks[r->block_of[(int64_t)k + f->code[k].imm]].in, r->words);
			/* The entries of a brx table are blocks of their own, reached from the one before. */
			if (i + 1 < r->nblocks && (f->code[b->last].op != OP_BRA || f->code[r->blocks[i + 1].first].op == OP_BRA))
				grown |= merge(b->out, r->blocks[i + 1].in, r->words);
			if (!grown)
				continue;
			changed = true;
			for (uint32_t w = 0; w < r->words; w++)
				b->in[w] |= b->out[w] & ~b->def[w];
		}
	}
}

static void touch(struct range *g, uint32_t at)
{
	g->start = at < g->start ? at : g->start;
	g->end = at > g->end ? at : g->end;
}

/* Positions: an instruction reads at 2i and writes at 2i + 1, so a result may take the row of an operand that ends there. */
static void find_ranges(struct rows *r)
{
	const struct func *f = r->f;

	for (uint32_t v = 0; v < f->nv; v++)
		r->ranges[v] = (struct range){ .reg = v, .start = UINT32_MAX };
	for (uint32_t i = 0; i < f->ncode; i++) {
		const struct insn *in = &f->code[i];

		for (uint32_t j = 0; j < (uint32_t)in->ndef + in->nuse; j++)
			touch(&r->ranges[in->o[j]], 2 * i + (j < in->ndef));
	}
	for (uint32_t i = 0; i < r->nblocks; i++) {
		const struct block *b = &r->blocks[i];

		for (uint32_t w = 0; w < r->words; w++) {
			for (uint64_t s = b->in[w]; s; s &= s - 1)
				touch(&r->ranges[w * 64 + (uint32_t)__builtin_ctzll(s)], 2 * b->first);
			for (uint64_t s = b->out[w]; s; s &= s - 1)
				touch(&r->ranges[w * 64 + (uint32_t)__builtin_ctzll(s)], 2 * b->last + 1);
		}
	}
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->reg < y->reg ? -1 : x->reg > y->reg;
}

/* Rows of one size: where each ends being used, and its offset. */
struct pool { uint32_t *ends, *offsets, n, bytes; };

static uint32_t take(struct pool *p, const struct range *g, uint32_t *at)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->ends[i] < g->start) {
			p->ends[i] = g->end;
			return p->offsets[i];
		}
	p->ends[p->n] = g->end;
	p->offsets[p->n] = *at;
	*at += p->bytes;
	return p->offsets[p->n++];
}

static struct pool *pool_of(struct pool pools[3], uint8_t cls) { return &pools[cls == CLS_PRED ? 0 : cls == CLS_W64 ? 2 : 1]; }

static bool reuse(struct rows *r)
{
	struct func *f = r->f;
	struct pool pools[3] = { { .bytes = 4 }, { .bytes = PTX_ROW32 }, { .bytes = PTX_ROW64 } };
	uint32_t at = 0, *space;

	if (!find_blocks(r) || !(r->ranges = calloc(f->nv, sizeof *r->ranges)) || !(space = calloc(f->nv, 6 * sizeof *space)))
		return false;
	for (int i = 0; i < 3; i++) {
		pools[i].ends = space + (size_t)i * 2 * f->nv;
		pools[i].offsets = pools[i].ends + f->nv;
	}
	flow(r);
	find_ranges(r);
	qsort(r->ranges, f->nv, sizeof *r->ranges, by_start);
	/* Predicates first: they share one row and leave the others aligned. */
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < f->nv && r->ranges[i].start != UINT32_MAX; i++) {
			const struct range *g = &r->ranges[i];
			struct pool *p = pool_of(pools, f->v[g->reg].cls);

			if ((p != &pools[0]) != pass)
				continue;
			if (shared_row(f, g->reg)) {
				f->offset[g->reg] = take(p, g, &at);
			} else {
				f->offset[g->reg] = at;
				at += p->bytes;
			}
		}
		at = (at + 127) & ~127u;
	}
	f->reg_bytes = at;
	free(space);
	return true;
}

/* Without liveness: a row for each register. */
static void plain(struct func *f)
{
	uint32_t at = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < f->nv; i++)
			if ((f->v[i].cls != CLS_PRED) == pass) {
				f->offset[i] = at;
				at += ptx_class_bytes(f->v[i].cls);
			}
		at = (at + 127) & ~127u;
	}
	f->reg_bytes = at;
}

bool ptx_assign_rows(struct ptx_arena *a, struct func *f)
{
	struct rows r = { .f = f };

	f->offset = ptx_alloc(a, f->nv + 1, sizeof *f->offset);
	if (!f->offset)
		return false;
	for (uint32_t i = 0; i < f->nv; i++)
		f->offset[i] = UINT32_MAX;
	if (!reuse(&r))
		plain(f);
	/* The caller of a function writes this row even if the function never returns. */
	if (f->offset[f->ret_row] == UINT32_MAX) {
		f->offset[f->ret_row] = f->reg_bytes;
		f->reg_bytes += PTX_ROW32;
	}
	free(r.block_of);
	free(r.blocks);
	free(r.bits);
	free(r.ranges);
	return true;
}
