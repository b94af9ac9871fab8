/*
 * ptx_decode_int.c: integer, logic, move, select and compare instructions to operations.
 *
 * In:  the statement in p (base, modifiers, operands). Out: emitted operations; false if the form is not supported.
 */
#include "ptx_parse.h"

/* Index of an integer type in the families _W16 _W32 _W64 and _U16 _S16 _U32 _S32 _U64 _S64; -1 for other types. */
static int width_index(enum ptx_type t)
{
	if (ptx_type_float(t) || t <= TY_S8)
		return -1;
	return ptx_type_class(t);
}

static int sign_index(enum ptx_type t)
{
	int w = width_index(t);

	return w < 0 ? -1 : 2 * w + ptx_type_signed(t);
}

static bool is(const struct parser *p, const char *base) { return !strcmp(p->base, base); }

static bool emit_n(struct parser *p, int op, enum ptx_type t, int n)
{
	uint32_t d = ptx_out(p, 0, t), a = ptx_in(p, 1, t), b = n > 1 ? ptx_in(p, 2, t) : 0, c = n > 2 ? ptx_in(p, 3, t) : 0;

	if (p->nops != (uint32_t)n + 1)
		return false;
	ptx_op(p, (enum ptx_op)op, 1, n, d, a, b, c);
	return true;
}

static bool carry(struct parser *p, enum ptx_type t, int op, int n, bool in, bool out)
{
	if (!emit_n(p, op, t, n))
		return false;
	p->f->code[p->f->ncode - 1].sub = (uint8_t)(in | out << 1);
	return true;
}

static bool d_add(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	bool sub = p->base[0] == 's', cc, in = p->base[3] == 'c';
	int w = width_index(t);

	if (ptx_type_float(t))
		return ptx_float_arith(p, t);
	if (w < 0)
		return false;
	cc = ptx_mod(p, "cc");
	if (cc || in)
		return w > 0 && carry(p, t, (sub ? OP_SUBC_W32 : OP_ADDC_W32) + w - 1, 2, in, cc);
	if (ptx_mod(p, "sat"))
		return t == TY_S32 && emit_n(p, sub ? OP_SUBSAT_S32 : OP_ADDSAT_S32, t, 2);
	return emit_n(p, (sub ? OP_SUB_W16 : OP_ADD_W16) + w, t, 2);
}

static enum ptx_type twice(enum ptx_type t)
{
	switch (t) {
	case TY_U16: case TY_S16: return TY_U32;
	default: return TY_U64;
	}
}

/* mul and mad; madc with carry */
static bool d_mul(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	bool mad = p->base[1] == 'a', in = is(p, "madc"), cc;
	int w = width_index(t), s = sign_index(t);

	if (ptx_type_float(t))
		return ptx_float_arith(p, t);
	if (w < 0)
		return false;
	if (ptx_mod(p, "wide")) {
		uint32_t d = ptx_out(p, 0, twice(t)), a = ptx_in(p, 1, t), b = ptx_in(p, 2, t), c = mad ? ptx_in(p, 3, twice(t)) : 0;

		if (w > 1 || p->nops != 3u + mad)
			return false;
		ptx_op(p, (enum ptx_op)((mad ? OP_MADWIDE_U16 : OP_MULWIDE_U16) + s), 1, 2 + mad, d, a, b, c);
		return true;
	}
	cc = ptx_mod(p, "cc");
	if (in || cc) {
		bool lo = ptx_mod(p, "lo"), hi = !lo && ptx_mod(p, "hi");

		if (!mad || w < 1 || (!lo && !hi))
			return false;
		return carry(p, t, w == 1 ? (lo ? OP_MADC_LO_W32 : ptx_type_signed(t) ? OP_MADC_HI_S32 : OP_MADC_HI_U32)
		                          : (lo ? OP_MADC_LO_W64 : ptx_type_signed(t) ? OP_MADC_HI_S64 : OP_MADC_HI_U64), 3, in, cc);
	}
	if (ptx_mod(p, "hi")) {
		uint32_t d, r;

		if (!mad)
			return emit_n(p, OP_MULHI_U16 + s, t, 2);
		if (p->nops != 4 || ptx_mod(p, "sat"))
			return false;
		d = ptx_out(p, 0, t);
		r = ptx_vreg(p, ptx_type_class(t));
		ptx_op(p, (enum ptx_op)(OP_MULHI_U16 + s), 1, 2, r, ptx_in(p, 1, t), ptx_in(p, 2, t));
		ptx_op(p, (enum ptx_op)(OP_ADD_W16 + w), 1, 2, d, r, ptx_in(p, 3, t));
		return true;
	}
	if (!ptx_mod(p, "lo"))
		return false;
	return mad ? emit_n(p, OP_MAD_W16 + w, t, 3) : emit_n(p, OP_MUL_W16 + w, t, 2);
}

