/*
 * ptx_decode_float.c: floating-point instructions and conversions to operations.
 *
 * In:  the statement in p. Out: emitted operations; false if the form is not supported (an unknown rounding, a flush
 *      or saturation that no operation implements), so that no result differs from the meaning of the text.
 */
#include "ptx_parse.h"

/* Order of a type in the families of PTX_F; flushing is its own member. */
static int float_index(enum ptx_type t, bool ftz)
{
	switch (t) {
	case TY_F32: return ftz ? 1 : 0;
	case TY_F64: return ftz ? -1 : 2;
	case TY_F16: return ftz ? -1 : 3;
	case TY_F16X2: return ftz ? -1 : 4;
	case TY_BF16: return ftz ? -1 : 5;
	case TY_BF16X2: return ftz ? -1 : 6;
	default: return -1;
	}
}

static int rounding(struct parser *p)
{
	static const char *const names[] = { "rn", "rz", "rm", "rp" };

	for (int i = 0; i < 4; i++)
		if (ptx_mod(p, names[i]))
			return i;
	return 0;
}

static uint32_t flushed(struct parser *p, uint32_t r)
{
	uint32_t d = ptx_vreg(p, CLS_W32);

	ptx_op(p, OP_FLUSH_F32, 1, 1, d, r);
	return d;
}

/* Applies .sat and .relu to the result. */
static bool finish(struct parser *p, enum ptx_type t, uint32_t d, bool sat, bool relu)
{
	if (relu) {
		int i = float_index(t, false);

		if (i < 3)
			return false;
		/* max with +0 that keeps a NaN */
		ptx_op(p, (enum ptx_op)(OP_FMAXNAN_F32 + i), 1, 2, d, d, ptx_constant(p, ptx_type_class(t), 0, REL_NONE, 0));
	}
	if (!sat)
		return true;
	if (t != TY_F32 && t != TY_F64)
		return false;
	ptx_op(p, t == TY_F32 ? OP_SATURATE_F32 : OP_SATURATE_F64, 1, 1, d, d);
	return true;
}

static bool emit(struct parser *p, enum ptx_type t, int nearest, int directed, int n)
{
	int mode = rounding(p), i;
	bool ftz = ptx_mod(p, "ftz"), sat = ptx_mod(p, "sat"), relu = ptx_mod(p, "relu");
	uint32_t d, r[3] = { 0 };

	i = float_index(t, ftz);
	if (i < 0 || p->nops != (uint32_t)n + 1)
		return false;
	d = ptx_out(p, 0, t);
	for (int k = 0; k < n; k++)
		r[k] = ptx_in(p, (uint32_t)k + 1, t);
	if (mode == 0) {
		ptx_op(p, (enum ptx_op)(nearest + i), 1, n, d, r[0], r[1], r[2]);
		return finish(p, t, d, sat, relu);
	}
	if (i > 2 || directed < 0)
		return false;
	for (int k = 0; ftz && k < n; k++)
		r[k] = flushed(p, r[k]);
	/* The families of directed operations: add mul fma div sqrt, f32 then f64. */
	ptx_op(p, (enum ptx_op)(directed + (t == TY_F64 ? 5 : 0)), 1, n, d, r[0], r[1], r[2])->sub = (uint8_t)mode;
	if (ftz)
		ptx_op(p, OP_FLUSH_F32, 1, 1, d, d);
	return finish(p, t, d, sat, relu);
}

static bool min_max(struct parser *p, enum ptx_type t, bool max)
{
	bool nan = ptx_mod(p, "NaN");

	return emit(p, t, max ? (nan ? OP_FMAXNAN_F32 : OP_FMAX_F32) : nan ? OP_FMINNAN_F32 : OP_FMIN_F32, -1, 2);
}

