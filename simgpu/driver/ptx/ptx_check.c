/*
 * ptx_check.c: refuses an instruction that PTX does not have.
 *
 * In:  the statement in p, its operands read or not. Out: none.
 * Fails: with the line, the instruction and the cause, as an assembler does: an unknown name, modifiers or types that no form
 *        has, operands that do not fit the form, a form that needs a later .version or .target. An instruction that is
 *        right and yet not simulated passes; its decoder makes it fault when it is reached.
 */
#include "ptx_parse.h"

#include <stdio.h>

enum ptx_kind { K_NONE, K_BITS, K_INT, K_FLOAT, K_PRED };

struct match {
	struct parser *p;
	enum ptx_type t, u;
	uint32_t vec;   /* .v2, .v4, .v8; else 0 */
	uint32_t nops;  /* without the policy of .L2::cache_hint */
};

_Noreturn void ptx_refuse(struct parser *p, const char *fmt, ...)
{
	char cause[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cause, sizeof cause, fmt, ap);
	va_end(ap);
	p->tok.line = p->stmt_line;
	ptx_die(p, "%s: %s", p->text, cause);
}

static bool in_list(const char *list, char separator, const char *word, size_t n)
{
	while (*list) {
		size_t k = strcspn(list, separator == ' ' ? " " : "|? ");

		if (k == n && !memcmp(list, word, n))
			return true;
		list += k;
		if (*list != separator)
			return false;
		list++;
	}
	return false;
}

/* ---- modifiers ---- */

/* One group of a form: the modifier that it takes, or -1. */
static int take(const struct parser *p, const char *group, const bool *used)
{
	for (uint32_t i = 0; i < p->nmods; i++)
		if (!used[i] && in_list(group, '|', p->mod[i], strlen(p->mod[i])))
			return (int)i;
	return -1;
}

static bool modifiers_fit(struct match *m, const struct ptx_form *f)
{
	const struct parser *p = m->p;
	bool used[PTX_MAX_MODS] = { false };
	uint32_t left = p->nmods;

	m->t = m->u = TY_NONE;
	m->vec = 0;
	if (*f->types) {
		uint32_t i = p->nmods;

		/* The last modifier that is a type of this form or any other. */
		for (; i > 0 && !in_list(f->types, ' ', p->mod[i - 1], strlen(p->mod[i - 1])); i--)
			if (ptx_type_of(p->mod[i - 1], strlen(p->mod[i - 1])) != TY_NONE)
				return false;
		if (i == 0)
			return false;
		used[i - 1] = true;
		left--;
		m->t = ptx_type_of(p->mod[i - 1], strlen(p->mod[i - 1]));
	}
	for (const char *g = f->mods; *g;) {
		size_t n = strcspn(g, " ");
		bool typed = *g == '%';
		int i = take(p, g + typed, used);

		if (i < 0 && g[n - 1] != '?')
			return false;
		if (i >= 0) {
			used[i] = true;
			left--;
			if (typed)
				m->u = ptx_type_of(p->mod[i], strlen(p->mod[i]));
			if (p->mod[i][0] == 'v' && p->mod[i][1] >= '2' && p->mod[i][1] <= '8' && !p->mod[i][2])
				m->vec = (uint32_t)(p->mod[i][1] - '0');
		}
		g += n;
		g += *g == ' ';
	}
	return left == 0;
}

/* ---- operands ---- */

static enum ptx_kind kind_of(enum ptx_type t)
{
	switch (t) {
	case TY_NONE: return K_NONE;
	case TY_PRED: return K_PRED;
	case TY_B8: case TY_B16: case TY_B32: case TY_B64: return K_BITS;
	default: return ptx_type_float(t) ? K_FLOAT : K_INT;
	}
}

/* Whether a register of type r fits an instruction of type t. Types of bits agree with all of their width. */
static bool agrees(enum ptx_type r, enum ptx_type t, bool wider)
{
	enum ptx_kind a = kind_of(r), b = kind_of(t);
	uint32_t n = ptx_type_bytes(r), want = ptx_type_bytes(t);

	if (a == K_PRED || b == K_PRED || a == K_NONE)
		return a == b;
	if (b == K_NONE)
		return true;
	if (n != want && !(wider && n > want))
		return false;
	if (a == K_FLOAT && b == K_FLOAT)
		return r == t;
	return a == K_BITS || b == K_BITS || a == b;
}