static bool d_mul24(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	bool mad = p->base[1] == 'a';
	uint32_t d, r;

	if ((t != TY_U32 && t != TY_S32) || !ptx_mod(p, "lo") || p->nops != 3u + mad)
		return false;
	d = ptx_out(p, 0, t);
	r = mad ? ptx_vreg(p, CLS_W32) : d;
	ptx_op(p, t == TY_U32 ? OP_MUL24_U32 : OP_MUL24_S32, 1, 2, r, ptx_in(p, 1, t), ptx_in(p, 2, t));
	if (mad)
		ptx_op(p, OP_ADD_W32, 1, 2, d, r, ptx_in(p, 3, t));
	return true;
}

static bool signed_family(struct parser *p, int op, int n)
{
	enum ptx_type t = ptx_last_type(p);
	int s = sign_index(t);

	if (ptx_type_float(t))
		return ptx_float_arith(p, t);
	return s >= 0 && emit_n(p, op + s, t, n);
}

static bool d_div(struct parser *p) { return signed_family(p, OP_DIV_U16, 2); }
static bool d_rem(struct parser *p) { return signed_family(p, OP_REM_U16, 2); }
static bool d_min(struct parser *p) { return signed_family(p, OP_MIN_U16, 2); }
static bool d_max(struct parser *p) { return signed_family(p, OP_MAX_U16, 2); }
static bool d_sad(struct parser *p) { return signed_family(p, OP_SAD_U16, 3); }

static bool width_family(struct parser *p, int op, int n)
{
	enum ptx_type t = ptx_last_type(p);
	int w = width_index(t);

	if (ptx_type_float(t))
		return ptx_float_arith(p, t);
	return w >= 0 && emit_n(p, op + w, t, n);
}

static bool d_abs(struct parser *p) { return width_family(p, OP_ABS_W16, 1); }
static bool d_neg(struct parser *p) { return width_family(p, OP_NEG_W16, 1); }

static bool d_logic(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	static const struct { const char *name; int op, pred, n; } ops[] = {
		{ "and", OP_AND_W16, OP_PAND, 2 }, { "or", OP_OR_W16, OP_POR, 2 }, { "xor", OP_XOR_W16, OP_PXOR, 2 }, { "not", OP_NOT_W16, OP_PNOT, 1 },
	};

	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		if (!is(p, ops[i].name))
			continue;
		if (t != TY_PRED)
			return width_index(t) >= 0 && emit_n(p, ops[i].op + width_index(t), t, ops[i].n);
		uint32_t d = ptx_out(p, 0, t), a = ptx_pred_in(p, 1), b = ops[i].n > 1 ? ptx_pred_in(p, 2) : 0;

		if (p->nops != (uint32_t)ops[i].n + 1 || p->op[1].negate || p->op[2].negate)
			return false;
		ptx_op(p, (enum ptx_op)ops[i].pred, 1, ops[i].n, d, a, b);
		return true;
	}
	return false;
}

static bool d_shift(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	int w = width_index(t);
	int op = is(p, "shl") ? OP_SHL_W16 + w : OP_SHR_U16 + sign_index(t);

	if (w < 0 || p->nops != 3)
		return false;
	ptx_op(p, (enum ptx_op)op, 1, 2, ptx_out(p, 0, t), ptx_in(p, 1, t), ptx_in(p, 2, TY_U32));
	return true;
}

static bool d_bits(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p), result = TY_U32;
	int w = width_index(t) - 1, op, sub = 0;

	if (w < 0 || p->nops != 2)
		return false;
	if (is(p, "popc")) {
		op = OP_POPC_W32 + w;
	} else if (is(p, "clz")) {
		op = OP_CLZ_W32 + w;
	} else if (is(p, "brev")) {
		op = OP_BREV_W32 + w;
		result = t;
	} else {
		op = OP_BFIND_U32 + 2 * w + ptx_type_signed(t);
		sub = ptx_mod(p, "shiftamt");
	}
	ptx_op(p, (enum ptx_op)op, 1, 1, ptx_out(p, 0, result), ptx_in(p, 1, t))->sub = (uint8_t)sub;
	return true;
}