/* a - b rounds as a + (-b) does, so directed subtraction needs no operation of its own. */
static bool subtract(struct parser *p, enum ptx_type t)
{
	struct operand *b = &p->op[2];
	bool directed = false;
	uint32_t r;

	for (uint32_t i = 0; i < p->nmods; i++)
		directed |= !strcmp(p->mod[i], "rz") || !strcmp(p->mod[i], "rm") || !strcmp(p->mod[i], "rp");
	if (!directed)
		return emit(p, t, OP_FSUB_F32, -1, 2);
	if (t != TY_F32 && t != TY_F64)
		return false;
	r = ptx_vreg(p, ptx_type_class(t));
	ptx_op(p, t == TY_F32 ? OP_FNEG_F32 : OP_FNEG_F64, 1, 1, r, ptx_in(p, 2, t));
	*b = (struct operand){ .a = { .kind = A_REG, .reg = r } };
	return emit(p, t, OP_FADD_F32, OP_ROUNDED_ADD_F32, 2);
}

static bool divide(struct parser *p, enum ptx_type t)
{
	bool approx = ptx_mod(p, "approx") || ptx_mod(p, "full");

	if (t != TY_F32 && t != TY_F64)
		return false;
	return emit(p, t, OP_FDIV_F32, approx ? -1 : OP_ROUNDED_DIV_F32, 2);
}

bool ptx_float_arith(struct parser *p, enum ptx_type t)
{
	const char *b = p->base;

	if (!strcmp(b, "add"))
		return emit(p, t, OP_FADD_F32, OP_ROUNDED_ADD_F32, 2);
	if (!strcmp(b, "sub"))
		return subtract(p, t);
	if (!strcmp(b, "mul"))
		return emit(p, t, OP_FMUL_F32, OP_ROUNDED_MUL_F32, 2);
	if (!strcmp(b, "mad") || !strcmp(b, "fma"))
		return emit(p, t, OP_FMA_F32, OP_ROUNDED_FMA_F32, 3);
	if (!strcmp(b, "div"))
		return divide(p, t);
	if (!strcmp(b, "min") || !strcmp(b, "max"))
		return min_max(p, t, b[1] == 'a');
	if (!strcmp(b, "neg"))
		return emit(p, t, OP_FNEG_F32, -1, 1);
	if (!strcmp(b, "abs"))
		return emit(p, t, OP_FABS_F32, -1, 1);
	return false;
}

static bool d_fma(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);

	return ptx_type_float(t) && ptx_float_arith(p, t);
}

static bool d_root(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	bool approx = ptx_mod(p, "approx");
	char b = p->base[1];

	if (t != TY_F32 && t != TY_F64)
		return false;
	if (t == TY_F64 && approx)
		ptx_mod(p, "ftz");
	if (b == 'q')
		return emit(p, t, OP_FSQRT_F32, approx ? -1 : OP_ROUNDED_SQRT_F32, 1);
	if (b == 's')
		return approx && emit(p, t, OP_FRSQRT_F32, -1, 1);
	for (uint32_t i = 0; i < p->nmods; i++) {
		uint32_t n = p->nops;

		if (p->mod_used[i] || (strcmp(p->mod[i], "rz") && strcmp(p->mod[i], "rm") && strcmp(p->mod[i], "rp")))
			continue;
		if (n != 2)
			return false;
		p->op[2] = p->op[1];
		p->op[1] = (struct operand){ .a = { .kind = t == TY_F32 ? A_F32 : A_F64, .bits = t == TY_F32 ? 0x3f800000 : 0x3ff0000000000000 } };
		p->nops = 3;
		return emit(p, t, OP_FDIV_F32, OP_ROUNDED_DIV_F32, 2);
	}
	return emit(p, t, OP_FRCP_F32, -1, 1);
}

static void to_float(struct parser *p, enum ptx_type t, uint32_t d, uint32_t a) { ptx_op(p, t == TY_F16 ? OP_CVT_F32_F16 : OP_CVT_F32_BF16, 1, 1, d, a); }
static void from_float(struct parser *p, enum ptx_type t, uint32_t d, uint32_t a) { ptx_op(p, t == TY_F16 ? OP_CVT_F16_F32 : OP_CVT_BF16_F32, 1, 1, d, a); }