static bool constant_fits(const struct value *v, enum ptx_type t)
{
	enum ptx_kind k = kind_of(t);

	if (v->kind == A_INT || (v->kind == A_NAME && v->n == 7 && !memcmp(v->name, "WARP_SZ", 7)))
		return k == K_INT || k == K_BITS || k == K_NONE;
	if (v->kind != A_F32 && v->kind != A_F64)
		return false;
	if (k == K_BITS)
		return ptx_type_bytes(t) == (v->kind == A_F32 ? 4 : 8);
	return t == TY_F32 || t == TY_F64 || k == K_NONE;
}

static bool plain(const struct operand *o) { return !o->is_addr && !o->is_vec && !o->has_q && !o->negate; }

static bool value_fits(const struct value *v, enum ptx_type t, bool wider)
{
	return v->kind == A_REG ? v->off == 0 && agrees(v->type, t, wider) : constant_fits(v, t);
}

static bool source(const struct operand *o, enum ptx_type t, bool wider) { return plain(o) && value_fits(&o->a, t, wider); }
static bool destination(const struct operand *o, enum ptx_type t, bool wider)
{
	return plain(o) && o->a.kind == A_REG && o->a.off == 0 && agrees(o->a.type, t, wider);
}
static bool predicate(const struct value *v, bool sink) { return (v->kind == A_REG && v->type == TY_PRED) || (sink && v->kind == A_SINK); }

static bool with_predicate(const struct operand *o, enum ptx_type t, bool must)
{
	if (o->is_addr || o->is_vec || o->negate || (must && !o->has_q) || (o->has_q && !predicate(&o->q, true)))
		return false;
	return (must && o->a.kind == A_SINK) || (o->a.kind == A_REG && agrees(o->a.type, t, false));
}

static bool special(const struct match *m, const struct operand *o, enum ptx_type t)
{
	uint32_t widths = o->a.kind == A_NAME && plain(o) ? ptx_special(m->p, o->a.name, o->a.n) : 0;

	return widths & ptx_type_bytes(t) && kind_of(t) != K_FLOAT;
}

static bool list(const struct operand *o, uint32_t n, enum ptx_type t, bool wider, bool store, bool same)
{
	const struct value *first = NULL;

	if (!o->is_vec || o->n != n || o->negate)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct value *v = &o->v[i];

		if (v->kind == A_SINK ? store : !(v->kind == A_REG ? v->off == 0 && agrees(v->type, t, wider) : store && constant_fits(v, t)))
			return false;
		if (v->kind != A_REG)
			continue;
		if (first && same && !agrees(v->type, first->type, false))
			return false;
		first = v;
	}
	return first || store;
}

static bool transfer(const struct match *m, const struct operand *o, bool store)
{
	if (m->vec || o->is_vec)
		return list(o, m->vec ? m->vec : 1, m->t, true, store, false);
	return store ? source(o, m->t, true) : destination(o, m->t, true);
}

/* Constant memory is a space of its own in PTX, and device memory in the simulated GPU. */
enum { SP_CONST = SP_PARAM + 1 };

static int space_named(const char *mod)
{
	static const struct { const char *name; int space; } spaces[] = {
		{ "global", SP_GLOBAL }, { "const", SP_CONST }, { "local", SP_LOCAL }, { "shared", SP_SHARED }, { "shared::cta", SP_SHARED },
		{ "shared::cluster", SP_SHARED }, { "param", SP_PARAM }, { "param::entry", SP_PARAM }, { "param::func", SP_PARAM },
	};

	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
		if (!strcmp(mod, spaces[i].name))
			return spaces[i].space;
	return SP_GENERIC;
}

