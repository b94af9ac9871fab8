/*
 * ptx_decode_mem.c: loads, stores, atomics and address conversions to operations.
 *
 * In:  the statement in p. Out: emitted operations; false if the form is not supported.
 *
 * Caching and ordering modifiers have no effect here: lanes access host memory in program order.
 */
#include "ptx_parse.h"

static bool any_mod(struct parser *p, const char *const *names)
{
	bool found = false;

	for (; *names; names++)
		found |= ptx_mod(p, *names);
	return found;
}

static void skip_prefix(struct parser *p, const char *prefix)
{
	for (uint32_t i = 0; i < p->nmods; i++)
		if (!strncmp(p->mod[i], prefix, strlen(prefix)))
			p->mod_used[i] = true;
}

static void ordering(struct parser *p)
{
	static const char *const names[] = { "weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio", "cta", "cluster", "gpu", "sys",
		"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", NULL };

	any_mod(p, names);
	/* The policy is the last operand. */
	if (ptx_mod(p, "L2::cache_hint"))
		p->nops--;
	skip_prefix(p, "L2::evict");
	skip_prefix(p, "L1::evict");
	skip_prefix(p, "L1::no_allocate");
	skip_prefix(p, "L2::64B");
	skip_prefix(p, "L2::128B");
	skip_prefix(p, "L2::256B");
}

static enum ptx_space space_of(struct parser *p)
{
	if (ptx_mod(p, "global") || ptx_mod(p, "const"))
		return SP_GLOBAL;
	if (ptx_mod(p, "shared") || ptx_mod(p, "shared::cta"))
		return SP_SHARED;
	if (ptx_mod(p, "local"))
		return SP_LOCAL;
	if (ptx_mod(p, "param") || ptx_mod(p, "param::entry") || ptx_mod(p, "param::func"))
		return SP_PARAM;
	return SP_GENERIC;
}

/* The register with the address, the offset and flags; false if symbol and space do not belong together. */
static bool address(struct parser *p, const struct operand *o, enum ptx_space space, uint32_t *reg, int64_t *off, uint8_t *sub)
{
	static const enum ptx_symkind kinds[] = { SYM_GLOBAL, SYM_GLOBAL, SYM_SHARED, SYM_LOCAL, SYM_PARAM };

	if (!o->is_addr)
		return false;
	*sub = (uint8_t)(space << MEM_SPACE);
	*off = 0;
	switch (o->a.kind) {
	case A_REG:
		*reg = o->a.reg;
		*off = o->a.off;
		if (ptx_class_of(p, *reg) == CLS_W32 && space != SP_GENERIC && space != SP_GLOBAL)
			*sub |= MEM_ADDR32;
		else if (ptx_class_of(p, *reg) != CLS_W64)
			return false;
		return true;
	case A_SYM:
		if (o->a.sym.kind != kinds[space])
			return false;
		*reg = ptx_src(p, &o->a, TY_U64);
		return true;
	case A_INT:
		*reg = ptx_constant(p, CLS_W64, o->a.bits + (uint64_t)o->a.off, REL_NONE, 0);
		return true;
	default:
		return false;
	}
}

static int log2_of(uint32_t bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3; }

