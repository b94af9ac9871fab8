/*
 * ptx_warp_test.c: warp-level instructions under every division of a warp, against a model.
 *
 * In:  random programs of shfl, vote, match, redux, elect, activemask and bar.warp. A step divides some of the live lanes into sets, each with a member mask of its own,
 *      in a straight line, on two sides of a branch, or in a loop that lanes leave one after another; or it ends lanes.
 * Out: every lane's value, which each step changes by its result. The model computes it set by set, from the text of the PTX manual.
 *
 * WARP_PROGRAMS: how many programs; WARP_SEED.
 */
#include "ptx_test.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS 1500
#define ROWS 24
#define TRIPS 3

enum op { SHFL, VOTE, BALLOT, MATCH_ANY, MATCH_ALL, REDUX, LEADER, RUNNING, BARRIER, OPS };
enum way { LINE, BRANCH, LOOP, EXIT, WAYS };

/* What a lane reads for a step. */
struct cell { uint32_t mask, b, use, side; };

struct step {
	enum op op;
	uint32_t form, c; /* the variant of op; shfl's operand c */
};

static const char *const shfl_names[] = { "up", "down", "bfly", "idx" }, *const vote_names[] = { "all", "any", "uni" };
static const char *const redux_names[] = { "add.u32", "min.u32", "max.u32", "min.s32", "max.s32", "and.b32", "or.b32", "xor.b32" };

static struct cell table[ROWS][32];
static uint32_t value[32], dead;
static char text[1 << 16];
static size_t length;

__attribute__((format(printf, 1, 2))) static void emit(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	length += (size_t)vsnprintf(text + length, sizeof text - length, fmt, ap);
	va_end(ap);
	if (length >= sizeof text)
		abort();
}

static uint32_t random_below(uint32_t n) { return next_random() % n; }

static uint32_t random_lanes(void)
{
	switch (random_below(5)) {
	case 0: return UINT32_MAX;
	case 1: return (1u << random_below(32)) - 1;
	case 2: return 0x55555555u << random_below(2);
	default: return next_random();
	}
}

static struct step random_step(void)
{
	uint32_t width = 2u << random_below(5);
	struct step s = { .op = (enum op)random_below(OPS), .form = next_random() };

	s.c = (32 - width) << 8 | (s.form % 4 == 0 ? 0 : 31);
	return s;
}

/* The lane that shfl reads, and whether its predicate is true. */
static uint32_t source(const struct step *s, uint32_t lane, uint32_t b, bool *valid)
{
	uint32_t segment = s->c >> 8 & 31, clamp = s->c & 31, low = lane & segment, most = low | (clamp & ~segment & 31);
	int j;

	b &= 31;
	switch (s->form % 4) {
	case 0: j = (int)lane - (int)b; *valid = j >= (int)most; break;
	case 1: j = (int)(lane + b); *valid = j <= (int)most; break;
	case 2: j = (int)(lane ^ b); *valid = j <= (int)most; break;
	default: j = (int)(low | (b & ~segment & 31)); *valid = j <= (int)most; break;
	}
	return *valid ? (uint32_t)j : lane;
}

static uint32_t reduced(uint32_t form, uint32_t a, uint32_t b)
{
	switch (form % 8) {
	case 0: return a + b;
	case 1: return a < b ? a : b;
	case 2: return a > b ? a : b;
	case 3: return (int32_t)a < (int32_t)b ? a : b;
	case 4: return (int32_t)a > (int32_t)b ? a : b;
	case 5: return a & b;
	case 6: return a | b;
	default: return a ^ b;
	}
}