/* sin, cos, ex2, lg2, tanh; the narrow forms compute in float */
static bool d_library(struct parser *p)
{
	static const struct { const char *name; enum ptx_op op; } ops[] = {
		{ "sin", OP_SIN_F32 }, { "cos", OP_COS_F32 }, { "ex2", OP_EX2_F32 }, { "lg2", OP_LG2_F32 }, { "tanh", OP_TANH_F32 },
	};
	enum ptx_type t = ptx_last_type(p), half = t == TY_F16X2 ? TY_F16 : t == TY_BF16X2 ? TY_BF16 : t;
	bool ftz = ptx_mod(p, "ftz");
	enum ptx_op op = OP_NOP;
	uint32_t d, a, part[2], f;

	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (!strcmp(p->base, ops[i].name))
			op = ops[i].op;
	if (!ptx_mod(p, "approx") || p->nops != 2 || !ptx_type_float(t) || t == TY_F64)
		return false;
	if (t != TY_F32 && op != OP_EX2_F32 && op != OP_TANH_F32)
		return false;
	/* ftz matters in float only, except that ex2.ftz.bf16 is the only bfloat16 form */
	if (ftz && (half == TY_F16))
		return false;
	if (op == OP_EX2_F32 && ftz)
		op = OP_EX2_F32Z;
	d = ptx_out(p, 0, t);
	a = ptx_in(p, 1, t);
	if (t == TY_F32) {
		ptx_op(p, op, 1, 1, d, a)->sub = ftz;
		return true;
	}
	f = ptx_vreg(p, CLS_W32);
	part[0] = a;
	part[1] = d;
	if (half != t) {
		part[0] = ptx_vreg(p, CLS_W16);
		part[1] = ptx_vreg(p, CLS_W16);
		ptx_op(p, OP_UNPACK2_W16, 2, 1, part[0], part[1], a);
	}
	for (int i = 0; i < (half != t ? 2 : 1); i++) {
		to_float(p, half, f, part[i]);
		ptx_op(p, op, 1, 1, f, f)->sub = ftz;
		from_float(p, half, half != t ? part[i] : d, f);
	}
	if (half != t)
		ptx_op(p, OP_PACK2_W16, 1, 2, d, part[0], part[1]);
	return true;
}

static bool d_copysign(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);

	return (t == TY_F32 || t == TY_F64) && emit(p, t, OP_FCOPYSIGN_F32, -1, 2);
}

static bool d_testp(struct parser *p)
{
	static const char *const names[] = { "finite", "infinite", "number", "notanumber", "normal", "subnormal" };
	enum ptx_type t = ptx_last_type(p);

	if ((t != TY_F32 && t != TY_F64) || p->nops != 2)
		return false;
	for (int i = 0; i < 6; i++)
		if (ptx_mod(p, names[i])) {
			ptx_op(p, t == TY_F32 ? OP_TESTP_F32 : OP_TESTP_F64, 1, 1, ptx_out(p, 0, TY_PRED), ptx_in(p, 1, t))->sub = (uint8_t)i;
			return true;
		}
	return false;
}

bool ptx_float_compare(struct parser *p, const char *cmp, enum ptx_type t, enum ptx_op *op, uint32_t *a, uint32_t *b)
{
	static const char *const names[] = { "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan" };
	bool ftz = ptx_mod(p, "ftz");
	uint32_t *side[2] = { a, b };

	for (int i = 0; i < 14; i++) {
		if (strcmp(cmp, names[i]))
			continue;
		*a = ptx_in(p, 1, t);
		*b = ptx_in(p, 2, t);
		if (t == TY_F16 || t == TY_BF16) {
			if (ftz)
				return false;
			for (int k = 0; k < 2; k++) {
				uint32_t f = ptx_vreg(p, CLS_W32);

				to_float(p, t, f, *side[k]);
				*side[k] = f;
			}
		} else if (t != TY_F32 && (t != TY_F64 || ftz)) {
			return false;
		}
		*op = (enum ptx_op)(OP_SETP_FEQ_F32 + 3 * i + (t == TY_F64 ? 2 : ftz));
		return true;
	}
	return false;
}

/* ---- cvt ---- */

static bool int_type(enum ptx_type t) { return t >= TY_B8 && t <= TY_S64; }

