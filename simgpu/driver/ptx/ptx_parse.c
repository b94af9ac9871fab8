/*
 * ptx_parse.c: the module level of PTX: directives, variables with initialisers, function headers.
 *
 * In:  tokens. Out: a module whose functions are decoded and whose kernels are linked.
 * Fails: with "line N: ..." for text that is no PTX, and for variables in spaces a kernel cannot have.
 */
#include "ptx_parse.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_VARIABLE (1ull << 32)

static const struct { const char *name; enum ptx_type t; uint8_t bytes, cls; } types[] = {
	{ "pred", TY_PRED, 1, CLS_PRED },
	{ "b8", TY_B8, 1, CLS_W16 }, { "u8", TY_U8, 1, CLS_W16 }, { "s8", TY_S8, 1, CLS_W16 },
	{ "b16", TY_B16, 2, CLS_W16 }, { "u16", TY_U16, 2, CLS_W16 }, { "s16", TY_S16, 2, CLS_W16 },
	{ "b32", TY_B32, 4, CLS_W32 }, { "u32", TY_U32, 4, CLS_W32 }, { "s32", TY_S32, 4, CLS_W32 },
	{ "b64", TY_B64, 8, CLS_W64 }, { "u64", TY_U64, 8, CLS_W64 }, { "s64", TY_S64, 8, CLS_W64 },
	{ "f16", TY_F16, 2, CLS_W16 }, { "f16x2", TY_F16X2, 4, CLS_W32 }, { "bf16", TY_BF16, 2, CLS_W16 },
	{ "bf16x2", TY_BF16X2, 4, CLS_W32 }, { "f32", TY_F32, 4, CLS_W32 }, { "f64", TY_F64, 8, CLS_W64 },
};

enum ptx_type ptx_type_of(const char *s, size_t n)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strlen(types[i].name) == n && !memcmp(types[i].name, s, n))
			return types[i].t;
	return TY_NONE;
}

uint32_t ptx_type_bytes(enum ptx_type t) { return t == TY_NONE ? 0 : types[t - 1].bytes; }
uint8_t ptx_type_class(enum ptx_type t) { return t == TY_NONE ? CLS_W32 : types[t - 1].cls; }
bool ptx_type_signed(enum ptx_type t) { return t == TY_S8 || t == TY_S16 || t == TY_S32 || t == TY_S64; }
bool ptx_type_unsigned(enum ptx_type t) { return t == TY_U8 || t == TY_U16 || t == TY_U32 || t == TY_U64; }
bool ptx_type_float(enum ptx_type t) { return t >= TY_F16; }

static void skip_to(struct parser *p, char c)
{
	while (p->tok.kind != T_END && !ptx_is(p, c))
		ptx_next(p);
	ptx_expect(p, c);
}

int64_t ptx_integer(struct parser *p)
{
	bool neg = ptx_accept(p, '-');
	uint64_t v = p->tok.u;

	if (p->tok.kind != T_INT)
		ptx_die(p, "expected an integer");
	ptx_next(p);
	return (int64_t)(neg ? 0 - v : v);
}

/* ".align 8 .b8 name[16][4]", ".v4 .f32 name", ".u64 .ptr .global .align 4 name" */
void ptx_declaration(struct parser *p, struct decl *d)
{
	uint32_t vec = 1;
	bool pointer = false;

	*d = (struct decl){ .count = 1 };
	while (p->tok.kind == T_DIRECTIVE) {
		if (ptx_word(p, ".align")) {
			ptx_next(p);
			int64_t v = ptx_integer(p);

			if (v <= 0 || v > 1024 || (v & (v - 1)))
				ptx_die(p, "alignment %lld", (long long)v);
			/* Behind .ptr it is the alignment of the memory that the parameter points to. */
			d->align = pointer ? d->align : (uint32_t)v;
			continue;
		}
		pointer |= ptx_word(p, ".ptr");
		enum ptx_type t = ptx_type_of(p->tok.s + 1, p->tok.n - 1);

		if (t != TY_NONE)
			d->type = t;
		else if (ptx_word(p, ".v2") || ptx_word(p, ".v4"))
			vec = (uint32_t)(p->tok.s[2] - '0');
		else if (!ptx_word(p, ".ptr") && !ptx_word(p, ".global") && !ptx_word(p, ".shared") && !ptx_word(p, ".const") &&
		         !ptx_word(p, ".local"))
			ptx_die(p, "unknown directive %.*s in a declaration", (int)p->tok.n, p->tok.s);
		ptx_next(p);
	}
	if (d->type == TY_NONE || d->type == TY_PRED)
		ptx_die(p, "declaration without a type in memory");
	if (p->tok.kind != T_IDENT)
		ptx_die(p, "expected a name");
	d->name = p->tok.s;
	d->n = p->tok.n;
	ptx_next(p);
	d->elem = ptx_type_bytes(d->type);
	if (d->elem * vec > 16)
		ptx_die(p, "a vector has more than 16 bytes");
	d->count = vec;
	if (d->align < d->elem * vec && d->align == 0)
		d->align = d->elem * vec;
	while (ptx_accept(p, '[')) {
		d->array = true;
		if (ptx_accept(p, ']')) {
			d->open = true;
			d->count = 0;
			continue;
		}
		int64_t v = ptx_integer(p);

		if (v < 0 || (uint64_t)v > MAX_VARIABLE || (d->count && (uint64_t)v > MAX_VARIABLE / d->count))
			ptx_die(p, "array of %lld elements", (long long)v);
		d->count *= (uint64_t)v;
		ptx_expect(p, ']');
	}
	if (d->count * d->elem > MAX_VARIABLE)
		ptx_die(p, "variable of more than 4 GiB");
}