/* The result in one lane of a set, from the values that its lanes had. */
static uint32_t expect(const struct step *s, const uint32_t *v, uint32_t set, uint32_t lane, struct cell *cell)
{
	uint32_t odd = 0, same = 0, sum = 0, all = s->form & 16 ? 1 : 3;
	bool valid, first = true, equal = true;
	uint32_t j;

	for (uint32_t i = 0; i < 32; i++) {
		if (!(set >> i & 1))
			continue;
		odd |= (v[i] & 1) << i;
		same |= (uint32_t)((v[i] & 3) == (v[lane] & 3)) << i;
		equal = equal && (v[i] & all) == (v[lane] & all);
		sum = first ? v[i] : reduced(s->form, sum, v[i]);
		first = false;
	}
	switch (s->op) {
	case SHFL:
		j = source(s, lane, cell->b, &valid);
		cell->use = set >> j & 1; /* a lane outside of the set gives an undefined value */
		return v[j] + (valid ? 77 : 0);
	case VOTE:
		odd = s->form & 16 ? ~odd & set : odd;
		return s->form % 3 == 0 ? odd == set : s->form % 3 == 1 ? odd != 0 : odd == set || !odd;
	case BALLOT: return s->form & 16 ? ~odd & set : odd;
	case MATCH_ANY: return same;
	case MATCH_ALL: return equal ? set + 77 : 0;
	case REDUX: return sum;
	case LEADER: return 1;
	case RUNNING: return 1;
	default:
		cell->use = set >> (cell->b & 31) & 1;
		return v[cell->b & 31];
	}
}

/* One step of some lanes: divided into sets, each of which computes. */
static void divide(const struct step *s, struct cell *row, uint32_t lanes)
{
	uint32_t sets = 1 + random_below(4), of[32], before[32];

	memcpy(before, value, sizeof before);
	for (uint32_t i = 0; i < 32; i++)
		of[i] = random_below(sets);
	for (uint32_t k = 0; k < sets; k++) {
		uint32_t set = 0, gone = dead & next_random();

		for (uint32_t i = 0; i < 32; i++)
			set |= (lanes >> i & 1) && of[i] == k ? 1u << i : 0;
		for (uint32_t i = 0; i < 32; i++)
			if (set >> i & 1) {
				uint32_t r;

				row[i].mask = set | gone;
				row[i].b = next_random();
				row[i].use = 1;
				r = expect(s, before, set, i, &row[i]);
				value[i] = row[i].use ? value[i] * 1664525 + r : value[i] + 1;
			}
	}
}

/* The instructions of a step. guard: "@%pt " or nothing. */
static void write_op(const struct step *s, const char *guard)
{
	const char *not = s->form & 16 ? "!" : "";

	switch (s->op) {
	case SHFL:
		emit("%sshfl.sync.%s.b32 %%res|%%pq, %%v, %%b, %u, %%m;\n@%%pq add.u32 %%res, %%res, 77;\n", guard, shfl_names[s->form % 4], s->c);
		break;
	case VOTE:
		emit("%svote.sync.%s.pred %%pq, %s%%pv, %%m;\nselp.u32 %%res, 1, 0, %%pq;\n", guard, vote_names[s->form % 3], not);
		break;
	case BALLOT: emit("%svote.sync.ballot.b32 %%res, %s%%pv, %%m;\n", guard, not); break;
	case MATCH_ANY: emit("and.b32 %%t, %%v, 3;\n%smatch.any.sync.b32 %%res, %%t, %%m;\n", guard); break;
	case MATCH_ALL:
		emit("and.b32 %%t, %%v, %u;\n%smatch.all.sync.b32 %%res|%%pq, %%t, %%m;\n@%%pq add.u32 %%res, %%res, 77;\n", s->form & 16 ? 1 : 3, guard);
		break;
	case REDUX: emit("%sredux.sync.%s %%res, %%v, %%m;\n", guard, redux_names[s->form % 8]); break;
	case LEADER: emit("%select.sync %%res|%%pq, %%m;\n%svote.sync.ballot.b32 %%res, %%pq, %%m;\npopc.b32 %%res, %%res;\n", guard, guard); break;
	case RUNNING: emit("%sactivemask.b32 %%res;\nshr.u32 %%res, %%res, %%lane;\nand.b32 %%res, %%res, 1;\n", guard); break;
	default: /* memory that a barrier orders */
		emit("%sst.shared.u32 [%%own], %%v;\n%sbar.warp.sync %%m;\nand.b32 %%t, %%b, 31;\nshl.b32 %%t, %%t, 2;\nmov.u32 %%other, room;\nadd.u32 %%other, %%other, %%t;\n"
		     "%sld.shared.u32 %%res, [%%other];\n%sbar.warp.sync %%m;\n", guard, guard, guard, guard);
	}
}