static bool address(const struct match *m, const struct operand *o)
{
	const struct parser *p = m->p;
	int space = !strcmp(p->base, "ldmatrix") || !strcmp(p->base, "stmatrix") ? SP_SHARED : SP_GENERIC;

	if (!o->is_addr)
		return false;
	/* The first space named: cp.async has the destination's first and sources in global memory only. */
	for (uint32_t i = 0; i < p->nmods && space == SP_GENERIC; i++)
		space = space_named(p->mod[i]);
	if (!strcmp(p->base, "cp") && o != &p->op[0])
		space = SP_GLOBAL;
	if (o->a.kind == A_REG) {
		enum ptx_kind k = kind_of(o->a.type);
		uint32_t n = ptx_type_bytes(o->a.type);

		return (k == K_INT || k == K_BITS) && (n == 8 || (n == 4 && space != SP_GENERIC && space != SP_GLOBAL));
	}
	if (o->a.kind == A_INT)
		return space == SP_LOCAL;
	if (o->a.kind != A_SYM)
		return false;
	switch (o->a.sym.kind) {
	case SYM_GLOBAL: return space == SP_GENERIC || space == (o->a.sym.is_const ? SP_CONST : SP_GLOBAL);
	case SYM_SHARED: return space == SP_GENERIC || space == SP_SHARED;
	case SYM_LOCAL: return space == SP_GENERIC || space == SP_LOCAL;
	/* Parameters of kernels are read only. */
	case SYM_PARAM: return space == SP_PARAM && (o->a.sym.in_frame || p->base[0] != 's');
	default: return false;
	}
}

/* The type of one of n parts of a register of bits; TY_PRED, which no list holds, if there is none. */
static enum ptx_type part(enum ptx_type t, uint32_t n)
{
	static const enum ptx_type bits[] = { TY_PRED, TY_B8, TY_B16, TY_PRED, TY_B32, TY_PRED, TY_PRED, TY_PRED, TY_B64 };

	return kind_of(t) == K_BITS && n && ptx_type_bytes(t) % n == 0 ? bits[ptx_type_bytes(t) / n] : TY_PRED;
}

static bool move(const struct match *m, const struct operand *o)
{
	uint32_t n = ptx_type_bytes(m->t);

	if (o->is_vec && !m->vec)
		return list(o, o->n, part(m->t, o->n), false, true, true);
	if (m->vec)
		return o->is_vec ? list(o, m->vec, m->t, false, true, false) : plain(o) && o->a.kind == A_NAME;
	if (plain(o) && o->a.kind == A_SYM)
		return n == 8 && kind_of(m->t) != K_FLOAT ? (o->a.sym.kind != SYM_LABEL && o->a.sym.kind != SYM_TARGETS && (o->a.sym.kind != SYM_PARAM || !o->a.sym.call))
		                                          : n == 4 && kind_of(m->t) != K_FLOAT && (o->a.sym.kind == SYM_SHARED || o->a.sym.kind == SYM_LOCAL);
	return special(m, o, m->t) || (plain(o) && o->a.kind == A_REG ? agrees(o->a.type, m->t, false) : source(o, m->t, false));
}

static bool moved(const struct match *m, const struct operand *o)
{
	if (m->vec)
		return list(o, m->vec, m->t, false, false, false);
	if (o->is_vec)
		return list(o, o->n, part(m->t, o->n), false, false, true);
	return destination(o, m->t, false);
}

static enum ptx_type twice(enum ptx_type t)
{
	return t == TY_U16 ? TY_U32 : t == TY_S16 ? TY_S32 : t == TY_U32 ? TY_U64 : TY_S64;
}