static struct gvar *add_global(struct parser *p, const struct decl *d, bool is_const)
{
	struct ptx_module *m = p->m;
	struct gvar *g = ptx_need(p, 1, sizeof *g);
	uint32_t cap = (uint32_t)m->cap_globals;

	m->globals = ptx_grow(p, m->globals, (uint32_t)m->nglobals, &cap, sizeof *m->globals);
	m->cap_globals = cap;
	g->pub = (struct ptx_global){ .name = ptx_intern(p, d->name, d->n), .size = d->count * d->elem, .align = d->align, .is_const = is_const };
	struct sym *s = ptx_declare(p, g->pub.name, d->n, SYM_GLOBAL);

	s->ref = (uint32_t)m->nglobals;
	s->size = g->pub.size;
	s->is_const = is_const;
	p->const_bytes += is_const ? g->pub.size : 0;
	if (p->const_bytes > 65536)
		ptx_die(p, "more than 64 KiB of constant memory");
	m->globals[m->nglobals++] = g;
	return g;
}

struct init_state { struct gvar *g; uint8_t *bytes; uint64_t at; uint32_t cap; const struct decl *d; };

static void put(struct parser *p, struct init_state *s, uint64_t v)
{
	if (s->at + s->d->elem > s->g->pub.size)
		ptx_die(p, "too many initialisers for %s", s->g->pub.name);
	memcpy(s->bytes + s->at, &v, s->d->elem);
	s->at += s->d->elem;
}

/* name, name+4, generic(name)+4: the address is known once the variable is bound */
static void put_address(struct parser *p, struct init_state *s)
{
	bool generic = ptx_word(p, "generic");
	struct sym *v;
	struct global_init gi = { .offset = s->at };

	if (generic) {
		ptx_next(p);
		ptx_expect(p, '(');
	}
	v = p->tok.kind == T_IDENT ? ptx_lookup(p, p->tok.s, p->tok.n) : NULL;
	if (!v || v->kind != SYM_GLOBAL || s->d->elem != 8)
		ptx_die(p, "initialiser %.*s is no 8-byte address of a global variable", (int)p->tok.n, p->tok.s ? p->tok.s : "");
	gi.ref = v->ref;
	ptx_next(p);
	if (generic)
		ptx_expect(p, ')');
	if (ptx_accept(p, '+'))
		gi.value = (uint64_t)ptx_integer(p);
	put(p, s, 0);
	s->g->refs = ptx_grow(p, s->g->refs, s->g->nrefs, &s->cap, sizeof *s->g->refs);
	s->g->refs[s->g->nrefs++] = gi;
}

static void initialiser(struct parser *p, struct init_state *s, int depth)
{
	if (depth > 8)
		ptx_die(p, "initialiser nested too deep");
	if (ptx_accept(p, '{')) {
		while (!ptx_is(p, '}')) {
			initialiser(p, s, depth + 1);
			if (!ptx_accept(p, ','))
				break;
		}
		ptx_expect(p, '}');
		return;
	}
	if (p->tok.kind == T_IDENT) {
		put_address(p, s);
		return;
	}
	bool neg = ptx_accept(p, '-');
	uint64_t v = p->tok.u;

	if (p->tok.kind == T_INT && ptx_type_float(s->d->type))
		ptx_die(p, "initialiser of another type");
	if ((p->tok.kind == T_F32 || p->tok.kind == T_F64) && (ptx_type_signed(s->d->type) || ptx_type_unsigned(s->d->type)))
		ptx_die(p, "initialiser of another type");
	if (p->tok.kind == T_INT) {
		v = neg ? 0 - v : v;
	} else if (p->tok.kind == T_F32 && s->d->elem == 4) {
		v ^= neg ? 0x80000000u : 0;
	} else if (p->tok.kind == T_F64 && (s->d->type == TY_F64 || s->d->type == TY_F32)) {
		double x;

		v ^= neg ? 0x8000000000000000ull : 0;
		memcpy(&x, &v, 8);
		if (s->d->type == TY_F32) {
			float f = (float)x;
			uint32_t u;

			memcpy(&u, &f, 4);
			v = u;
		}
	} else {
		ptx_die(p, "unsupported initialiser");
	}
	ptx_next(p);
	put(p, s, v);
}

