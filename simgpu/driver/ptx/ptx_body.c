/*
 * ptx_body.c: function bodies: statements and operands in, decoded instructions out.
 *
 * In:  tokens from '{' to the matching '}'. Out: p->f with instructions on virtual registers, branches resolved.
 * Fails: with "line N: ..." for broken syntax, undeclared names and labels. An instruction that no decoder takes becomes
 *        OP_UNSUPPORTED.
 */
#include "ptx_parse.h"

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
		s->type = t;
	} while (ptx_accept(p, ','));
	ptx_expect(p, ';');
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
	static const struct ptx_opcode *const tables[] = { ptx_int_opcodes, ptx_float_opcodes, ptx_mem_opcodes, ptx_control_opcodes,
		ptx_matrix_opcodes };

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

/* Reads the operands. False if one has a form that this parser does not know. */
static bool operands(struct parser *p)
{
	p->nops = 0;
	while (!ptx_is(p, ';')) {
		if (p->nops == PTX_MAX_OPERANDS || !ptx_read_operand(p, &p->op[p->nops]))
			return false;
		p->nops++;
		if (!ptx_accept(p, ','))
			break;
	}
	if (!ptx_is(p, ';'))
		ptx_die(p, "expected ';'");
	return true;
}

static bool decode(struct parser *p)
{
	ptx_decoder d = decoder_of(p->base);
	bool read;

	if (!strcmp(p->base, "call"))
		return ptx_call(p);
	if (ptx_is_unchecked(p))
		return false;
	read = operands(p);
	ptx_check(p, read);
	if (!read || !d || p->bad || !d(p) || p->bad)
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

		if (!t || t->kind != SYM_LABEL || !ptx_visible(p, t->ref))
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
static uint32_t enter(struct parser *p, uint32_t from)
{
	p->outer = ptx_grow(p, p->outer, p->nouter, &p->cap_outer, sizeof *p->outer);
	p->outer[p->nouter++] = from;
	return p->nouter;
}

bool ptx_visible(const struct parser *p, uint32_t label)
{
	uint32_t in = p->inside;

	while (in && in != p->labels[label].block)
		in = p->outer[in - 1];
	return in == p->labels[label].block;
}

/* A directive that ends with its line, not with a semicolon. */
static bool source_line(struct parser *p)
{
	uint32_t line = p->tok.line;

	if (!ptx_word(p, ".loc") && !ptx_word(p, ".file"))
		return false;
	while (p->tok.kind != T_END && p->tok.line == line)
		ptx_next(p);
	return true;
}

static void collect_labels(struct parser *p)
{
	struct token tok = p->tok, name;
	const char *at = p->p;
	uint32_t line = p->line, inside = 0;
	bool start = true, list = false; /* a brace at the start of a statement opens a scope, another one a list */

	do {
		if (p->tok.kind == T_END)
			ptx_die(p, "'}' missing");
		/* mutant: lines of the source */
		if (start && source_line(p))
			continue;
		if (ptx_is(p, '{')) {
			list = !start;
			inside = list ? inside : enter(p, inside);
		} else if (ptx_is(p, '}')) {
			start = !list;
			inside = list ? inside : p->outer[inside - 1];
			list = false;
		} else {
			start = ptx_is(p, ';');
		}
		name = p->tok;
		ptx_next(p);
		if (name.kind == T_IDENT && ptx_is(p, ':')) {
			ptx_next(p);
			start = true;
			if (ptx_word(p, ".branchtargets") || ptx_word(p, ".callprototype") || ptx_word(p, ".calltargets"))
				continue;
			struct sym *s = ptx_lookup(p, name.s, name.n);

			if (s && s->kind == SYM_LABEL)
				ptx_die(p, "label %.*s is placed twice", (int)name.n, name.s);
			uint32_t label = ptx_new_label(p, name.s, name.n);

			p->labels[label].block = inside;
			s = ptx_declare(p, name.s, name.n, SYM_LABEL);
			s->ref = label;
		}
	} while (inside);
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
			s->in_frame = s->call = true;
		} else if (source_line(p)) {
			return;
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
	uint32_t scopes[64], depth = 0, entered = 0;

	p->labels = NULL;
	p->fixups = NULL;
	p->lists = NULL;
	p->outer = NULL;
	p->nlabels = p->cap_labels = p->nfixups = p->cap_fixups = p->nlists = p->cap_lists = p->nouter = p->cap_outer = p->inside = 0;
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
			scopes[depth++] = p->scope;
			p->scope = p->nsyms;
			if (entered == p->nouter)
				ptx_die(p, "unexpected '{'");
			p->inside = ++entered;
		} else if (ptx_is(p, '}')) {
			ptx_close_scope(p, p->scope);
			p->scope = scopes[--depth];
			p->inside = p->outer[p->inside - 1];
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