static bool d_bitfield(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	int w = width_index(t) - 1;

	if (w < 0)
		return false;
	if (is(p, "bfe")) {
		if (p->nops != 4)
			return false;
		ptx_op(p, (enum ptx_op)(OP_BFE_U32 + 2 * w + ptx_type_signed(t)), 1, 3, ptx_out(p, 0, t), ptx_in(p, 1, t), ptx_in(p, 2, TY_U32),
		       ptx_in(p, 3, TY_U32));
	} else if (is(p, "bfi")) {
		if (p->nops != 5)
			return false;
		ptx_op(p, (enum ptx_op)(OP_BFI_W32 + w), 1, 4, ptx_out(p, 0, t), ptx_in(p, 1, t), ptx_in(p, 2, t), ptx_in(p, 3, TY_U32), ptx_in(p, 4, TY_U32));
	} else {
		bool wrap = ptx_mod(p, "wrap"), bmsk = is(p, "bmsk");

		if (w != 0 || p->nops != 3 || (!wrap && !ptx_mod(p, "clamp")))
			return false;
		ptx_op(p, bmsk ? OP_BMSK_W32 : ptx_type_signed(t) ? OP_SZEXT_S32 : OP_SZEXT_U32, 1, 2, ptx_out(p, 0, t), ptx_in(p, 1, t),
		       ptx_in(p, 2, TY_U32))->sub = wrap;
	}
	return true;
}

static bool d_prmt(struct parser *p)
{
	static const char *const modes[] = { "f4e", "b4e", "rc8", "ecl", "ecr", "rc16" };
	int mode = 0;

	for (int i = 0; i < 6; i++)
		if (ptx_mod(p, modes[i]))
			mode = i + 1;
	if (ptx_last_type(p) != TY_B32 || !emit_n(p, OP_PRMT, TY_B32, 3))
		return false;
	p->f->code[p->f->ncode - 1].sub = (uint8_t)mode;
	return true;
}

static bool d_shf(struct parser *p)
{
	bool left = ptx_mod(p, "l"), wrap;

	if (!left && !ptx_mod(p, "r"))
		return false;
	wrap = ptx_mod(p, "wrap");
	if (!wrap && !ptx_mod(p, "clamp"))
		return false;
	if (ptx_last_type(p) != TY_B32 || !emit_n(p, left ? OP_SHF_L : OP_SHF_R, TY_B32, 3))
		return false;
	p->f->code[p->f->ncode - 1].sub = wrap;
	return true;
}

static bool d_lop3(struct parser *p)
{
	if (ptx_last_type(p) != TY_B32 || p->nops != 5 || p->op[4].a.kind != A_INT)
		return false;
	ptx_op(p, OP_LOP3, 1, 3, ptx_out(p, 0, TY_B32), ptx_in(p, 1, TY_B32), ptx_in(p, 2, TY_B32), ptx_in(p, 3, TY_B32))->imm =
		(int64_t)(p->op[4].a.bits & 0xff);
	return true;
}

static bool d_dot(struct parser *p)
{
	enum ptx_type b = ptx_last_type(p), a = ptx_last_type(p);
	bool two = is(p, "dp2a"), hi = two && ptx_mod(p, "hi");

	if ((a != TY_U32 && a != TY_S32) || (b != TY_U32 && b != TY_S32) || (two && !hi && !ptx_mod(p, "lo")) || !emit_n(p, two ? OP_DP2A : OP_DP4A, TY_B32, 3))
		return false;
	p->f->code[p->f->ncode - 1].sub = (uint8_t)((a == TY_S32) | (b == TY_S32) << 1 | hi << 2);
	return true;
}