static void write_use(void)
{
	emit("setp.ne.u32 %%pu, %%u, 0;\nmad.lo.u32 %%t, %%v, 1664525, %%res;\nadd.u32 %%other, %%v, 1;\n"
	     "@%%pt selp.u32 %%v, %%t, %%other, %%pu;\n");
}

/* Reads a row of the table: pt says whether the lane takes part, pv whether its value is odd. */
static void write_row(uint32_t row)
{
	emit("ld.global.v4.u32 {%%m, %%b, %%u, %%side}, [%%cell+%u];\nsetp.ne.u32 %%pt, %%m, 0;\nand.b32 %%t, %%v, 1;\nsetp.ne.u32 %%pv, %%t, 0;\n", row * 512);
}

static void write_head(void)
{
	length = 0;
	emit(".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 4 .b8 room[128];\n.visible .entry k(.param .u64 cells, .param .u64 out)\n{\n"
	     ".reg .pred %%pt, %%pq, %%pv, %%pu, %%ps;\n.reg .b32 %%v, %%res, %%m, %%b, %%u, %%side, %%t, %%lane, %%own, %%other, %%i, %%trips;\n"
	     ".reg .b64 %%cell, %%at, %%off;\n"
	     "mov.u32 %%lane, %%laneid;\nmul.wide.u32 %%off, %%lane, 16;\nld.param.u64 %%cell, [cells];\nadd.s64 %%cell, %%cell, %%off;\n"
	     "mul.wide.u32 %%off, %%lane, 4;\nld.param.u64 %%at, [out];\nadd.s64 %%at, %%at, %%off;\nld.global.u32 %%v, [%%at];\nmov.u32 %%res, 0;\n"
	     "mov.u32 %%own, room;\nshl.b32 %%t, %%lane, 2;\nadd.u32 %%own, %%own, %%t;\n");
}

static uint32_t write_step(uint32_t row)
{
	enum way way = (enum way)random_below(random_below(6) ? EXIT : WAYS);
	uint32_t lanes = random_lanes() & ~dead, trips[32], k;
	struct step s = random_step(), t;

	switch (way) {
	case LINE:
		divide(&s, table[row], lanes);
		write_row(row);
		write_op(&s, "@%pt ");
		write_use();
		return row + 1;
	case BRANCH:
		t = random_step();
		for (uint32_t i = 0; i < 32; i++)
			table[row][i].side = lanes >> i & 1;
		divide(&s, table[row], ~lanes & ~dead);
		divide(&t, table[row], lanes);
		write_row(row);
		emit("setp.ne.u32 %%ps, %%side, 0;\n@%%ps bra side%u;\n", row);
		write_op(&s, "");
		emit("bra met%u;\nside%u:\n", row, row);
		write_op(&t, "");
		emit("met%u:\n", row);
		write_use();
		return row + 1;
	case LOOP:
		if (row + TRIPS > ROWS)
			return row;
		for (uint32_t i = 0; i < 32; i++)
			table[row][i].side = trips[i] = lanes >> i & 1 ? random_below(TRIPS + 1) : 0;
		for (k = 0; k < TRIPS; k++) {
			for (uint32_t i = lanes = 0; i < 32; i++)
				lanes |= trips[i] > k ? 1u << i : 0;
			divide(&s, table[row + k], lanes & ~dead);
		}
		write_row(row);
		emit("mov.u32 %%trips, %%side;\nmov.u32 %%i, 0;\nmov.b64 %%off, %%cell;\nloop%u:\nsetp.ge.u32 %%ps, %%i, %%trips;\n@%%ps bra met%u;\n", row, row);
		write_row(row);
		write_op(&s, "");
		write_use();
		emit("add.s64 %%cell, %%cell, 512;\nadd.u32 %%i, %%i, 1;\nbra loop%u;\nmet%u:\nmov.b64 %%cell, %%off;\n", row, row);
		return row + TRIPS;
	default:
		lanes &= next_random();
		for (uint32_t i = 0; i < 32; i++)
			table[row][i].side = lanes >> i & 1;
		dead |= lanes;
		write_row(row);
		emit("setp.ne.u32 %%ps, %%side, 0;\n@%%ps st.global.u32 [%%at], %%v;\n@%%ps exit;\n");
		return row + 1;
	}
}

