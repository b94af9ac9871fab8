/*
 * ptx_body.c: function bodies: statements and operands in, decoded instructions out.
 *
 * In:  tokens from '{' to the matching '}'. Out: p->f with instructions on virtual registers, branches resolved.
 * Fails: with "line N: ..." for broken syntax, undeclared names and labels. An instruction that no decoder takes becomes
 *        OP_UNSUPPORTED.
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

uint32_t ptx_frame_slot(struct parser *p, uint64_t size, uint32_t align)
{
	uint64_t at = (p->f->frame_bytes + (uint64_t)align - 1) & ~((uint64_t)align - 1);

	if (at + size > 1 << 22)
		ptx_die(p, "more than 4 MiB of local memory");
	p->f->frame_bytes = (uint32_t)(at + size);
	return (uint32_t)at;
}

struct insn *ptx_emit(struct parser *p, enum ptx_op op)
{
	struct func *f = p->f;
	struct insn *in;

	f->code = ptx_grow(p, f->code, f->ncode, &f->cap_code, sizeof *f->code);
	in = &f->code[f->ncode++];
	*in = (struct insn){ .op = (uint16_t)op, .line = p->stmt_line, .text = p->text };
	return in;
}

struct insn *ptx_op(struct parser *p, enum ptx_op op, int ndef, int nuse, ...)
{
	struct insn *in = ptx_emit(p, op);
	va_list ap;

	va_start(ap, nuse);
	for (int i = 0; i < ndef + nuse; i++)
		in->o[i] = va_arg(ap, uint32_t);
	va_end(ap);
	in->ndef = (uint8_t)ndef;
	in->nuse = (uint8_t)nuse;
	return in;
}

/* ---- labels ---- */

uint32_t ptx_new_label(struct parser *p, const char *name, uint32_t n)
{
	p->labels = ptx_grow(p, p->labels, p->nlabels, &p->cap_labels, sizeof *p->labels);
	p->labels[p->nlabels] = (struct label){ .name = name, .n = n, .line = p->tok.line };
	return p->nlabels++;
}

void ptx_new_block(struct parser *p)
{
	if (p->block + 1 == p->f->ncode && p->f->code[p->block].op == OP_BLOCK && p->f->code[p->block].imm == 0)
		return;
	p->block = p->f->ncode;
	ptx_emit(p, OP_BLOCK);
}

void ptx_place_label(struct parser *p, uint32_t label)
{
	ptx_new_block(p);
	if (p->labels[label].placed)
		ptx_die(p, "label %.*s is placed twice", (int)p->labels[label].n, p->labels[label].name);
	p->labels[label].placed = true;
	p->labels[label].at = p->block;
}