/* Integers may sit in wider registers than their type. */
static uint32_t cvt_register(struct parser *p, uint32_t i, enum ptx_type t, bool out)
{
	const struct operand *o = &p->op[i];
	enum ptx_type as = t;

	if (int_type(t) && o->a.kind == A_REG) {
		uint8_t cls = ptx_class_of(p, o->a.reg);

		if (cls != CLS_PRED && cls > ptx_type_class(t))
			as = cls == CLS_W32 ? TY_B32 : TY_B64;
	}
	return out ? ptx_out(p, i, as) : ptx_in(p, i, as);
}

static enum ptx_op fast_conversion(enum ptx_type from, uint8_t sc, enum ptx_type to, uint8_t dc, int64_t flags)
{
	uint32_t n = ptx_type_bytes(from), m = ptx_type_bytes(to);
	bool sg = ptx_type_signed(from);

	if (int_type(from) && int_type(to) && !(flags & ~CVT_MODE)) {
		if (m < n && dc == ptx_type_class(to) && m > 1)
			return m == 4 ? OP_CVT_W32_W64 : sc == CLS_W32 ? OP_CVT_W16_W32 : OP_CVT;
		if (m == n && dc == sc && dc == ptx_type_class(to) && m > 1)
			return (enum ptx_op)(OP_MOV_W16 + dc);
		if (n == 4 && m == 8 && sc == CLS_W32)
			return sg ? OP_CVT_S64_S32 : OP_CVT_U64_U32;
		if (m == 4 && dc == CLS_W32 && sc != CLS_W64 && n < 4)
			return n == 2 ? (sg ? OP_CVT_S32_S16 : sc == CLS_W16 ? OP_MOV_W32 : OP_CVT) : sg ? OP_CVT_S32_S8 : OP_CVT_U32_U8;
		return OP_CVT;
	}
	if (flags == 0 && to == TY_F32 && sc == CLS_W32 && (from == TY_S32 || from == TY_U32))
		return sg ? OP_CVT_F32_S32 : OP_CVT_F32_U32;
	if (flags == CVT_RZ && from == TY_F32 && to == TY_S32 && dc == CLS_W32)
		return OP_CVT_S32_F32_RZ;
	if (flags == 0 && to == TY_F32)
		return from == TY_F16 ? OP_CVT_F32_F16 : from == TY_BF16 ? OP_CVT_F32_BF16 : from == TY_F64 ? OP_CVT_F32_F64 : OP_CVT;
	if (flags == 0 && from == TY_F32)
		return to == TY_F16 ? OP_CVT_F16_F32 : to == TY_BF16 ? OP_CVT_BF16_F32 : to == TY_F64 ? OP_CVT_F64_F32 : OP_CVT;
	return OP_CVT;
}

static void convert(struct parser *p, enum ptx_type from, uint32_t a, enum ptx_type to, uint32_t d, int64_t flags)
{
	enum ptx_op op = fast_conversion(from, ptx_class_of(p, a), to, ptx_class_of(p, d), flags);
	struct insn *in = ptx_op(p, op, 1, 1, d, a);

	if (op != OP_CVT)
		return;
	in->o[4] = from;
	in->o[5] = to;
	in->size = ptx_class_of(p, a);
	in->cls = ptx_class_of(p, d);
	in->imm = flags;
}

/* Between two numbers of 8 bits and two halves, or from two floats. */
static bool d_cvt_pair(struct parser *p, enum ptx_type pair)
{
	enum ptx_type other = ptx_last_type(p);
	bool narrow = ptx_mod(p, "satfinite"), relu = ptx_mod(p, "relu");
	uint32_t d = ptx_out(p, 0, narrow ? TY_B16 : other), a = ptx_in(p, 1, narrow ? other : TY_B16);
	struct insn *in;

	if (!ptx_mod(p, "rn") || (other != TY_F16X2 && (other != TY_F32 || !narrow)))
		return false;
	if (other == TY_F32)
		in = ptx_op(p, OP_CVT, 1, 2, d, a, ptx_in(p, 2, TY_F32));
	else
		in = ptx_op(p, OP_CVT, 1, 1, d, a);
	in->o[4] = narrow ? other : pair;
	in->o[5] = narrow ? pair : other;
	in->size = ptx_class_of(p, a);
	in->cls = ptx_class_of(p, d);
	in->imm = relu ? CVT_RELU : 0;
	return true;
}