static bool run_program(uint64_t which)
{
	struct cell *cells = dev_alloc(sizeof table);
	uint32_t *out = dev_alloc(sizeof value);
	void *params[] = { cells, out };
	struct ptx_module *m;
	struct ptx_fault f;
	char err[256];
	int rc, failed = failures;

	memset(table, 0, sizeof table);
	dead = 0;
	for (uint32_t i = 0; i < 32; i++)
		out[i] = value[i] = next_random();
	write_head();
	for (uint32_t row = 0, tries = 0; row < ROWS && tries < ROWS; tries++)
		row = write_step(row);
	emit("st.global.u32 [%%at], %%v;\nret;\n}\n");
	memcpy(cells, table, sizeof table);
	m = ptx_parse(text, length, err, sizeof err);
	CHECK(m, "program %llu: %s\n%s", (unsigned long long)which, err, text);
	if (m) {
		rc = ptx_launch(kernel_named(m, "k"), (uint32_t[]){ 1, 1, 1 }, (uint32_t[]){ 32, 1, 1 }, 0, params, &dev_memory, &f);
		CHECK(!rc, "program %llu: %s\n%s", (unsigned long long)which, f.text, text);
		for (uint32_t i = 0; !rc && i < 32; i++)
			if (out[i] != value[i]) {
				CHECK(false, "program %llu: lane %u is 0x%08x, want 0x%08x\n%s", (unsigned long long)which, i, out[i], value[i], text);
				break;
			}
		checks++;
	}
	ptx_free(m);
	dev_free_all();
	return failures == failed;
}

/* A lane that its own mask leaves out is an error, and so is a set that never comes together. */
static void test_outside(void)
{
	static const char *const ops[] = { "redux.sync.add.u32 %r, %r, 2;", "vote.sync.ballot.b32 %r, %p, 2;", "match.any.sync.b32 %r, %r, 2;", "shfl.sync.idx.b32 %r, %r, 0, 31, 2;",
	                                   "elect.sync %r|%p, 2;", "bar.warp.sync 2;" };

	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		struct ptx_fault f = { 0 };
		struct ptx_module *m;
		char program[512];

		snprintf(program, sizeof program, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.reg .pred %%p;\n.reg .b32 %%r;\n%s\nret;\n}\n", ops[i]);
		m = load_text(program);
		CHECK(launch(m, "k", 1, 32, 0, &f) && strstr(f.text, "without the lane itself"), "%s: %s", ops[i], f.text);
		ptx_free(m);
	}
	dev_free_all();
}

void test_warp(void)
{
	const char *n = getenv("WARP_PROGRAMS"), *seed = getenv("WARP_SEED");
	uint64_t programs = n ? strtoull(n, NULL, 10) : PROGRAMS;

	for (uint64_t skip = seed ? strtoull(seed, NULL, 10) : 0; skip; skip--)
		next_random();
	test_outside();
	for (uint64_t i = 0; i < programs && run_program(i); i++)
		;
}