static bool d_ldst(struct parser *p)
{
	bool st = p->base[0] == 's';
	enum ptx_space space = space_of(p);
	enum ptx_type t;
	uint32_t n, r[5] = { 0 }, size, which = st ? 1 : 0;
	uint8_t cls = CLS_W16, sub;
	int64_t off;
	struct insn *in;
	int family;

	ordering(p);
	n = ptx_mod(p, "v2") ? 2 : ptx_mod(p, "v4") ? 4 : 1;
	t = ptx_last_type(p);
	if (t == TY_NONE || t == TY_PRED || p->nops != 2)
		return false;
	if (!address(p, &p->op[!which], space, &r[n], &off, &sub))
		return false;
	const struct operand *o = &p->op[which];

	if (o->is_addr || o->has_q || o->negate || (n > 1 && !o->is_vec) || (o->is_vec && o->n != n) || n > 4)
		return false;
	/* Values may be in registers wider than the type; all of a vector are alike. */
	cls = ptx_type_class(t);
	for (uint32_t i = 0; i < n; i++) {
		const struct value *v = o->is_vec ? &o->v[i] : &o->a;

		if (v->kind == A_REG && ptx_class_of(p, v->reg) != CLS_PRED && ptx_class_of(p, v->reg) > cls)
			cls = ptx_class_of(p, v->reg);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct value *v = o->is_vec ? &o->v[i] : &o->a;
		enum ptx_type as = cls == ptx_type_class(t) ? t : cls == CLS_W64 ? TY_B64 : TY_B32;

		if (!st && v->kind == A_SINK)
			r[i] = ptx_vreg(p, cls);
		else if (!st && v->kind != A_REG)
			return false;
		else
			r[i] = ptx_src(p, v, as);
	}
	size = ptx_type_bytes(t);
	if (!st && space == SP_PARAM && p->op[1].a.kind == A_SYM && !p->op[1].a.sym.in_frame) {
		const struct value *a = &p->op[1].a;
		uint64_t at = a->sym.off + (uint64_t)a->off;

		if (a->off < 0 || (uint64_t)a->off + size * n > a->sym.size || at % size)
			return false;
		in = ptx_op(p, OP_LD_KPARAM, (int)n, 0, r[0], r[1], r[2], r[3]);
		in->imm = (int64_t)at;
	} else {
		if (st && space == SP_PARAM && p->op[0].a.kind == A_SYM && !p->op[0].a.sym.in_frame)
			return false;
		family = space == SP_SHARED ? (st ? OP_STS_1 : OP_LDS_1) : space == SP_GLOBAL || space == SP_GENERIC ? (st ? OP_STG_1 : OP_LDG_1)
		       : st ? OP_STX_1 : OP_LDX_1;
		in = ptx_op(p, (enum ptx_op)(family + log2_of(size)), st ? 0 : (int)n, st ? (int)n + 1 : 1, r[0], r[1], r[2], r[3], r[4]);
		in->imm = off;
	}
	in->sub = (uint8_t)(sub | (ptx_type_signed(t) ? MEM_SIGNED : 0));
	in->size = (uint8_t)size;
	in->vec = (uint8_t)n;
	in->cls = cls;
	return true;
}

static bool d_atom(struct parser *p)
{
	static const char *const names[] = { "add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec" };
	bool red = p->base[0] == 'r';
	enum ptx_type t = ptx_last_type(p);
	enum ptx_space space = space_of(p);
	uint32_t a, d, b, c, k = red ? 0 : 1;
	int op = -1;
	uint8_t sub;
	int64_t off;
	struct insn *in;

	ordering(p);
	ptx_mod(p, "noftz");
	for (int i = 0; i < 10 && op < 0; i++)
		if (ptx_mod(p, names[i]))
			op = i;
	if (op < 0 || t == TY_NONE || ptx_type_bytes(t) == 1 || p->nops != k + 2u + (op == AT_CAS))
		return false;
	if (ptx_type_float(t) && op != AT_ADD)
		return false;
	if (ptx_type_class(t) == CLS_W16 && !ptx_type_float(t) && op != AT_CAS)
		return false;
	if ((op == AT_INC || op == AT_DEC) && t != TY_U32)
		return false;
	if (space == SP_LOCAL || space == SP_PARAM || !address(p, &p->op[k], space, &a, &off, &sub))
		return false;
	b = ptx_in(p, k + 1, t);
	c = op == AT_CAS ? ptx_in(p, k + 2, t) : b;
	d = red ? b : ptx_out(p, 0, t);
	in = red ? ptx_op(p, OP_ATOM, 0, 4, d, a, b, c) : ptx_op(p, OP_ATOM, 1, 3, d, a, b, c);
	in->o[4] = (uint32_t)op;
	in->o[5] = t;
	in->imm = off;
	in->sub = sub;
	in->size = (uint8_t)ptx_type_bytes(t);
	in->cls = ptx_type_class(t);
	in->vec = !red;
	return true;
}