/* mov.b64 d, {lo, hi} and back, in any of the three splits */
static bool mov_vector(struct parser *p, enum ptx_type t, bool pack)
{
	const struct operand *vec = &p->op[pack], *one = &p->op[!pack];
	uint32_t n = vec->n, r[PTX_MAX_VECTOR], whole;
	uint8_t cls = ptx_type_class(t);
	enum ptx_type part = cls == CLS_W32 && n == 2 ? TY_B16 : cls == CLS_W64 && n == 2 ? TY_B32 : cls == CLS_W64 && n == 4 ? TY_B16 : TY_NONE;

	/* A list of one is the register itself. */
	if (n == 1 && !one->is_vec) {
		struct value *v = pack ? &p->op[1].v[0] : &p->op[0].v[0];

		p->op[pack] = (struct operand){ .a = *v };
		ptx_op(p, (enum ptx_op)(OP_MOV_W16 + cls), 1, 1, ptx_out(p, 0, t), ptx_in(p, 1, t));
		return true;
	}
	if (part == TY_NONE || one->is_vec)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct value v = vec->v[i];

		if (v.kind == A_SINK && !pack) {
			r[i] = ptx_vreg(p, ptx_type_class(part));
		} else if (!pack && v.kind != A_REG) {
			return false;
		} else {
			r[i] = ptx_src(p, &v, part);
		}
	}
	if (pack) {
		whole = ptx_out(p, 0, t);
		if (n == 4)
			ptx_op(p, OP_PACK4_W16, 1, 4, whole, r[0], r[1], r[2], r[3]);
		else
			ptx_op(p, part == TY_B16 ? OP_PACK2_W16 : OP_PACK2_W32, 1, 2, whole, r[0], r[1]);
		return true;
	}
	whole = ptx_in(p, 1, t);
	if (n == 4)
		ptx_op(p, OP_UNPACK4_W16, 4, 1, r[0], r[1], r[2], r[3], whole);
	else
		ptx_op(p, part == TY_B16 ? OP_UNPACK2_W16 : OP_UNPACK2_W32, 2, 1, r[0], r[1], whole);
	return true;
}

static bool d_mov(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	uint8_t cls = ptx_type_class(t);

	if (p->nops != 2 || t == TY_NONE || t == TY_B8 || t == TY_U8 || t == TY_S8)
		return false;
	if (t == TY_PRED) {
		uint32_t d = ptx_out(p, 0, t), a = ptx_pred_in(p, 1);

		ptx_op(p, p->op[1].negate ? OP_PNOT : OP_PMOV, 1, 1, d, a);
		return true;
	}
	if (p->op[0].is_vec || p->op[1].is_vec)
		return !(p->op[0].is_vec && p->op[1].is_vec) && mov_vector(p, t, p->op[1].is_vec);
	/* Addresses and special registers are bits, for any type. */
	ptx_op(p, (enum ptx_op)(OP_MOV_W16 + cls), 1, 1, ptx_out(p, 0, t), ptx_in(p, 1, t));
	return true;
}

static bool d_selp(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	uint32_t c;

	if (p->nops != 4 || t == TY_NONE || ptx_type_bytes(t) == 1)
		return false;
	c = ptx_pred_in(p, 3);
	ptx_op(p, (enum ptx_op)(OP_SELP_W16 + ptx_type_class(t)), 1, 3, ptx_out(p, 0, t), ptx_in(p, 1, t), ptx_in(p, 2, t), c)->sub = p->op[3].negate;
	return true;
}

static bool d_slct(struct parser *p)
{
	enum ptx_type by = ptx_last_type(p), t = ptx_last_type(p);
	uint8_t cls = ptx_type_class(t);
	uint32_t a, b, c;

	if (p->nops != 4 || (by != TY_S32 && by != TY_F32) || t == TY_NONE || cls == CLS_W16 || cls == CLS_PRED)
		return false;
	a = ptx_in(p, 1, t);
	b = ptx_in(p, 2, t);
	c = ptx_in(p, 3, by);
	if (by == TY_F32 && ptx_mod(p, "ftz")) {
		uint32_t r = ptx_vreg(p, CLS_W32);

		ptx_op(p, OP_FLUSH_F32, 1, 1, r, c);
		c = r;
	}
	ptx_op(p, (enum ptx_op)((by == TY_S32 ? OP_SLCT_S32 : OP_SLCT_F32) + 2 * (cls == CLS_W64)), 1, 3, ptx_out(p, 0, t), a, b, c);
	return true;
}

