/*
 * ptx_decode_control.c: branches, calls, barriers and warp-wide instructions to operations.
 *
 * In:  the statement in p. Out: emitted operations; false if the form is not supported.
 */
#include "ptx_parse.h"

static bool d_bra(struct parser *p)
{
	const struct operand *o = &p->op[0];

	ptx_mod(p, "uni");
	if (p->nops != 1 || o->is_addr || o->is_vec || o->has_q || o->negate)
		return false;
	if (o->a.kind != A_SYM || o->a.sym.kind != SYM_LABEL)
		ptx_die(p, "branch to an undeclared label %.*s", (int)(o->a.n < 80 ? o->a.n : 80), o->a.name ? o->a.name : "");
	if (!ptx_visible(p, o->a.sym.ref))
		ptx_die(p, "label %.*s lies in braces that the branch is outside of", (int)(o->a.n < 80 ? o->a.n : 80), o->a.name);
	ptx_branch(p, ptx_emit(p, OP_BRA), o->a.sym.ref);
	return true;
}

static bool d_brx(struct parser *p)
{
	const struct operand *o = &p->op[1];
	const struct target_list *l;
	struct insn *in;

	ptx_mod(p, "uni");
	if (!ptx_mod(p, "idx") || p->nops != 2 || o->a.kind != A_SYM || o->a.sym.kind != SYM_TARGETS)
		return false;
	l = &p->lists[o->a.sym.ref];
	in = ptx_op(p, OP_BRX, 0, 1, ptx_in(p, 0, TY_U32));
	in->aux = l->n;
	for (uint32_t i = 0; i < l->n; i++)
		ptx_branch(p, ptx_emit(p, OP_BRA), l->labels[i]);
	return true;
}

static bool d_ret(struct parser *p)
{
	ptx_mod(p, "uni");
	if (p->nops)
		return false;
	if (p->f->entry)
		ptx_emit(p, OP_EXIT);
	else
		ptx_op(p, OP_RET, 0, 1, p->f->ret_row);
	return true;
}

static bool d_exit(struct parser *p)
{
	ptx_emit(p, OP_EXIT);
	return p->nops == 0;
}

static bool d_trap(struct parser *p)
{
	ptx_emit(p, OP_TRAP);
	return p->nops == 0;
}

/* Parameters of one side of a call: "(a, b)" as frame slots. False for registers and constants. */
static bool call_list(struct parser *p, struct formal *list, uint32_t *n, uint32_t max)
{
	bool good = true;

	*n = 0;
	while (!ptx_is(p, ')')) {
		const struct sym *s = p->tok.kind == T_IDENT ? ptx_lookup(p, p->tok.s, p->tok.n) : NULL;

		if (!s || s->kind != SYM_PARAM || !s->in_frame || *n == max)
			good = false;
		else
			list[(*n)++] = (struct formal){ .offset = (uint32_t)s->off, .size = (uint32_t)s->size };
		if (p->tok.kind == T_END)
			ptx_die(p, "')' missing");
		ptx_next(p);
		if (!ptx_accept(p, ','))
			break;
	}
	return ptx_accept(p, ')') && good;
}

static void arguments(struct parser *p, const struct func *f, const struct formal *in, uint32_t nin, const struct formal *out, uint32_t nout)
{
	if (f->register_formals)
		return;
	if (nin != f->nin || nout != f->nout)
		ptx_refuse(p, "%s has %u parameters and %u results", f->name, f->nin, f->nout);
	for (uint32_t i = 0; i < nin; i++)
		if (in[i].size != f->in[i].size)
			ptx_refuse(p, "parameter %u of %s has %u bytes", i + 1, f->name, f->in[i].size);
	for (uint32_t i = 0; i < nout; i++)
		if (out[i].size != f->out[i].size)
			ptx_refuse(p, "result %u of %s has %u bytes", i + 1, f->name, f->out[i].size);
}

