/*
 * ptx_decode_matrix.c: asynchronous copies and operations on matrices of a warp.
 *
 * In:  the statement in p. Out: emitted operations; false if the form is not supported.
 */
#include "ptx_parse.h"

static bool copy_address(struct parser *p, uint32_t i, uint32_t *reg, int64_t *off, uint8_t *sub)
{
	const struct operand *o = &p->op[i];

	*off = 0;
	if (o->a.kind == A_SYM) {
		*reg = ptx_src(p, &o->a, TY_U64);
		return true;
	}
	*reg = o->a.reg;
	*off = o->a.off;
	if (ptx_class_of(p, *reg) == CLS_W32)
		*sub |= MEM_ADDR32;
	return true;
}

static bool copy(struct parser *p)
{
	static const char *const understood[] = { "ca", "cg", "shared", "shared::cta", "global", "L2::64B", "L2::128B", "L2::256B" };
	uint32_t n = p->nops - ptx_mod(p, "L2::cache_hint"), to, from, given;
	int64_t to_off, from_off;
	uint8_t sub = 0, ignored = 0, cls = CLS_W32;
	struct insn *in;

	for (size_t i = 0; i < sizeof understood / sizeof *understood; i++)
		ptx_mod(p, understood[i]);
	if (!copy_address(p, 0, &to, &to_off, &sub) || !copy_address(p, 1, &from, &from_off, &ignored) || to_off < 0 || to_off > INT32_MAX)
		return false;
	if (n == 3) {
		given = ptx_in(p, 2, TY_U32);
	} else if (p->op[3].a.kind == A_REG && ptx_class_of(p, p->op[3].a.reg) == CLS_PRED) {
		given = p->op[3].a.reg;
		cls = CLS_PRED;
	} else {
		given = ptx_in(p, 3, TY_U32);
	}
	in = ptx_op(p, OP_ASYNC_COPY, 0, 3, to, from, given);
	in->o[3] = (uint32_t)to_off;
	in->imm = from_off;
	in->size = (uint8_t)p->op[2].a.bits;
	in->cls = cls;
	in->sub = sub;
	return true;
}

static bool d_cp(struct parser *p)
{
	struct insn *in;

	if (!ptx_mod(p, "async"))
		return false;
	if (ptx_mod(p, "commit_group")) {
		ptx_emit(p, OP_ASYNC_COMMIT);
		return true;
	}
	if (ptx_mod(p, "wait_all")) {
		ptx_emit(p, OP_ASYNC_WAIT)->sub = 1;
		return true;
	}
	if (ptx_mod(p, "wait_group")) {
		in = ptx_emit(p, OP_ASYNC_WAIT);
		in->imm = (int64_t)(p->op[0].a.bits & INT32_MAX);
		return true;
	}
	return p->nops >= 3 && copy(p);
}

/* The registers of a list. */
static bool list(struct parser *p, uint32_t i, enum ptx_type t, uint32_t *r)
{
	const struct operand *o = &p->op[i];

	for (uint32_t k = 0; k < o->n; k++)
		r[k] = ptx_src(p, &o->v[k], t);
	return o->is_vec && o->n <= 4;
}

static bool d_rows(struct parser *p)
{
	bool load = p->base[0] == 'l', trans = ptx_mod(p, "trans"), generic;
	static const char *const understood[] = { "sync", "aligned", "m8n8", "x1", "x2", "x4", "b16" };
	const struct operand *o = &p->op[!load];
	uint32_t r[4], address;
	uint8_t sub = 0;
	int64_t off;
	struct insn *in;

	for (size_t i = 0; i < sizeof understood / sizeof *understood; i++)
		ptx_mod(p, understood[i]);
	generic = !ptx_mod(p, "shared") && !ptx_mod(p, "shared::cta");
	if (p->nops != 2 || !copy_address(p, load, &address, &off, &sub) || !list(p, !load, TY_B32, r) || (o->n != 1 && o->n != 2 && o->n != 4))
		return false;
	in = ptx_emit(p, load ? OP_LDMATRIX : OP_STMATRIX);
	in->ndef = load ? (uint8_t)o->n : 0;
	in->nuse = load ? 1 : (uint8_t)(o->n + 1);
	for (uint32_t k = 0; k < o->n; k++)
		in->o[k + !load] = r[k];
	in->o[load ? o->n : 0] = address;
	in->vec = (uint8_t)o->n;
	in->sub = (uint8_t)(sub | (generic ? SP_GENERIC : SP_SHARED) << MEM_SPACE);
	in->imm = off;
	in->aux = trans;
	return true;
}

