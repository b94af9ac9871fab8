/*
 * ptx_lex.c: PTX text to tokens; memory and symbols of the parser.
 *
 * In:  the text, which need not end in a zero byte. Out: one token at a time in p->tok.
 * Fails: a character no token starts with, a malformed number, a comment or string that does not end.
 */
#include "ptx_parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct arena_chunk { struct arena_chunk *next; size_t used, size; };

void *ptx_alloc(struct ptx_arena *a, size_t n, size_t each)
{
	struct arena_chunk *c = a->head;
	size_t bytes, head = (sizeof *c + 15) & ~(size_t)15;
	void *r;

	if (each && n > (SIZE_MAX / 4) / each)
		return NULL;
	bytes = (n * each + 15) & ~(size_t)15;
	if (!c || c->size - c->used < bytes) {
		size_t size = bytes > 32768 ? bytes : 65536;

		c = calloc(1, head + size);
		if (!c)
			return NULL;
		c->size = size;
		c->next = a->head;
		a->head = c;
	}
	r = (char *)c + head + c->used;
	c->used += bytes;
	return r;
}

void ptx_arena_free(struct ptx_arena *a)
{
	struct arena_chunk *c, *next;

	for (c = a->head; c; c = next) {
		next = c->next;
		free(c);
	}
	a->head = NULL;
}

_Noreturn void ptx_die(struct parser *p, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(p->err, p->err_cap, "line %u: ", p->tok.line ? p->tok.line : p->line);

	va_start(ap, fmt);
	if (n >= 0 && (size_t)n < p->err_cap)
		vsnprintf(p->err + n, p->err_cap - (size_t)n, fmt, ap);
	va_end(ap);
	longjmp(p->fail, 1);
}

void *ptx_need(struct parser *p, size_t n, size_t each)
{
	void *r = ptx_alloc(&p->m->arena, n, each);

	if (!r)
		ptx_die(p, "out of memory");
	return r;
}

void *ptx_grow(struct parser *p, void *old, uint32_t n, uint32_t *cap, size_t each)
{
	void *r;
	uint32_t want;

	if (n < *cap)
		return old;
	if (n > 1u << 24)
		ptx_die(p, "module too large");
	want = *cap ? *cap * 2 : 16;
	r = ptx_need(p, want, each);
	if (n)
		memcpy(r, old, (size_t)n * each);
	*cap = want;
	return r;
}

const char *ptx_intern(struct parser *p, const char *s, uint32_t n)
{
	char *r = ptx_need(p, (size_t)n + 1, 1);

	memcpy(r, s, n);
	return r;
}

static bool ident_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%'; }
static bool digit(char c) { return c >= '0' && c <= '9'; }
static bool ident_char(char c) { return ident_start(c) || digit(c); }