/* The variables of one .global, .const, .shared or .local declaration, up to ';'. */
void ptx_space_variable(struct parser *p, enum ptx_symkind kind, bool is_const, bool is_extern)
{
	struct ptx_module *m = p->m;
	struct decl d;
	struct sym *s;

	ptx_next(p);
	ptx_declaration(p, &d);
	if (d.count == 0 && !is_extern)
		ptx_die(p, "variable %.*s has no size", (int)d.n, d.name);
	if (kind == SYM_SHARED) {
		uint32_t cap = (uint32_t)m->cap_shared;

		m->shared = ptx_grow(p, m->shared, (uint32_t)m->nshared, &cap, sizeof *m->shared);
		m->cap_shared = cap;
		m->shared[m->nshared] = (struct svar){ .size = d.count * d.elem, .align = d.align, .dynamic = d.open && is_extern };
		s = ptx_declare(p, ptx_intern(p, d.name, d.n), d.n, SYM_SHARED);
		s->ref = (uint32_t)m->nshared++;
	} else if (kind == SYM_LOCAL) {
		if (!p->f)
			ptx_die(p, ".local variable outside a function");
		s = ptx_declare(p, d.name, d.n, SYM_LOCAL);
		s->off = ptx_frame_slot(p, d.count * d.elem, d.align);
	} else {
		struct gvar *g;
		struct init_state st = { .d = &d };

		if (is_extern)
			ptx_die(p, "external variable %.*s is not defined in the module", (int)d.n, d.name);
		if (d.open)
			ptx_die(p, "variable %.*s has no size", (int)d.n, d.name);
		g = add_global(p, &d, is_const);
		if (ptx_accept(p, '=')) {
			if (g->pub.size > 1u << 30)
				ptx_die(p, "initialised variable of more than 1 GiB");
			st.g = g;
			st.bytes = ptx_need(p, g->pub.size + 8, 1);
			g->pub.init = st.bytes;
			initialiser(p, &st, 0);
		}
	}
	ptx_expect(p, ';');
}

static void parameter_list(struct parser *p, struct func *f, struct formal **list, uint32_t *count)
{
	uint32_t cap = 0;

	*count = 0;
	while (!ptx_is(p, ')')) {
		struct decl d;
		struct formal fo;
		struct sym *s;

		if (ptx_word(p, ".reg")) {
			if (f->entry)
				ptx_die(p, "expected .param");
			f->register_formals = true;
			while (p->tok.kind != T_END && !ptx_is(p, ',') && !ptx_is(p, ')'))
				ptx_next(p);
			if (!ptx_accept(p, ','))
				break;
			continue;
		}
		if (!ptx_word(p, ".param"))
			ptx_die(p, "expected .param");
		ptx_next(p);
		ptx_declaration(p, &d);
		fo.size = (uint32_t)(d.count * d.elem);
		fo.align = d.align;
		if (d.count * d.elem > 65536)
			ptx_die(p, "parameter of %llu bytes", (unsigned long long)(d.count * d.elem));
		if (f->entry) {
			fo.offset = (f->param_bytes + d.align - 1) & ~(d.align - 1);
			f->param_bytes = fo.offset + fo.size;
			if (f->param_bytes > (p->version >= 81 && p->target >= 70 ? 32764 : 4352))
				ptx_die(p, "%u bytes of parameters are too many", f->param_bytes);
		} else {
			fo.offset = ptx_frame_slot(p, fo.size, d.align);
		}
		s = ptx_declare(p, d.name, d.n, SYM_PARAM);
		s->off = fo.offset;
		s->size = fo.size;
		s->in_frame = !f->entry;
		*list = ptx_grow(p, *list, *count, &cap, sizeof **list);
		(*list)[(*count)++] = fo;
		if (!ptx_accept(p, ','))
			break;
	}
	ptx_expect(p, ')');
}