/* The nearest float of ten digits, the one away from zero of two. */
static bool d_cvt_tf32(struct parser *p)
{
	uint32_t d = ptx_out(p, 0, TY_B32), a = ptx_in(p, 1, ptx_last_type(p));
	struct insn *in;

	if (!ptx_mod(p, "rna"))
		return false;
	in = ptx_op(p, OP_CVT, 1, 1, d, a);
	in->o[4] = in->o[5] = TY_F32;
	in->size = ptx_class_of(p, a);
	in->cls = ptx_class_of(p, d);
	in->imm = CVT_TF32;
	return true;
}

static bool d_cvt(struct parser *p)
{
	if (ptx_mod(p, "e4m3x2"))
		return d_cvt_pair(p, TY_E4M3X2);
	if (ptx_mod(p, "e5m2x2"))
		return d_cvt_pair(p, TY_E5M2X2);
	if (ptx_mod(p, "tf32"))
		return d_cvt_tf32(p);
	static const char *const modes[] = { "rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi" };
	enum ptx_type from = ptx_last_type(p), to = ptx_last_type(p);
	int64_t flags = 0;
	bool fi = ptx_type_float(from), ti = ptx_type_float(to), integral = false, any = false;

	for (int i = 0; i < 8; i++)
		if (ptx_mod(p, modes[i])) {
			if (any)
				return false;
			any = true;
			integral = i >= 4;
			flags = i % 4;
		}
	if (from == TY_NONE || to == TY_NONE || from == TY_PRED || to == TY_PRED)
		return false;
	if (integral && !fi)
		return false;
	if (fi && !ti && !integral)
		return false;
	if (integral && ti)
		flags |= CVT_TO_INT;
	if (ptx_mod(p, "ftz"))
		flags |= from == TY_F32 || to == TY_F32 ? CVT_FTZ : 0;
	if (ptx_mod(p, "sat"))
		flags |= fi && !ti ? 0 : CVT_SAT; /* float to integer always saturates */
	if (ptx_mod(p, "relu"))
		flags |= CVT_RELU;
	/* A half is never a subnormal float, and a subnormal float rounds to a zero half. */
	if ((from == TY_F16 && to == TY_F32) || (from == TY_F32 && to == TY_F16))
		flags &= ~CVT_FTZ;
	if (to == TY_F16X2 || to == TY_BF16X2) {
		enum ptx_type half = to == TY_F16X2 ? TY_F16 : TY_BF16;
		uint32_t hi, lo;

		if (from != TY_F32 || p->nops != 3)
			return false;
		hi = ptx_vreg(p, CLS_W16);
		lo = ptx_vreg(p, CLS_W16);
		convert(p, TY_F32, ptx_in(p, 1, TY_F32), half, hi, flags);
		convert(p, TY_F32, ptx_in(p, 2, TY_F32), half, lo, flags);
		ptx_op(p, OP_PACK2_W16, 1, 2, ptx_out(p, 0, to), lo, hi);
		return true;
	}
	if (p->nops != 2 || from == TY_F16X2 || from == TY_BF16X2)
		return false;
	uint32_t d = cvt_register(p, 0, to, true), a = cvt_register(p, 1, from, false);

	convert(p, from, a, to, d, flags);
	return true;
}

const struct ptx_opcode ptx_float_opcodes[] = {
	{ "fma", d_fma }, { "sqrt", d_root }, { "rsqrt", d_root }, { "rcp", d_root },
	{ "sin", d_library }, { "cos", d_library }, { "ex2", d_library }, { "lg2", d_library }, { "tanh", d_library },
	{ "copysign", d_copysign }, { "testp", d_testp }, { "cvt", d_cvt },
	{ NULL, NULL },
};