void ptx_branch(struct parser *p, struct insn *in, uint32_t label)
{
	p->fixups = ptx_grow(p, p->fixups, p->nfixups, &p->cap_fixups, sizeof *p->fixups);
	p->fixups[p->nfixups++] = (struct fixup){ .insn = (uint32_t)(in - p->f->code), .label = label };
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

static const char *const clocks[] = { "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi" };

uint32_t ptx_src(struct parser *p, const struct value *v, enum ptx_type t)
{
	uint8_t cls = ptx_type_class(t);

	switch (v->kind) {
	case A_REG: return ptx_class_of(p, v->reg) == cls ? v->reg : misfit(p, cls);
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
				in->sub = v->name[v->n - 1] == 'i';
				return cls == CLS_W32 || cls == CLS_W64 ? r : misfit(p, cls);
			}
		if (v->name[0] != '%' || !memchr("0123456789", v->name[v->n - 1], 10))
			return misfit(p, cls);
		ptx_die(p, "undeclared name %.*s", (int)(v->n < 80 ? v->n : 80), v->name);
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

/* ---- statements ---- */

void ptx_reg_declaration(struct parser *p)
{
	enum ptx_type t = TY_NONE;

	ptx_next(p);
	while (p->tok.kind == T_DIRECTIVE) {
		t = ptx_type_of(p->tok.s + 1, p->tok.n - 1);
		if (t == TY_NONE)
			ptx_die(p, "unknown register type %.*s", (int)p->tok.n, p->tok.s);
		ptx_next(p);
	}
	if (t == TY_NONE)
		ptx_die(p, "register without a type");
	do {
		const char *name = p->tok.s;
		uint32_t n = p->tok.n;
		struct sym *s;

		if (p->tok.kind != T_IDENT)
			ptx_die(p, "expected a register name");
		ptx_next(p);
		if (ptx_accept(p, '<')) {
			int64_t count = ptx_integer(p);

			if (count < 0 || count > 1 << 20)
				ptx_die(p, "%lld registers", (long long)count);
			ptx_expect(p, '>');
			uint32_t *regs = ptx_need(p, (size_t)count + 1, sizeof *regs);

			s = ptx_declare(p, name, n, SYM_RANGE);
			s->regs = regs;
			s->count = (uint32_t)count;
		} else {
			uint32_t r = ptx_vreg(p, ptx_type_class(t));

			s = ptx_declare(p, name, n, SYM_REG);
			s->ref = r;
		}
		s->cls = ptx_type_class(t);
	} while (ptx_accept(p, ','));
	ptx_expect(p, ';');
}

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
	else if (ptx_is(p, '-'))
		v->off = ptx_integer(p);
}

/* False for operand forms that only unsupported instructions have. */
static bool read_operand(struct parser *p, struct operand *o)
{
	*o = (struct operand){ 0 };
	o->negate = ptx_accept(p, '!');
	if (ptx_accept(p, '{')) {
		o->is_vec = true;
		do {
			if (o->n == 4)
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

/* "ld.global.f32" -> base "ld", modifiers "global", "f32" */
static void split_opcode(struct parser *p)
{
	char *s = (char *)ptx_intern(p, p->tok.s, p->tok.n), *dot;

	p->text = ptx_intern(p, p->tok.s, p->tok.n);
	p->base = s;
	p->nmods = 0;
	while ((dot = strchr(s, '.'))) {
		*dot = 0;
		s = dot + 1;
		if (p->nmods < PTX_MAX_MODS) {
			p->mod_used[p->nmods] = false;
			p->mod[p->nmods++] = s;
		} else {
			p->bad = true;
		}
	}
}

static ptx_decoder decoder_of(const char *base)
{
	static const struct ptx_opcode *const tables[] = { ptx_int_opcodes, ptx_float_opcodes, ptx_mem_opcodes, ptx_control_opcodes };

	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
		for (const struct ptx_opcode *o = tables[t]; o->name; o++)
			if (!strcmp(o->name, base))
				return o->decode;
	return NULL;
}

static void skip_statement(struct parser *p)
{
	while (!ptx_is(p, ';')) {
		if (p->tok.kind == T_END)
			ptx_die(p, "';' missing");
		ptx_next(p);
	}
}

static bool decode(struct parser *p)
{
	ptx_decoder d = decoder_of(p->base);

	p->nops = 0;
	if (!d || p->bad)
		return false;
	if (!strcmp(p->base, "call"))
		return ptx_call(p);
	while (!ptx_is(p, ';')) {
		if (p->nops == PTX_MAX_OPERANDS || !read_operand(p, &p->op[p->nops]))
			return false;
		p->nops++;
		if (!ptx_accept(p, ','))
			break;
	}
	if (!ptx_is(p, ';') || !d(p) || p->bad)
		return false;
	for (uint32_t i = 0; i < p->nmods; i++)
		if (!p->mod_used[i])
			return false;
	return true;
}

/* Operations that split the group behave as branches, so that lanes outside the guard skip the whole of them. */
static bool guard_by_branch(const char *base) { return !strcmp(base, "call") || !strcmp(base, "brx"); }

static void instruction(struct parser *p)
{
	struct func *f = p->f;
	uint32_t guard = 0, skip = 0, guard_at = 0, mark, nfix;
	bool guarded = false, negate = false, by_branch = false, branch;

	p->bad = false;
	p->stmt_line = p->tok.line;
	if (ptx_accept(p, '@')) {
		negate = ptx_accept(p, '!');
		const struct sym *s = p->tok.kind == T_IDENT ? ptx_lookup(p, p->tok.s, p->tok.n) : NULL;

		if (!s || s->kind != SYM_REG || s->cls != CLS_PRED)
			ptx_die(p, "guard is no predicate");
		guarded = true;
		guard = s->ref;
		ptx_next(p);
	}
	if (p->tok.kind != T_IDENT)
		ptx_die(p, "expected an instruction");
	split_opcode(p);
	ptx_next(p);
	f->code[p->block].imm++;
	branch = !strcmp(p->base, "bra");
	if (guarded && guard_by_branch(p->base)) {
		by_branch = true;
		skip = ptx_new_label(p, NULL, 0);
		struct insn *in = ptx_op(p, OP_BRA_P, 0, 1, guard);

		in->sub = !negate;
		ptx_branch(p, in, skip);
		ptx_new_block(p);
	} else if (guarded) {
		guard_at = f->ncode;
		ptx_op(p, OP_GUARD, 0, 1, guard)->sub = negate;
	}
	mark = f->ncode;
	nfix = p->nfixups;
	if (!decode(p)) {
		skip_statement(p);
		f->ncode = mark;
		p->nfixups = nfix;
		if (p->block >= mark)
			ptx_die(p, "unsupported %s", p->text);
		ptx_emit(p, OP_UNSUPPORTED);
		branch = false;
	}
	ptx_expect(p, ';');
	if (branch && guarded) {
		/* The guard becomes the branch's condition. */
		struct insn in = f->code[mark];

		f->code[guard_at].op = OP_BRA_P;
		f->code[guard_at].imm = in.imm;
		f->ncode = mark;
		p->fixups[p->nfixups - 1].insn = guard_at;
		ptx_new_block(p);
	} else if (branch) {
		ptx_new_block(p);
	} else if (by_branch) {
		ptx_place_label(p, skip);
	} else if (guarded) {
		f->code[guard_at].imm = f->ncode + 1 - guard_at;
		ptx_emit(p, OP_UNGUARD);
	}
}

/* "name: .branchtargets L1, L2;" */
static void target_list(struct parser *p, const char *name, uint32_t n)
{
	struct target_list l = { 0 };
	uint32_t cap = 0;
	struct sym *s = ptx_lookup(p, name, n);

	do {
		ptx_next(p);
		if (p->tok.kind != T_IDENT)
			ptx_die(p, "expected a label");
		l.labels = ptx_grow(p, l.labels, l.n, &cap, sizeof *l.labels);
		struct sym *t = ptx_lookup(p, p->tok.s, p->tok.n);

		if (!t || t->kind != SYM_LABEL)
			ptx_die(p, "expected a label");
		l.labels[l.n++] = t->ref;
		ptx_next(p);
	} while (ptx_is(p, ','));
	ptx_expect(p, ';');
	p->lists = ptx_grow(p, p->lists, p->nlists, &p->cap_lists, sizeof *p->lists);
	p->lists[p->nlists] = l;
	if (s)
		ptx_die(p, "%.*s is declared twice", (int)n, name);
	s = ptx_declare(p, name, n, SYM_TARGETS);
	s->ref = p->nlists++;
}

/* Labels are known before the body is read, so that a branch may name one further down in any nested scope. */
static void collect_labels(struct parser *p)
{
	struct token tok = p->tok, name = tok;
	const char *at = p->p;
	uint32_t line = p->line, depth = 0;

	do {
		if (ptx_is(p, '{'))
			depth++;
		else if (ptx_is(p, '}') && --depth == 0)
			break;
		if (p->tok.kind == T_END)
			ptx_die(p, "'}' missing");
		name = p->tok;
		ptx_next(p);
		if (name.kind == T_IDENT && ptx_is(p, ':')) {
			ptx_next(p);
			if (ptx_word(p, ".branchtargets") || ptx_word(p, ".callprototype") || ptx_word(p, ".calltargets"))
				continue;
			struct sym *s = ptx_lookup(p, name.s, name.n);

			if (s && s->kind == SYM_LABEL)
				ptx_die(p, "label %.*s is placed twice", (int)name.n, name.s);
			uint32_t label = ptx_new_label(p, name.s, name.n);

			s = ptx_declare(p, name.s, name.n, SYM_LABEL);
			s->ref = label;
		}
	} while (true);
	p->tok = tok;
	p->p = at;
	p->line = line;
}

static void statement(struct parser *p)
{
	if (p->tok.kind == T_DIRECTIVE) {
		if (ptx_word(p, ".reg")) {
			ptx_reg_declaration(p);
		} else if (ptx_word(p, ".shared")) {
			ptx_space_variable(p, SYM_SHARED, false, false);
		} else if (ptx_word(p, ".local")) {
			ptx_space_variable(p, SYM_LOCAL, false, false);
		} else if (ptx_word(p, ".global") || ptx_word(p, ".const")) {
			ptx_space_variable(p, SYM_GLOBAL, ptx_word(p, ".const"), false);
		} else if (ptx_word(p, ".param")) {
			struct decl d;
			struct sym *s;

			ptx_next(p);
			ptx_declaration(p, &d);
			ptx_expect(p, ';');
			s = ptx_declare(p, d.name, d.n, SYM_PARAM);
			s->size = d.count * d.elem;
			s->off = ptx_frame_slot(p, s->size, d.align);
			s->in_frame = true;
		} else if (ptx_word(p, ".loc") || ptx_word(p, ".file")) {
			uint32_t line = p->tok.line;

			while (p->tok.kind != T_END && p->tok.line == line)
				ptx_next(p);
		} else if (ptx_word(p, ".pragma")) {
			skip_statement(p);
			ptx_next(p);
		} else {
			ptx_die(p, "unknown directive %.*s", (int)(p->tok.n < 40 ? p->tok.n : 40), p->tok.s);
		}
		return;
	}
	if (p->tok.kind == T_IDENT && p->p < p->end && *p->p == ':') {
		struct token name = p->tok;

		ptx_next(p);
		ptx_next(p);
		if (ptx_word(p, ".branchtargets")) {
			target_list(p, name.s, name.n);
		} else if (ptx_word(p, ".callprototype") || ptx_word(p, ".calltargets")) {
			skip_statement(p);
			ptx_next(p);
		} else {
			struct sym *s = ptx_lookup(p, name.s, name.n);

			if (!s || s->kind != SYM_LABEL)
				ptx_die(p, "%.*s is no label", (int)name.n, name.s);
			ptx_place_label(p, s->ref);
		}
		return;
	}
	if (ptx_accept(p, ';'))
		return;
	instruction(p);
}

void ptx_body(struct parser *p)
{
	struct func *f = p->f;
	uint32_t scopes[64], depth = 0;

	p->labels = NULL;
	p->fixups = NULL;
	p->lists = NULL;
	p->nlabels = p->cap_labels = p->nfixups = p->cap_fixups = p->nlists = p->cap_lists = 0;
	p->sink_pred = p->sink32 = p->sink64 = 0;
	p->const_bucket = ptx_need(p, 1024, sizeof *p->const_bucket);
	p->text = f->name;
	p->stmt_line = p->tok.line;
	p->block = UINT32_MAX - 1;
	f->ret_row = ptx_pinned(p, CLS_W32);
	ptx_new_block(p);
	collect_labels(p);
	do {
		if (ptx_accept(p, '{')) {
			if (depth == 64)
				ptx_die(p, "blocks nested too deep");
			scopes[depth++] = p->nsyms;
		} else if (ptx_is(p, '}')) {
			ptx_close_scope(p, scopes[--depth]);
			if (depth)
				ptx_next(p);
		} else if (p->tok.kind == T_END) {
			ptx_die(p, "'}' missing");
		} else {
			statement(p);
		}
	} while (depth);
	ptx_next(p);
	p->text = "ret";
	if (f->entry)
		ptx_emit(p, OP_EXIT);
	else
		ptx_op(p, OP_RET, 0, 1, f->ret_row);
	for (uint32_t i = 0; i < p->nfixups; i++) {
		const struct label *l = &p->labels[p->fixups[i].label];

		if (!l->placed)
			ptx_die(p, "label %.*s is not placed", (int)l->n, l->name ? l->name : "");
		f->code[p->fixups[i].insn].imm = (int64_t)l->at - p->fixups[i].insn;
	}
}