static struct func *function_named(struct parser *p, const char *name, uint32_t n, bool entry)
{
	struct sym *s = ptx_lookup(p, name, n);
	struct ptx_module *m = p->m;
	struct func *f;
	uint32_t cap = (uint32_t)m->cap_funcs;

	if (s && s->kind == SYM_FUNC) {
		p->fi = s->ref;
		return m->funcs[s->ref];
	}
	m->funcs = ptx_grow(p, m->funcs, (uint32_t)m->nfuncs, &cap, sizeof *m->funcs);
	m->cap_funcs = cap;
	f = ptx_need(p, 1, sizeof *f);
	f->name = ptx_intern(p, name, n);
	f->entry = entry;
	f->max_threads = 1024;
	s = ptx_declare(p, f->name, n, SYM_FUNC);
	s->ref = p->fi = (uint32_t)m->nfuncs;
	m->funcs[m->nfuncs++] = f;
	return f;
}

static bool any_word(const struct parser *p, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ptx_word(p, words[i]))
			return true;
	return false;
}

static void function_directives(struct parser *p, struct func *f, uint32_t nout)
{
	static const char *const names[] = { ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".noreturn", ".pragma", ".attribute",
		".abi_preserve", ".abi_preserve_control" };
	static const char *const clusters[] = { ".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters" };
	const char *limit = NULL;

	while (p->tok.kind == T_DIRECTIVE) {
		bool maxntid = ptx_word(p, ".maxntid") || ptx_word(p, ".reqntid"), pragma = ptx_word(p, ".pragma");
		uint64_t product = 1;

		if (any_word(p, clusters, sizeof clusters / sizeof *clusters)) {
			if (p->version < 78 || p->target < 90)
				ptx_die(p, "%.*s needs .version 7.8 and .target sm_90", (int)p->tok.n, p->tok.s);
		} else if (!any_word(p, names, sizeof names / sizeof *names)) {
			ptx_die(p, "unknown directive %.*s", (int)(p->tok.n < 40 ? p->tok.n : 40), p->tok.s);
		} else if (ptx_word(p, ".noreturn") && (f->entry || nout)) {
			ptx_die(p, ".noreturn is for functions without results");
		}
		if (maxntid && limit && limit[1] != p->tok.s[1])
			ptx_die(p, ".maxntid and .reqntid exclude each other");
		if (maxntid)
			limit = p->tok.s;
		ptx_next(p);
		if (pragma) {
			skip_to(p, ';');
			continue;
		}
		if (p->tok.kind == T_INT || p->tok.kind == T_IDENT) {
			do {
				int64_t v = p->tok.kind == T_INT ? ptx_integer(p) : (ptx_next(p), 1);

				if (maxntid && v == 0)
					ptx_die(p, "no threads");
				product = v > 0 && v <= 1024 ? product * (uint64_t)v : 0;
			} while (product <= 1 << 30 && ptx_accept(p, ','));
		} else if (ptx_accept(p, '(')) {
			skip_to(p, ')');
		}
		if (maxntid)
			f->max_threads = product >= 1 && product <= 1024 ? (uint32_t)product : 1024;
	}
}

static void function(struct parser *p, bool entry)
{
	/* Formals declare symbols before the function's name is read, so they are read into a stand-in first. */
	uint32_t mark;
	struct func tmp = { .entry = entry }, *f;
	struct formal *out = NULL, *in = NULL;
	uint32_t nout = 0, nin = 0;

	ptx_next(p);
	while (p->tok.kind == T_DIRECTIVE)
		ptx_next(p);
	if (!entry && ptx_is(p, '(')) {
		const char *at = p->p;
		uint32_t line = p->line;

		/* The name stands behind the results: look ahead, so that its symbol outlives the function's scope. */
		skip_to(p, ')');
		if (p->tok.kind != T_IDENT)
			ptx_die(p, "expected a function name");
		f = function_named(p, p->tok.s, p->tok.n, entry);
		p->p = at;
		p->line = line;
		ptx_next(p);
		mark = p->scope = p->nsyms;
		p->f = &tmp;
		parameter_list(p, &tmp, &out, &nout);
	} else {
		if (p->tok.kind != T_IDENT)
			ptx_die(p, "expected a function name");
		f = function_named(p, p->tok.s, p->tok.n, entry);
		mark = p->scope = p->nsyms;
		p->f = &tmp;
	}
	ptx_next(p);
	if (ptx_accept(p, '('))
		parameter_list(p, &tmp, &in, &nin);
	function_directives(p, f, nout);
	if (f->entry != entry)
		ptx_die(p, "%s is both kernel and function", f->name);
	if (!f->body) {
		f->in = in;
		f->nin = nin;
		f->out = out;
		f->nout = nout;
		f->register_formals = tmp.register_formals;
	}
	if (!ptx_accept(p, ';')) {
		if (!ptx_is(p, '{'))
			ptx_die(p, "expected '{'");
		if (f->body)
			ptx_die(p, "%s is defined twice", f->name);
		f->body = true;
		f->param_bytes = tmp.param_bytes;
		f->frame_bytes = tmp.frame_bytes;
		p->f = f;
		ptx_body(p);
	}
	ptx_close_scope(p, mark);
	p->scope = 0;
	p->f = NULL;
}