static const struct { const char *name; enum ptx_matrix_type t; } matrix_types[] = {
	{ "bf16", MX_BF16 }, { "f16", MX_F16 }, { "tf32", MX_TF32 }, { "s8", MX_S8 }, { "u8", MX_U8 }, { "e4m3", MX_E4M3 }, { "e5m2", MX_E5M2 },
};

/* The type that modifier i from the end names; false if it is of no matrix here. */
static bool matrix_type(const struct parser *p, uint32_t i, enum ptx_matrix_type *t)
{
	for (size_t k = 0; k < sizeof matrix_types / sizeof *matrix_types; k++)
		if (p->nmods > i && !strcmp(p->mod[p->nmods - 1 - i], matrix_types[k].name)) {
			*t = matrix_types[k].t;
			return true;
		}
	return false;
}

/* Three operations: the registers of A and B, those of C, and the product, which reads the operands of those before it. */
static bool d_mma(struct parser *p)
{
	static const struct { const char *name; uint8_t k; } shapes[] = { { "m16n8k8", 8 }, { "m16n8k16", 16 }, { "m16n8k32", 32 }, { "m16n8k4", 4 } };
	uint32_t a[4], b[4], c[4], d[4], k = 0;
	enum ptx_matrix_type ta, tb;
	const char *result = p->nmods > 4 ? p->mod[p->nmods - 4] : "";
	bool half = !strcmp(result, "f16"), satfinite = ptx_mod(p, "satfinite");
	enum ptx_type t = !strcmp(result, "f32") ? TY_F32 : TY_B32;
	struct insn *in;

	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		if (ptx_mod(p, shapes[i].name))
			k = shapes[i].k;
	if (!k || p->nops != 4 || !matrix_type(p, 2, &ta) || !matrix_type(p, 1, &tb) || (!half && t != TY_F32 && strcmp(result, "s32")))
		return false;
	if (!list(p, 0, t, d) || !list(p, 1, TY_B32, a) || !list(p, 2, TY_B32, b) || !list(p, 3, t, c) || p->op[1].n + p->op[2].n > 6)
		return false;
	for (uint32_t i = 0; i < p->nmods; i++)
		p->mod_used[i] = true;
	in = ptx_emit(p, OP_MMA_OPERANDS);
	in->nuse = (uint8_t)(p->op[1].n + p->op[2].n);
	in->vec = (uint8_t)p->op[1].n;
	memcpy(in->o, a, p->op[1].n * sizeof *a);
	memcpy(in->o + p->op[1].n, b, p->op[2].n * sizeof *b);
	in = ptx_emit(p, OP_MMA_OPERANDS);
	in->nuse = (uint8_t)p->op[3].n;
	memcpy(in->o, c, p->op[3].n * sizeof *c);
	in = ptx_emit(p, OP_MMA);
	in->ndef = (uint8_t)p->op[0].n;
	memcpy(in->o, d, p->op[0].n * sizeof *d);
	in->size = (uint8_t)k;
	in->sub = (uint8_t)ta;
	in->vec = (uint8_t)tb;
	in->cls = half ? CLS_W16 : CLS_W32;
	in->aux = satfinite;
	return true;
}

const struct ptx_opcode ptx_matrix_opcodes[] = {
	{ "cp", d_cp }, { "ldmatrix", d_rows }, { "stmatrix", d_rows }, { "mma", d_mma }, { NULL, NULL },
};