/* "call (ret), name, (args)": copies between the frames of caller and callee around the jump; ptx_link completes them. */
bool ptx_call(struct parser *p)
{
	struct formal in[64], out[4];
	uint32_t nin = 0, nout = 0, callee;
	const struct sym *s;
	struct insn *c;

	ptx_mod(p, "uni");
	if (ptx_accept(p, '(')) {
		if (!call_list(p, out, &nout, 4) || !ptx_accept(p, ','))
			return false;
	}
	s = p->tok.kind == T_IDENT ? ptx_lookup(p, p->tok.s, p->tok.n) : NULL;
	if (!s && p->tok.kind == T_IDENT)
		ptx_refuse(p, "undeclared function %.*s", (int)(p->tok.n < 80 ? p->tok.n : 80), p->tok.s);
	if (s && s->kind != SYM_FUNC && s->kind != SYM_REG)
		ptx_refuse(p, "%.*s is no function", (int)(p->tok.n < 80 ? p->tok.n : 80), p->tok.s);
	if (s && s->kind == SYM_FUNC && p->m->funcs[s->ref]->entry)
		ptx_refuse(p, "%s is a kernel", p->m->funcs[s->ref]->name);
	if (!s || s->kind != SYM_FUNC || p->nmods > 1 || (p->nmods == 1 && !p->mod_used[0]))
		return false;
	callee = s->ref;
	ptx_next(p);
	if (ptx_accept(p, ',')) {
		if (!ptx_accept(p, '(') || !call_list(p, in, &nin, 64) || ptx_accept(p, ','))
			return false;
	}
	if (!ptx_is(p, ';'))
		return false;
	arguments(p, p->m->funcs[callee], in, nin, out, nout);
	for (uint32_t i = 0; i < nin; i++) {
		c = ptx_emit(p, OP_COPY_FRAME);
		c->o[1] = in[i].offset;
		c->o[2] = callee;
		c->o[3] = i;
		c->imm = in[i].size;
	}
	c = ptx_emit(p, OP_CALL);
	c->aux = callee;
	c->o[2] = nin;
	c->o[3] = nout;
	ptx_new_block(p);
	for (uint32_t i = 0; i < nout; i++) {
		c = ptx_emit(p, OP_COPY_FRAME);
		c->o[0] = out[i].offset;
		c->o[2] = callee;
		c->o[3] = i;
		c->imm = out[i].size;
		c->sub = 1;
	}
	return true;
}

static bool d_call(struct parser *p) { (void)p; return false; }

static bool d_bar(struct parser *p)
{
	uint32_t k = 0, d, id, count, pred;
	bool red, has_count;
	enum ptx_barrier_kind kind;
	struct insn *in;

	if (ptx_mod(p, "warp")) {
		if (!ptx_mod(p, "sync") || p->nops != 1)
			return false;
		ptx_op(p, OP_BAR_WARP, 0, 1, ptx_in(p, 0, TY_U32));
		return true;
	}
	ptx_mod(p, "cta");
	ptx_mod(p, "aligned");
	red = ptx_mod(p, "red");
	kind = red ? (ptx_mod(p, "popc") ? BAR_POPC : ptx_mod(p, "and") ? BAR_AND : ptx_mod(p, "or") ? BAR_OR : BAR_SYNC)
	     : ptx_mod(p, "arrive") ? BAR_ARRIVE : BAR_SYNC;
	if (kind == BAR_SYNC && (red || !ptx_mod(p, "sync")))
		return false;
	d = ptx_vreg(p, CLS_W32);
	if (red) {
		enum ptx_type t = ptx_last_type(p);

		if (t != (kind == BAR_POPC ? TY_U32 : TY_PRED))
			return false;
		d = ptx_out(p, k++, t);
	}
	id = ptx_in(p, k++, TY_U32);
	has_count = p->nops == k + 1 + red;
	count = has_count ? ptx_in(p, k++, TY_U32) : id;
	pred = red ? ptx_pred_in(p, k++) : ptx_constant(p, CLS_PRED, 1, REL_NONE, 0);
	if (p->nops != k || (kind == BAR_ARRIVE && !has_count))
		return false;
	in = ptx_op(p, OP_BAR, 1, 3, d, id, count, pred);
	in->sub = (uint8_t)kind;
	in->aux = (has_count ? BAR_HAS_COUNT : 0) | (red && p->op[k - 1].negate ? BAR_NOT : 0);
	return true;
}

static bool d_shfl(struct parser *p)
{
	static const char *const modes[] = { "up", "down", "bfly", "idx" };
	uint32_t d, q;

	if (!ptx_mod(p, "sync") || ptx_last_type(p) != TY_B32 || p->nops != 5)
		return false;
	for (int i = 0; i < 4; i++)
		if (ptx_mod(p, modes[i])) {
			d = ptx_out(p, 0, TY_B32);
			q = p->op[0].has_q && p->op[0].q.kind != A_SINK ? ptx_src(p, &p->op[0].q, TY_PRED) : ptx_vreg(p, CLS_PRED);
			ptx_op(p, OP_SHFL, 2, 4, d, q, ptx_in(p, 1, TY_B32), ptx_in(p, 2, TY_U32), ptx_in(p, 3, TY_U32), ptx_in(p, 4, TY_U32))->sub = (uint8_t)i;
			return true;
		}
	return false;
}