static int hex_value(char c)
{
	if (digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void skip_space(struct parser *p)
{
	while (p->p < p->end) {
		if (*p->p == '\n') {
			p->line++;
			p->p++;
		} else if (*p->p == ' ' || *p->p == '\t' || *p->p == '\r' || *p->p == '\f' || *p->p == '\v') {
			p->p++;
		} else if (p->end - p->p >= 2 && p->p[0] == '/' && p->p[1] == '/') {
			while (p->p < p->end && *p->p != '\n')
				p->p++;
		} else if (p->end - p->p >= 2 && p->p[0] == '/' && p->p[1] == '*') {
			for (p->p += 2; ; p->p++) {
				if (p->end - p->p < 2)
					ptx_die(p, "comment does not end");
				if (*p->p == '\n')
					p->line++;
				if (p->p[0] == '*' && p->p[1] == '/')
					break;
			}
			p->p += 2;
		} else {
			return;
		}
	}
}

/* Identifiers keep their dots and "::" ("ld.global.L2::128B", "%tid.x"); a single ':' behind a label does not belong. */
static void lex_ident(struct parser *p, bool directive)
{
	const char *s = p->p++;

	while (p->p < p->end) {
		char c = *p->p, next = p->end - p->p > 1 ? p->p[1] : 0;

		if (ident_char(c) || (c == '.' && !directive && ident_char(next)))
			p->p++;
		else if (c == ':' && next == ':' && p->end - p->p > 2 && ident_char(p->p[2]))
			p->p += 2;
		else
			break;
	}
	p->tok.kind = directive ? T_DIRECTIVE : T_IDENT;
	p->tok.s = s;
	p->tok.n = (uint32_t)(p->p - s);
}

static void lex_number(struct parser *p)
{
	const char *s = p->p;
	char text[64];
	size_t n = 0;
	uint64_t v = 0;
	int want;

	p->tok.kind = T_INT;
	if (p->end - s >= 2 && s[0] == '0' && (s[1] == 'f' || s[1] == 'F' || s[1] == 'd' || s[1] == 'D')) {
		want = s[1] == 'f' || s[1] == 'F' ? 8 : 16;
		for (p->p += 2; n < (size_t)want && p->p < p->end && hex_value(*p->p) >= 0; n++)
			v = v << 4 | (uint64_t)hex_value(*p->p++);
		if (n != (size_t)want)
			ptx_die(p, "malformed floating-point constant");
		p->tok.kind = want == 8 ? T_F32 : T_F64;
		p->tok.u = v;
		return;
	}
	while (p->p < p->end && n < sizeof text - 1 &&
	       (ident_char(*p->p) || *p->p == '.' || ((*p->p == '-' || *p->p == '+') && n && (text[n - 1] == 'e' || text[n - 1] == 'E') && !(n > 1 && text[1] == 'x'))))
		text[n++] = *p->p++;
	text[n] = 0;
	if ((memchr(text, '.', n) || memchr(text, 'e', n) || memchr(text, 'E', n)) && !(n > 1 && (text[1] == 'x' || text[1] == 'X'))) {
		char *end;
		double d = strtod(text, &end);

		if (*end)
			ptx_die(p, "malformed number %s", text);
		p->tok.kind = T_F64;
		memcpy(&p->tok.u, &d, 8);
		return;
	}
	if (n && (text[n - 1] == 'U' || text[n - 1] == 'u'))
		text[--n] = 0;
	if (n > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
		for (size_t i = 2; i < n; i++) {
			if (text[i] != '0' && text[i] != '1')
				ptx_die(p, "malformed number %s", text);
			v = v << 1 | (uint64_t)(text[i] - '0');
		}
		p->tok.u = v;
	} else {
		char *end;

		p->tok.u = strtoull(text, &end, 0);
		if (*end || !n)
			ptx_die(p, "malformed number %s", text);
	}
}

void ptx_next(struct parser *p)
{
	char c;

	skip_space(p);
	p->tok = (struct token){ .line = p->line, .kind = T_END };
	if (p->p >= p->end || *p->p == 0)
		return;
	c = *p->p;
	if (ident_start(c)) {
		lex_ident(p, false);
	} else if (c == '.' && p->end - p->p > 1 && ident_start(p->p[1])) {
		lex_ident(p, true);
	} else if (digit(c)) {
		lex_number(p);
	} else if (c == '"') {
		const char *s = ++p->p;

		while (p->p < p->end && *p->p != '"' && *p->p != '\n')
			p->p++;
		if (p->p >= p->end || *p->p != '"')
			ptx_die(p, "string does not end");
		p->tok.kind = T_STRING;
		p->tok.s = s;
		p->tok.n = (uint32_t)(p->p++ - s);
	} else if (strchr("{}[]()<>,;:@!|+-=*&~", c)) {
		p->tok.kind = T_PUNCT;
		p->tok.u = (uint8_t)c;
		p->p++;
	} else {
		ptx_die(p, "unexpected character 0x%02x", (uint8_t)c);
	}
}

bool ptx_is(const struct parser *p, char c) { return p->tok.kind == T_PUNCT && p->tok.u == (uint8_t)c; }

bool ptx_accept(struct parser *p, char c)
{
	if (!ptx_is(p, c))
		return false;
	ptx_next(p);
	return true;
}

void ptx_expect(struct parser *p, char c)
{
	if (!ptx_accept(p, c))
		ptx_die(p, "expected '%c'", c);
}

bool ptx_word(const struct parser *p, const char *word)
{
	return (p->tok.kind == T_IDENT || p->tok.kind == T_DIRECTIVE) && p->tok.n == strlen(word) && !memcmp(p->tok.s, word, p->tok.n);
}

static uint32_t hash(const char *s, uint32_t n)
{
	uint32_t h = 2166136261u;

	for (uint32_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)s[i]) * 16777619u;
	return (h ^ h >> 15) & 4095;
}

static struct sym *find(struct parser *p, const char *name, uint32_t n)
{
	for (int32_t i = p->bucket[hash(name, n)]; i >= 0; i = p->syms[i].next)
		if (p->syms[i].n == n && !memcmp(p->syms[i].name, name, n))
			return &p->syms[i];
	return NULL;
}

/* "%r12" is member 12 of the range that ".reg .b32 %r<20>" declares; its register is made at its first use. */
struct sym *ptx_lookup(struct parser *p, const char *name, uint32_t n)
{
	static _Thread_local struct sym member;
	struct sym *s = find(p, name, n);
	uint32_t stem = n, number = 0;

	if (s && s->kind != SYM_RANGE)
		return s;
	while (stem > 0 && digit(name[stem - 1]))
		stem--;
	if (stem == n || n - stem > 7 || (name[stem] == '0' && n - stem > 1))
		return NULL;
	for (uint32_t i = stem; i < n; i++)
		number = number * 10 + (uint32_t)(name[i] - '0');
	s = find(p, name, stem);
	if (!s || s->kind != SYM_RANGE || number >= s->count)
		return NULL;
	if (!s->regs[number])
		s->regs[number] = ptx_vreg(p, s->cls) + 1;
	member = *s;
	member.kind = SYM_REG;
	member.ref = s->regs[number] - 1;
	return &member;
}

struct sym *ptx_declare(struct parser *p, const char *name, uint32_t n, enum ptx_symkind kind)
{
	struct sym *s = find(p, name, n);
	uint32_t h = hash(name, n);

	if (s && (uint32_t)(s - p->syms) >= p->scope && !(n == 1 && *name == '_'))
		ptx_die(p, "%.*s is declared twice", (int)(n < 80 ? n : 80), name);

	p->syms = ptx_grow(p, p->syms, p->nsyms, &p->cap_syms, sizeof *p->syms);
	s = &p->syms[p->nsyms];
	*s = (struct sym){ .name = name, .n = n, .kind = kind, .next = p->bucket[h], .bucket = h };
	p->bucket[h] = (int32_t)p->nsyms++;
	return s;
}

void ptx_close_scope(struct parser *p, uint32_t mark)
{
	while (p->nsyms > mark) {
		struct sym *s = &p->syms[--p->nsyms];

		p->bucket[s->bucket] = s->next;
	}
}
