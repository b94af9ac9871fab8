/*
 * ptx_operand.c: operands and modifiers of an instruction, and the virtual registers behind them.
 *
 * In:  tokens of an operand. Out: for the decoders, virtual registers of the class an instruction wants.
 * Fails: text that is no operand ends the parse. One that does not fit sets p->bad, which makes the instruction unsupported.
 */
#include "ptx_parse.h"

static const struct { const char *name; enum ptx_sreg sr; } sregs[] = {
	{ "%tid.x", SR_TID_X }, { "%tid.y", SR_TID_Y }, { "%tid.z", SR_TID_Z },
	{ "%ntid.x", SR_NTID_X }, { "%ntid.y", SR_NTID_Y }, { "%ntid.z", SR_NTID_Z },
	{ "%ctaid.x", SR_CTAID_X }, { "%ctaid.y", SR_CTAID_Y }, { "%ctaid.z", SR_CTAID_Z },
	{ "%nctaid.x", SR_NCTAID_X }, { "%nctaid.y", SR_NCTAID_Y }, { "%nctaid.z", SR_NCTAID_Z },
	{ "%laneid", SR_LANEID }, { "%warpid", SR_WARPID }, { "%nwarpid", SR_NWARPID }, { "%smid", SR_SMID },
	{ "%nsmid", SR_NSMID }, { "WARP_SZ", SR_WARPSZ }, { "%gridid", SR_ZERO },
	{ "%lanemask_eq", SR_LANEMASK_EQ }, { "%lanemask_lt", SR_LANEMASK_LT }, { "%lanemask_le", SR_LANEMASK_LE },
	{ "%lanemask_gt", SR_LANEMASK_GT }, { "%lanemask_ge", SR_LANEMASK_GE },
	{ "%dynamic_smem_size", SR_DYN_SMEM }, { "%total_smem_size", SR_TOTAL_SMEM },
};

/* Special registers that no kernel of this project reads; those of clusters came with sm_90. */
static const struct { const char *name; uint32_t widths, version, target; } more_sregs[] = {
	{ "%envreg", 4, 0, 0 }, { "%pm", 4, 0, 0 }, { "%tid", 4, 0, 0 }, { "%ntid", 4, 0, 0 }, { "%ctaid", 4, 0, 0 }, { "%nctaid", 4, 0, 0 },
	{ "%clusterid", 4, 78, 90 }, { "%nclusterid", 4, 78, 90 }, { "%cluster_ctaid", 4, 78, 90 }, { "%cluster_nctaid", 4, 78, 90 },
	{ "%clusterid.x", 4, 78, 90 }, { "%clusterid.y", 4, 78, 90 }, { "%clusterid.z", 4, 78, 90 },
	{ "%nclusterid.x", 4, 78, 90 }, { "%nclusterid.y", 4, 78, 90 }, { "%nclusterid.z", 4, 78, 90 },
	{ "%cluster_ctaid.x", 4, 78, 90 }, { "%cluster_ctaid.y", 4, 78, 90 }, { "%cluster_ctaid.z", 4, 78, 90 },
	{ "%cluster_nctaid.x", 4, 78, 90 }, { "%cluster_nctaid.y", 4, 78, 90 }, { "%cluster_nctaid.z", 4, 78, 90 },
	{ "%cluster_ctarank", 4, 78, 90 }, { "%cluster_nctarank", 4, 78, 90 }, { "%aggr_smem_size", 4, 81, 90 },
	{ "%reserved_smem_offset_begin", 4, 76, 80 }, { "%reserved_smem_offset_end", 4, 76, 80 }, { "%reserved_smem_offset_cap", 4, 76, 80 },
	{ "%reserved_smem_offset_0", 4, 76, 80 }, { "%reserved_smem_offset_1", 4, 76, 80 }, { "%current_graph_exec", 8, 80, 50 },
};

static const char *const clocks[] = { "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi" };

static bool named(const char *name, const char *s, uint32_t n) { return strlen(name) == n && !memcmp(name, s, n); }