static bool d_vote(struct parser *p)
{
	static const char *const modes[] = { "all", "any", "uni", "ballot" };
	struct insn *in;

	if (!ptx_mod(p, "sync") || p->nops != 3)
		return false;
	for (int i = 0; i < 4; i++)
		if (ptx_mod(p, modes[i])) {
			enum ptx_type t = ptx_last_type(p);

			if (t != (i == VOTE_BALLOT ? TY_B32 : TY_PRED))
				return false;
			in = ptx_op(p, OP_VOTE, 1, 2, ptx_out(p, 0, t), ptx_pred_in(p, 1), ptx_in(p, 2, TY_U32));
			in->sub = (uint8_t)i;
			in->aux = p->op[1].negate;
			return true;
		}
	return false;
}

static bool d_match(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	bool all = ptx_mod(p, "all");
	struct insn *in;
	uint32_t d, q;

	if ((!all && !ptx_mod(p, "any")) || !ptx_mod(p, "sync") || p->nops != 3 || (t != TY_B32 && t != TY_B64))
		return false;
	d = ptx_out(p, 0, TY_B32);
	q = p->op[0].has_q && p->op[0].q.kind != A_SINK ? ptx_src(p, &p->op[0].q, TY_PRED) : ptx_vreg(p, CLS_PRED);
	in = ptx_op(p, OP_MATCH, 2, 2, d, q, ptx_in(p, 1, t), ptx_in(p, 2, TY_U32));
	in->cls = ptx_type_class(t);
	in->sub = all;
	return true;
}

static bool d_redux(struct parser *p)
{
	enum ptx_type t = ptx_last_type(p);
	bool sg = t == TY_S32;
	int op = ptx_mod(p, "add") ? RX_ADD : ptx_mod(p, "min") ? (sg ? RX_MIN_S : RX_MIN_U) : ptx_mod(p, "max") ? (sg ? RX_MAX_S : RX_MAX_U)
	       : ptx_mod(p, "and") ? RX_AND : ptx_mod(p, "or") ? RX_OR : ptx_mod(p, "xor") ? RX_XOR : -1;

	if (op < 0 || !ptx_mod(p, "sync") || p->nops != 3 || ptx_type_class(t) != CLS_W32 || ptx_type_float(t))
		return false;
	ptx_op(p, OP_REDUX, 1, 2, ptx_out(p, 0, t), ptx_in(p, 1, t), ptx_in(p, 2, TY_U32))->sub = (uint8_t)op;
	return true;
}

static bool d_elect(struct parser *p)
{
	if (!ptx_mod(p, "sync") || p->nops != 2 || !p->op[0].has_q)
		return false;
	ptx_op(p, OP_ELECT, 2, 1, ptx_out(p, 0, TY_B32), ptx_src(p, &p->op[0].q, TY_PRED), ptx_in(p, 1, TY_U32));
	return true;
}

static bool d_activemask(struct parser *p)
{
	if (ptx_last_type(p) != TY_B32 || p->nops != 1)
		return false;
	ptx_op(p, OP_SYNC_MASK, 1, 0, ptx_out(p, 0, TY_B32));
	return true;
}

static bool d_nanosleep(struct parser *p)
{
	if (ptx_last_type(p) != TY_U32 || p->nops != 1)
		return false;
	ptx_op(p, OP_NANOSLEEP, 0, 1, ptx_in(p, 0, TY_U32));
	return true;
}

/* Ordering needs no operation: lanes access memory in program order. */
static bool d_nothing(struct parser *p)
{
	for (uint32_t i = 0; i < p->nmods; i++)
		p->mod_used[i] = true;
	ptx_emit(p, OP_NOP);
	return true;
}

const struct ptx_opcode ptx_control_opcodes[] = {
	{ "bra", d_bra }, { "brx", d_brx }, { "call", d_call }, { "ret", d_ret }, { "exit", d_exit }, { "trap", d_trap }, { "brkpt", d_trap },
	{ "bar", d_bar }, { "barrier", d_bar }, { "shfl", d_shfl }, { "vote", d_vote }, { "match", d_match }, { "redux", d_redux },
	{ "elect", d_elect }, { "activemask", d_activemask }, { "membar", d_nothing }, { "fence", d_nothing }, { "nanosleep", d_nanosleep },
	{ NULL, NULL },
};