static bool operand_fits(const struct match *m, char kind, char count, const struct operand *o)
{
	switch (kind) {
	case 'd': return destination(o, m->t, false) || (o->a.kind == A_SINK && plain(o) && !strcmp(m->p->base, "atom"));
	case 't': return source(o, m->t, false);
	case 'D': return destination(o, m->u, false);
	case 's': return source(o, m->u, false);
	case 'W': return destination(o, twice(m->t), false);
	case 'w': return source(o, twice(m->t), false);
	case 'X': return destination(o, m->u, true);
	case 'S': return source(o, m->t, true) || special(m, o, m->t);
	case 'v': return transfer(m, o, false);
	case 'V': return transfer(m, o, true);
	case 'h': return destination(o, TY_U32, false);
	case 'u': return source(o, TY_U32, false);
	case 'y': case 'c': return source(o, TY_U64, false);
	case 'P': return plain(o) && predicate(&o->a, true);
	case 'Q': return !o->is_addr && !o->is_vec && !o->negate && predicate(&o->a, true) && (!o->has_q || predicate(&o->q, true));
	case 'p': return !o->is_addr && !o->is_vec && !o->has_q && (predicate(&o->a, false) || o->a.kind == A_INT);
	case 'q': return with_predicate(o, m->t, false);
	case 'H': return with_predicate(o, TY_U32, false);
	case 'E': return with_predicate(o, TY_U32, true);
	case 'm': return address(m, o);
	case 'i': return plain(o) && o->a.kind == A_INT;
	case 'l': return plain(o) && o->a.kind == A_SYM && o->a.sym.kind == SYM_LABEL;
	case 'j': return plain(o) && o->a.kind == A_SYM && o->a.sym.kind == SYM_TARGETS;
	case 'M': return move(m, o);
	case 'N': return moved(m, o);
	case 'o': return source(o, TY_U32, false) || (plain(o) && predicate(&o->a, false));
	case 'F': return list(o, (uint32_t)(count - '0'), TY_F32, false, true, false);
	case 'B': return list(o, (uint32_t)(count - '0'), TY_B32, false, true, false);
	case 'G': return list(o, (uint32_t)(count - '0'), TY_F64, false, true, false);
	default: return false;
	}
}

/* 0 if the operands fit, else the number of the first that does not, from 1; one more than there are if some are missing. */
static uint32_t first_misfit(struct match *m, const struct ptx_form *f)
{
	struct parser *p = m->p;
	uint32_t i = 0;

	for (const char *c = f->operands; *c; c++) {
		char count = strchr("FBG", *c) ? c[1] : 0;
		char kind = *c;

		if (kind == '*')
			return 0;
		c += count != 0;
		if (i == m->nops && c[1] == '?') {
			c++;
			continue;
		}
		/* The sources of mad.wide: two of T, and one of twice its width. */
		if (i == m->nops || !operand_fits(m, kind == 'W' && i ? 'w' : kind, count, &p->op[i]))
			return i + 1;
		i++;
		c += c[1] == '?';
	}
	return i == m->nops ? 0 : i + 1;
}

/* ---- values ---- */

static bool has_mod(const struct parser *p, const char *name)
{
	for (uint32_t i = 0; i < p->nmods; i++)
		if (!strcmp(p->mod[i], name))
			return true;
	return false;
}

static bool is_constant(const struct parser *p, uint32_t i) { return i < p->nops && plain(&p->op[i]) && p->op[i].a.kind == A_INT; }

static void barrier_constants(struct parser *p)
{
	uint32_t id = has_mod(p, "red");

	if (is_constant(p, id) && p->op[id].a.bits > 15)
		ptx_refuse(p, "barriers are numbered 0 to 15");
	if (is_constant(p, id + 1) && p->op[id + 1].a.bits % 32)
		ptx_refuse(p, "a barrier's number of threads is a multiple of 32");
}

static void copy_constants(struct parser *p)
{
	uint64_t n = p->op[2].a.bits;

	if (has_mod(p, "cg") && n != 16)
		ptx_refuse(p, "copies with .cg are of 16 bytes");
	if (n != 4 && n != 8 && n != 16)
		ptx_refuse(p, "copies are of 4, 8 or 16 bytes");
}

static void matrix_layouts(struct parser *p)
{
	bool col = false;

	for (uint32_t i = 0; i < p->nmods; i++) {
		col |= !strcmp(p->mod[i], "col");
		if (col && !strcmp(p->mod[i], "row"))
			ptx_refuse(p, "the first matrix lies in rows, the second in columns");
	}
}