uint32_t ptx_special(const struct parser *p, const char *name, uint32_t n)
{
	uint32_t stem = n;

	if (named("%is_explicit_cluster", name, n))
		return 1;
	if (named("%gridid", name, n))
		return 4 | 8;
	for (size_t i = 0; i < sizeof sregs / sizeof *sregs; i++)
		if (named(sregs[i].name, name, n))
			return 4 | (sregs[i].sr <= SR_NCTAID_Z ? 2 : 0);
	for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
		if (named(clocks[i], name, n))
			return named("%clock64", name, n) || named("%globaltimer", name, n) ? 8 : 4;
	if (n > 6 && !memcmp(name, "%pm", 3) && !memcmp(name + n - 3, "_64", 3))
		return 8;
	while (stem && name[stem - 1] >= '0' && name[stem - 1] <= '9')
		stem--;
	for (size_t i = 0; i < sizeof more_sregs / sizeof *more_sregs; i++)
		if (named(more_sregs[i].name, name, n) || (i < 2 && stem < n && named(more_sregs[i].name, name, stem)))
			return p->version >= more_sregs[i].version && p->target >= more_sregs[i].target ? more_sregs[i].widths : 0;
	return 0;
}

static uint32_t add_vreg(struct parser *p, struct vreg v)
{
	struct func *f = p->f;

	f->v = ptx_grow(p, f->v, f->nv, &f->cap_v, sizeof *f->v);
	f->v[f->nv] = v;
	return f->nv++;
}

uint32_t ptx_vreg(struct parser *p, uint8_t cls) { return add_vreg(p, (struct vreg){ .cls = cls, .kind = V_REG }); }
uint32_t ptx_pinned(struct parser *p, uint8_t cls) { return add_vreg(p, (struct vreg){ .cls = cls, .kind = V_PINNED }); }

static uint32_t shared_vreg(struct parser *p, struct vreg v)
{
	uint32_t h = (uint32_t)(v.value * 0x9e3779b97f4a7c15ull >> 40 ^ v.ref * 7 ^ v.cls) & 1023;

	for (uint32_t i = p->const_bucket[h]; i; i = p->f->v[i - 1].next) {
		const struct vreg *o = &p->f->v[i - 1];

		if (o->value == v.value && o->ref == v.ref && o->cls == v.cls && o->kind == v.kind && o->reloc == v.reloc)
			return i - 1;
	}
	v.next = p->const_bucket[h];
	p->const_bucket[h] = p->f->nv + 1;
	return add_vreg(p, v);
}

uint32_t ptx_constant(struct parser *p, uint8_t cls, uint64_t v, enum ptx_reloc reloc, uint32_t ref)
{
	if (reloc == REL_NONE && cls != CLS_W64)
		v &= cls == CLS_W16 ? 0xffff : cls == CLS_PRED ? 1 : UINT32_MAX;
	return shared_vreg(p, (struct vreg){ .cls = cls, .kind = V_CONST, .value = v, .reloc = (uint8_t)reloc, .ref = ref });
}

/* ---- modifiers ---- */

bool ptx_mod(struct parser *p, const char *name)
{
	for (uint32_t i = 0; i < p->nmods; i++)
		if (!p->mod_used[i] && !strcmp(p->mod[i], name))
			return p->mod_used[i] = true;
	return false;
}

enum ptx_type ptx_last_type(struct parser *p)
{
	for (uint32_t i = p->nmods; i-- > 0;) {
		enum ptx_type t = p->mod_used[i] ? TY_NONE : ptx_type_of(p->mod[i], strlen(p->mod[i]));

		if (t != TY_NONE) {
			p->mod_used[i] = true;
			return t;
		}
	}
	return TY_NONE;
}

/* ---- operands as registers ---- */

uint8_t ptx_class_of(const struct parser *p, uint32_t reg) { return p->f->v[reg].cls; }