/* Comparison of operands 1 and 2 into predicates pd, qd; the modifiers name it. */
static bool compare(struct parser *p, enum ptx_type t, uint32_t pd, uint32_t qd, bool has_q, bool has_c)
{
	static const char *const names[] = { "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs" };
	static const char *const combine[] = { "and", "or", "xor" };
	enum ptx_op op = OP_NOP;
	struct insn *in;
	uint32_t a, b, c = ptx_constant(p, CLS_PRED, 1, REL_NONE, 0);
	int how = 0, s = sign_index(t);

	for (int i = 0; i < 3; i++)
		if (ptx_mod(p, combine[i]))
			how = i + 1;
	if (!!how != has_c)
		return false;
	if (has_c)
		c = ptx_pred_in(p, 3);
	if (ptx_type_float(t)) {
		const char *cmp = NULL;

		for (uint32_t i = 0; i < p->nmods && !cmp; i++)
			if (!p->mod_used[i]) {
				cmp = p->mod[i];
				p->mod_used[i] = true;
			}
		if (!cmp || !ptx_float_compare(p, cmp, t, &op, &a, &b))
			return false;
	} else {
		if (s < 0)
			return false;
		for (int i = 0; i < 10 && op == OP_NOP; i++)
			if (ptx_mod(p, names[i])) {
				int k = i < 6 ? i : i - 4;

				/* lo, ls, hi, hs are the unsigned names */
				op = (enum ptx_op)(OP_SETP_EQ_U16 + 6 * k + (i < 6 ? s : s & ~1));
			}
		if (op == OP_NOP)
			return false;
		a = ptx_in(p, 1, t);
		b = ptx_in(p, 2, t);
	}
	in = ptx_op(p, op, 2, 3, pd, qd, a, b, c);
	in->sub = (uint8_t)how;
	in->aux = has_c && p->op[3].negate;
	in->vec = has_q ? 2 : 1;
	return true;
}

static bool d_setp(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	struct operand *o = &p->op[0];
	bool has_q = o->has_q;
	uint32_t pd = ptx_out(p, 0, TY_PRED), qd = pd;

	if (p->nops < 3 || p->nops > 4)
		return false;
	if (has_q) {
		if (o->q.kind == A_SINK)
			has_q = false;
		else
			qd = ptx_src(p, &o->q, TY_PRED);
	}
	return compare(p, t, pd, qd, has_q, p->nops == 4);
}

/* set.cmp.u32.f32 d, a, b: all ones or 1.0 if true */
static bool d_set(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p), to = ptx_last_type(p);
	uint32_t pd = ptx_vreg(p, CLS_PRED), yes, d = ptx_out(p, 0, to);

	if ((to != TY_U32 && to != TY_S32 && to != TY_F32) || t == TY_NONE || p->nops < 3 || p->nops > 4 ||
	    !compare(p, t, pd, pd, false, p->nops == 4))
		return false;
	yes = ptx_constant(p, CLS_W32, to == TY_F32 ? 0x3f800000 : UINT32_MAX, REL_NONE, 0);
	ptx_op(p, OP_SELP_W32, 1, 3, d, yes, ptx_constant(p, CLS_W32, 0, REL_NONE, 0), pd);
	return true;
}

static bool d_cnot(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	uint8_t cls = ptx_type_class(t);
	uint32_t pd, zero, d, a;
	struct insn *in;

	if (width_index(t) < 0 || p->nops != 2)
		return false;
	d = ptx_out(p, 0, t);
	a = ptx_in(p, 1, t);
	pd = ptx_vreg(p, CLS_PRED);
	zero = ptx_constant(p, cls, 0, REL_NONE, 0);
	in = ptx_op(p, (enum ptx_op)(OP_SETP_EQ_U16 + (sign_index(t) & ~1)), 2, 3, pd, pd, a, zero, ptx_constant(p, CLS_PRED, 1, REL_NONE, 0));
	in->vec = 1;
	ptx_op(p, (enum ptx_op)(OP_SELP_W16 + cls), 1, 3, d, ptx_constant(p, cls, 1, REL_NONE, 0), zero, pd);
	return true;
}

const struct ptx_opcode ptx_int_opcodes[] = {
	{ "add", d_add }, { "sub", d_add }, { "addc", d_add }, { "subc", d_add },
	{ "mul", d_mul }, { "mad", d_mul }, { "madc", d_mul }, { "mul24", d_mul24 }, { "mad24", d_mul24 },
	{ "div", d_div }, { "rem", d_rem }, { "min", d_min }, { "max", d_max }, { "sad", d_sad }, { "abs", d_abs }, { "neg", d_neg },
	{ "and", d_logic }, { "or", d_logic }, { "xor", d_logic }, { "not", d_logic }, { "cnot", d_cnot },
	{ "shl", d_shift }, { "shr", d_shift },
	{ "popc", d_bits }, { "clz", d_bits }, { "brev", d_bits }, { "bfind", d_bits },
	{ "bfe", d_bitfield }, { "bfi", d_bitfield }, { "bmsk", d_bitfield }, { "szext", d_bitfield },
	{ "prmt", d_prmt }, { "shf", d_shf }, { "lop3", d_lop3 }, { "dp4a", d_dot }, { "dp2a", d_dot },
	{ "mov", d_mov }, { "selp", d_selp }, { "slct", d_slct }, { "setp", d_setp }, { "set", d_set },
	{ NULL, NULL },
};
