/*
 * ptx_header.c: the head of a module: .version, .target, .address_size.
 *
 * In:  the tokens from the module's first on. Out: p->version, p->target and p->specific, which decide which instructions there are.
 * Fails: if a directive is missing, at another place, or names a version or target that PTX does not have.
 */
#include "ptx_parse.h"

/* The last minor version of each major one. */
static const uint8_t minors[] = { 0, 5, 3, 2, 3, 1, 5, 8, 8, 5 };

/* Targets and the version of PTX that each came with; those with a suffix came later. */
static const struct { uint16_t target; uint8_t since, specific, family; } targets[] = {
	{ 50, 40, 0, 0 }, { 52, 41, 0, 0 }, { 53, 42, 0, 0 }, { 60, 50, 0, 0 }, { 61, 50, 0, 0 }, { 62, 50, 0, 0 }, { 70, 60, 0, 0 },
	{ 72, 61, 0, 0 }, { 75, 63, 0, 0 }, { 80, 70, 0, 0 }, { 86, 71, 0, 0 }, { 87, 74, 0, 0 }, { 88, 90, 0, 0 }, { 89, 78, 0, 0 },
	{ 90, 78, 80, 0 }, { 100, 86, 86, 88 }, { 101, 86, 86, 88 }, { 103, 88, 88, 88 }, { 110, 90, 90, 90 }, { 120, 87, 87, 88 }, { 121, 88, 88, 88 },
};

static void version(struct parser *p)
{
	uint32_t v;
	double d;

	if (!ptx_word(p, ".version"))
		ptx_die(p, "a module starts with .version");
	ptx_next(p);
	memcpy(&d, &p->tok.u, 8);
	if (p->tok.kind != T_F64 || !(d >= 1 && d < 100))
		ptx_die(p, "malformed .version");
	v = (uint32_t)(d * 10 + 0.5);
	if (v / 10 >= sizeof minors || v % 10 > minors[v / 10])
		ptx_die(p, ".version %u.%u is unknown", v / 10, v % 10);
	p->version = v;
	ptx_next(p);
}

static void target(struct parser *p)
{
	uint32_t v = 0, i = 3, since = 0;
	char suffix;

	if (!ptx_word(p, ".target"))
		ptx_die(p, ".version is followed by .target");
	ptx_next(p);
	if (p->tok.kind != T_IDENT)
		ptx_die(p, "malformed .target");
	for (; p->tok.n > 3 && !memcmp(p->tok.s, "sm_", 3) && i < p->tok.n && i < 6 && p->tok.s[i] >= '0' && p->tok.s[i] <= '9'; i++)
		v = v * 10 + (uint32_t)(p->tok.s[i] - '0');
	suffix = i + 1 == p->tok.n ? p->tok.s[i] : i == p->tok.n ? 0 : '?';
	for (size_t k = 0; k < sizeof targets / sizeof *targets; k++)
		if (targets[k].target == v)
			since = suffix == 0 ? targets[k].since : suffix == 'a' ? targets[k].specific : suffix == 'f' ? targets[k].family : 0;
	if (!since)
		ptx_die(p, ".target %.*s is unknown", (int)(p->tok.n < 40 ? p->tok.n : 40), p->tok.s);
	if (p->version < since)
		ptx_die(p, ".target %.*s needs .version %u.%u", (int)p->tok.n, p->tok.s, since / 10, since % 10);
	p->target = v;
	p->specific = suffix != 0;
	ptx_next(p);
	while (ptx_accept(p, ',')) {
		if (p->tok.kind != T_IDENT)
			ptx_die(p, "malformed .target");
		ptx_next(p);
	}
}

void ptx_header(struct parser *p)
{
	version(p);
	target(p);
}

void ptx_address_size(struct parser *p)
{
	ptx_next(p);
	if (p->tok.kind != T_INT || p->tok.u != 64)
		ptx_die(p, ".address_size is not 64");
	ptx_next(p);
}