static uint32_t dummy(struct parser *p, uint8_t cls)
{
	uint32_t *slot = cls == CLS_PRED ? &p->sink_pred : cls == CLS_W64 ? &p->sink64 : &p->sink32;

	if (!*slot)
		*slot = ptx_pinned(p, cls) + 1;
	return *slot - 1;
}

static uint32_t misfit(struct parser *p, uint8_t cls)
{
	p->bad = true;
	return dummy(p, cls);
}

static uint32_t float_constant(struct parser *p, const struct value *v, enum ptx_type t)
{
	uint8_t cls = ptx_type_class(t);
	uint32_t u;
	float f;
	double d;

	if (t == TY_F32 && v->kind == A_F64) {
		memcpy(&d, &v->bits, 8);
		f = (float)d;
		memcpy(&u, &f, 4);
		return ptx_constant(p, cls, u, REL_NONE, 0);
	}
	if (t == TY_F64 && v->kind == A_F32) {
		u = (uint32_t)v->bits;
		memcpy(&f, &u, 4);
		d = f;
		uint64_t b;

		memcpy(&b, &d, 8);
		return ptx_constant(p, cls, b, REL_NONE, 0);
	}
	if ((v->kind == A_F32 && cls == CLS_W32) || (v->kind == A_F64 && cls == CLS_W64))
		return ptx_constant(p, cls, v->bits, REL_NONE, 0);
	return misfit(p, cls);
}

static uint32_t symbol_constant(struct parser *p, const struct value *v, uint8_t cls)
{
	const struct sym *s = &v->sym;
	uint64_t off = (uint64_t)v->off;

	if (cls != CLS_W64 && (cls != CLS_W32 || s->kind == SYM_GLOBAL))
		return misfit(p, cls);
	switch (s->kind) {
	case SYM_GLOBAL: return ptx_constant(p, cls, off, REL_GLOBAL, s->ref);
	case SYM_SHARED: return ptx_constant(p, cls, off, REL_SHARED, s->ref);
	case SYM_LOCAL: return ptx_constant(p, cls, s->off + off, REL_FRAME, 0);
	case SYM_PARAM:
		return s->in_frame ? ptx_constant(p, cls, s->off + off + PTX_PARAM_IN_FRAME, REL_FRAME, 0)
		                   : ptx_constant(p, cls, s->off + off, REL_NONE, 0);
	default: return misfit(p, cls);
	}
}

uint32_t ptx_src(struct parser *p, const struct value *v, enum ptx_type t)
{
	uint8_t cls = ptx_type_class(t);

	switch (v->kind) {
	case A_REG: return v->off == 0 && ptx_class_of(p, v->reg) == cls ? v->reg : misfit(p, cls);
	case A_INT:
		if (ptx_type_float(t) && t != TY_F16 && t != TY_F16X2 && t != TY_BF16 && t != TY_BF16X2)
			return misfit(p, cls);
		return ptx_constant(p, cls, v->bits, REL_NONE, 0);
	case A_F32: case A_F64: return float_constant(p, v, t);
	case A_SYM: return symbol_constant(p, v, cls);
	case A_NAME:
		for (size_t i = 0; i < sizeof sregs / sizeof *sregs; i++)
			if (strlen(sregs[i].name) == v->n && !memcmp(sregs[i].name, v->name, v->n)) {
				if (cls == CLS_PRED)
					return misfit(p, cls);
				return shared_vreg(p, (struct vreg){ .cls = cls, .kind = V_SREG, .value = sregs[i].sr });
			}
		for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++)
			if (strlen(clocks[i]) == v->n && !memcmp(clocks[i], v->name, v->n)) {
				uint32_t r = ptx_vreg(p, cls);
				struct insn *in = ptx_op(p, OP_CLOCK, 1, 0, r);

				in->cls = cls;
				in->sub = (v->name[v->n - 1] == 'i' ? CLOCK_UPPER : 0) | (v->name[1] == 'g' ? CLOCK_GLOBAL : 0);
				return cls == CLS_W32 || cls == CLS_W64 ? r : misfit(p, cls);
			}
		return misfit(p, cls);
	default: return misfit(p, cls);
	}
}