static void skip_braces(struct parser *p)
{
	uint32_t depth = 0;

	do {
		if (ptx_is(p, '{'))
			depth++;
		else if (ptx_is(p, '}') && depth)
			depth--;
		if (p->tok.kind == T_END)
			ptx_die(p, "'}' missing");
		ptx_next(p);
	} while (depth);
}

static void module(struct parser *p)
{
	bool is_extern = false, linked = false;

	ptx_next(p);
	ptx_header(p);
	while (p->tok.kind != T_END) {
		if (p->tok.kind != T_DIRECTIVE)
			ptx_die(p, "expected a directive");
		if (ptx_word(p, ".extern") || ptx_word(p, ".visible") || ptx_word(p, ".weak") || ptx_word(p, ".common")) {
			if (linked)
				ptx_die(p, "two linking directives");
			linked = true;
			is_extern = ptx_word(p, ".extern");
			ptx_next(p);
			continue;
		}
		if (ptx_word(p, ".address_size")) {
			ptx_address_size(p);
		} else if (ptx_word(p, ".entry") || ptx_word(p, ".func")) {
			function(p, ptx_word(p, ".entry"));
		} else if (ptx_word(p, ".global") || ptx_word(p, ".const")) {
			ptx_space_variable(p, SYM_GLOBAL, ptx_word(p, ".const"), is_extern);
		} else if (ptx_word(p, ".shared")) {
			ptx_space_variable(p, SYM_SHARED, false, is_extern);
		} else if (ptx_word(p, ".file") || ptx_word(p, ".loc")) {
			uint32_t line = p->tok.line;

			while (p->tok.kind != T_END && p->tok.line == line)
				ptx_next(p);
		} else if (ptx_word(p, ".pragma")) {
			ptx_next(p);
			if (p->tok.kind != T_STRING)
				ptx_die(p, "expected a string");
			skip_to(p, ';');
		} else if (ptx_word(p, ".alias")) {
			skip_to(p, ';');
		} else if (ptx_word(p, ".section")) {
			while (p->tok.kind != T_END && !ptx_is(p, '{'))
				ptx_next(p);
			skip_braces(p);
		} else {
			ptx_die(p, "unknown directive %.*s", (int)(p->tok.n < 40 ? p->tok.n : 40), p->tok.s);
		}
		is_extern = linked = false;
	}
}

/* Functions that the driver brings. */
static bool built_in(const char *name)
{
	static const char *const names[] = { "vprintf", "malloc", "free", "__assertfail" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "cuda", 4);
}

static void resolved(struct parser *p)
{
	for (size_t i = 0; i < p->m->nfuncs; i++) {
		const struct func *f = p->m->funcs[i];

		if (!f->body && !f->entry && !built_in(f->name))
			ptx_die(p, "function %s has no body", f->name);
	}
}

static bool parse(struct parser *p)
{
	const char *why;

	if (setjmp(p->fail))
		return false;
	module(p);
	resolved(p);
	why = ptx_link(p->m);
	if (why)
		ptx_die(p, "%s", why);
	return true;
}

struct ptx_module *ptx_parse(const char *text, size_t len, char *err, size_t err_cap)
{
	struct ptx_module *m = calloc(1, sizeof *m);
	struct parser *p = calloc(1, sizeof *p);

	if (err_cap)
		err[0] = 0;
	if (!m || !p) {
		snprintf(err, err_cap, "out of memory");
		free(m);
		free(p);
		return NULL;
	}
	p->p = text;
	p->end = text + len;
	p->line = 1;
	p->m = m;
	p->err = err;
	p->err_cap = err_cap;
	for (size_t i = 0; i < sizeof p->bucket / sizeof *p->bucket; i++)
		p->bucket[i] = -1;
	if (!parse(p)) {
		ptx_free(m);
		m = NULL;
	}
	free(p);
	return m;
}

void ptx_free(struct ptx_module *m)
{
	if (!m)
		return;
	ptx_arena_free(&m->arena);
	free(m);
}