/* Checks beyond modifiers and kinds of operands: constants, layouts of matrices, sizes of vectors. */
static void values(const struct match *m)
{
	struct parser *p = m->p;

	if ((!strcmp(p->base, "bar") || !strcmp(p->base, "barrier")) && !has_mod(p, "warp") && !has_mod(p, "cluster"))
		barrier_constants(p);
	if (!strcmp(p->base, "cp") && p->nops >= 3)
		copy_constants(p);
	if (!strcmp(p->base, "mma"))
		matrix_layouts(p);
	if (m->vec * ptx_type_bytes(m->t) > 16 && (p->version < 88 || p->target < 100))
		ptx_refuse(p, "a vector has more than 16 bytes");
}

/* A target of ptx_forms.c above this is one with the suffix "a". */
enum { SPECIFIC = 1000 };

static bool has_target(const struct parser *p, uint32_t target)
{
	return p->target >= target % SPECIFIC && (target < SPECIFIC || p->specific);
}

static void needs(struct parser *p, uint32_t version, uint32_t target)
{
	if (p->version < version)
		ptx_refuse(p, "needs .version %u.%u", version / 10, version % 10);
	if (!has_target(p, target))
		ptx_refuse(p, "needs .target sm_%u%s", target % SPECIFIC, target > SPECIFIC ? "a" : "");
}

bool ptx_is_unchecked(struct parser *p)
{
	for (const struct ptx_form *f = ptx_unchecked; f->names; f++) {
		if (!in_list(f->names, ' ', p->base, strlen(p->base)))
			continue;
		for (uint32_t i = 0; f->mods && i < p->nmods; i++)
			if (in_list(f->mods, '|', p->mod[i], strlen(p->mod[i]))) {
				needs(p, f->version, f->target);
				return true;
			}
		if (!f->mods) {
			needs(p, f->version, f->target);
			return true;
		}
	}
	return false;
}

static void undeclared(struct parser *p, const struct value *v)
{
	if (v->kind == A_NAME && !ptx_special(p, v->name, v->n) && strncmp(v->name, "WARP_SZ", v->n)) {
		p->tok.line = p->stmt_line;
		ptx_die(p, "undeclared %s %.*s", strcmp(p->base, "bra") ? "name" : "label", (int)(v->n < 80 ? v->n : 80), v->name);
	}
}

static void names(struct parser *p)
{
	for (uint32_t i = 0; i < p->nops; i++) {
		undeclared(p, &p->op[i].a);
		undeclared(p, &p->op[i].q);
		for (uint32_t k = 0; k < p->op[i].n; k++)
			undeclared(p, &p->op[i].v[k]);
	}
}

void ptx_check(struct parser *p, bool read)
{
	struct match m = { .p = p };
	const struct ptx_form *late = NULL;
	uint32_t misfit = 0;
	bool known = false, shaped = false, hint = has_mod(p, "L2::cache_hint");

	if (read)
		names(p);
	m.nops = p->nops - (hint && p->nops);
	for (const struct ptx_form *f = ptx_forms; f->names; f++) {
		uint32_t at;

		if (!in_list(f->names, ' ', p->base, strlen(p->base)))
			continue;
		known = true;
		if (!modifiers_fit(&m, f))
			continue;
		shaped = true;
		at = read ? first_misfit(&m, f) : *f->operands == '*' ? 0 : 1;
		if (at) {
			misfit = at > misfit ? at : misfit;
			continue;
		}
		if (p->version < f->version || !has_target(p, f->target)) {
			late = f;
			continue;
		}
		if (!read)
			return;
		if (hint && *f->operands != '*' && !operand_fits(&m, 'c', 0, &p->op[m.nops]))
			ptx_refuse(p, "the last operand is no cache policy");
		if (has_mod(p, "cluster") || has_mod(p, "shared::cluster"))
			needs(p, 78, 90);
		if (*f->operands != '*')
			values(&m);
		return;
	}
	if (late)
		needs(p, late->version, late->target);
	if (!known)
		ptx_refuse(p, "no such instruction");
	if (!shaped)
		ptx_refuse(p, "no form of the instruction has these modifiers and types");
	if (read && misfit > p->nops)
		ptx_refuse(p, "%u operands are too few", p->nops);
	ptx_refuse(p, "operand %u does not fit", misfit);
}