uint32_t ptx_in(struct parser *p, uint32_t i, enum ptx_type t)
{
	const struct operand *o = &p->op[i];

	if (i >= p->nops || o->is_addr || o->is_vec || o->has_q || o->negate)
		return misfit(p, ptx_type_class(t));
	return ptx_src(p, &o->a, t);
}

uint32_t ptx_out(struct parser *p, uint32_t i, enum ptx_type t)
{
	const struct operand *o = &p->op[i];
	uint8_t cls = ptx_type_class(t);

	if (i >= p->nops || o->is_addr || o->is_vec || o->negate)
		return misfit(p, cls);
	if (o->a.kind == A_SINK)
		return dummy(p, cls);
	if (o->a.kind != A_REG || ptx_class_of(p, o->a.reg) != cls)
		return misfit(p, cls);
	return o->a.reg;
}

/* A predicate source; the caller handles o->negate. */
uint32_t ptx_pred_in(struct parser *p, uint32_t i)
{
	const struct operand *o = &p->op[i];

	if (i >= p->nops || o->is_addr || o->is_vec || o->has_q)
		return misfit(p, CLS_PRED);
	if (o->a.kind == A_INT)
		return ptx_constant(p, CLS_PRED, o->a.bits != 0, REL_NONE, 0);
	return o->a.kind == A_REG && ptx_class_of(p, o->a.reg) == CLS_PRED ? o->a.reg : misfit(p, CLS_PRED);
}

/* ---- reading ---- */

static void read_value(struct parser *p, struct value *v)
{
	bool neg = ptx_accept(p, '-');
	const struct sym *s;

	*v = (struct value){ .kind = A_NONE };
	if (p->tok.kind == T_INT || p->tok.kind == T_F32 || p->tok.kind == T_F64) {
		v->kind = p->tok.kind == T_INT ? A_INT : p->tok.kind == T_F32 ? A_F32 : A_F64;
		v->bits = p->tok.u;
		if (neg)
			v->bits = v->kind == A_INT ? 0 - v->bits : v->kind == A_F32 ? v->bits ^ 0x80000000u : v->bits ^ 0x8000000000000000ull;
		ptx_next(p);
		return;
	}
	if (p->tok.kind != T_IDENT || neg)
		ptx_die(p, "expected an operand");
	v->name = p->tok.s;
	v->n = p->tok.n;
	if (ptx_word(p, "_")) {
		v->kind = A_SINK;
	} else if ((s = ptx_lookup(p, p->tok.s, p->tok.n)) && s->kind == SYM_REG) {
		v->kind = A_REG;
		v->reg = s->ref;
		v->type = s->type;
	} else if (s) {
		v->kind = A_SYM;
		v->sym = *s;
	} else {
		v->kind = A_NAME;
	}
	ptx_next(p);
}

static void read_offset(struct parser *p, struct value *v)
{
	if (ptx_accept(p, '+'))
		v->off = ptx_integer(p);
}

/* False for operand forms that only unsupported instructions have. */
bool ptx_read_operand(struct parser *p, struct operand *o)
{
	*o = (struct operand){ 0 };
	o->negate = ptx_accept(p, '!');
	if (ptx_accept(p, '{')) {
		o->is_vec = true;
		do {
			if (o->n == PTX_MAX_VECTOR)
				return false;
			read_value(p, &o->v[o->n++]);
		} while (ptx_accept(p, ','));
		return ptx_accept(p, '}');
	}
	if (ptx_accept(p, '[')) {
		o->is_addr = true;
		read_value(p, &o->a);
		read_offset(p, &o->a);
		return ptx_accept(p, ']');
	}
	read_value(p, &o->a);
	read_offset(p, &o->a);
	if (ptx_accept(p, '|')) {
		o->has_q = true;
		read_value(p, &o->q);
	}
	return true;
}