/* Minima and maxima of floats, and lists of eight, are not simulated. */
static bool d_multimem(struct parser *p)
{
	static const char *const names[] = { "add", "min", "max", "and", "or", "xor" };
	uint32_t kind = ptx_mod(p, "ld_reduce") ? MM_REDUCE : ptx_mod(p, "st") ? MM_STORE : ptx_mod(p, "red") ? MM_ADD : MM_KIND;
	enum ptx_type t = ptx_last_type(p);
	enum ptx_space space = space_of(p);
	uint32_t n, r[4], a, which = kind == MM_REDUCE ? 0 : 1;
	int op = kind == MM_STORE ? AT_EXCH : -1;
	uint8_t sub;
	int64_t off;
	struct insn *in;

	ordering(p);
	for (int i = 0; i < 6 && op < 0; i++)
		if (ptx_mod(p, names[i]))
			op = i;
	bool acc = ptx_mod(p, "acc::f32");
	n = ptx_mod(p, "v2") ? 2 : ptx_mod(p, "v4") ? 4 : 1;
	if (kind == MM_KIND || op < 0 || t == TY_NONE || p->nops != 2 || (space != SP_GENERIC && space != SP_GLOBAL) || ptx_type_bytes(t) == 1 ||
	    ptx_type_bytes(t) * n > 16 || (ptx_type_float(t) && op != AT_ADD && op != AT_EXCH))
		return false;
	const struct operand *o = &p->op[which];

	if (o->is_addr || o->has_q || o->negate || o->is_vec != (n > 1) || (n > 1 && o->n != n) || !address(p, &p->op[!which], space, &a, &off, &sub))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct value *v = n > 1 ? &o->v[i] : &o->a;

		if (kind == MM_REDUCE && (v->kind != A_REG || ptx_class_of(p, v->reg) != ptx_type_class(t)))
			return false;
		r[i] = ptx_src(p, v, t);
	}
	if (kind == MM_REDUCE)
		in = n == 1 ? ptx_op(p, OP_MULTIMEM, 1, 1, r[0], a) : n == 2 ? ptx_op(p, OP_MULTIMEM, 2, 1, r[0], r[1], a)
		     : ptx_op(p, OP_MULTIMEM, 4, 1, r[0], r[1], r[2], r[3], a);
	else
		in = n == 1 ? ptx_op(p, OP_MULTIMEM, 0, 2, a, r[0]) : n == 2 ? ptx_op(p, OP_MULTIMEM, 0, 3, a, r[0], r[1])
		     : ptx_op(p, OP_MULTIMEM, 0, 5, a, r[0], r[1], r[2], r[3]);
	in->aux = kind | (uint32_t)op << MM_OP | (uint32_t)t << MM_TYPE | (acc ? MM_ACC32 : 0);
	in->imm = off;
	in->sub = sub;
	in->size = (uint8_t)ptx_type_bytes(t);
	in->cls = ptx_type_class(t);
	in->vec = (uint8_t)n;
	return true;
}

static bool d_cvta(struct parser *p)
{
	bool to = ptx_mod(p, "to");
	enum ptx_space s = space_of(p);
	enum ptx_op op;

	if (ptx_type_class(ptx_last_type(p)) != CLS_W64 || p->nops != 2)
		return false;
	switch (s) {
	case SP_GLOBAL: op = OP_MOV_W64; break;
	case SP_SHARED: op = to ? OP_TOSHARED : OP_FROMSHARED; break;
	case SP_LOCAL: op = to ? OP_TOLOCAL : OP_FROMLOCAL; break;
	case SP_PARAM: op = to ? OP_TOPARAM : OP_FROMPARAM; break;
	default: return false;
	}
	ptx_op(p, op, 1, 1, ptx_out(p, 0, TY_U64), ptx_in(p, 1, TY_U64));
	return true;
}

static bool d_isspacep(struct parser *p)
{
	bool is_const = ptx_mod(p, "const");
	enum ptx_space s = space_of(p);

	/* Constant variables live in device memory here; a generic address does not tell. */
	if (is_const || s == SP_GENERIC || p->nops != 2)
		return false;
	ptx_op(p, OP_ISSPACEP, 1, 1, ptx_out(p, 0, TY_PRED), ptx_in(p, 1, TY_U64))->sub = (uint8_t)s;
	return true;
}

/* A policy says how long lines stay in a cache; here it is a number that is never read. */
static bool d_createpolicy(struct parser *p)
{
	for (uint32_t i = 0; i < p->nmods; i++)
		p->mod_used[i] = true;
	ptx_op(p, OP_MOV_W64, 1, 1, ptx_out(p, 0, TY_B64), ptx_constant(p, CLS_W64, 1, REL_NONE, 0));
	return true;
}

static bool d_prefetch(struct parser *p)
{
	for (uint32_t i = 0; i < p->nmods; i++)
		p->mod_used[i] = true;
	ptx_emit(p, OP_NOP);
	return true;
}

const struct ptx_opcode ptx_mem_opcodes[] = {
	{ "ld", d_ldst }, { "st", d_ldst }, { "ldu", d_ldst }, { "atom", d_atom }, { "red", d_atom }, { "multimem", d_multimem },
	{ "cvta", d_cvta }, { "isspacep", d_isspacep }, { "prefetch", d_prefetch }, { "prefetchu", d_prefetch },
	{ "createpolicy", d_createpolicy }, { "applypriority", d_prefetch },
	{ NULL, NULL },
};
