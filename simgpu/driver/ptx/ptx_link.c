/*
 * ptx_link.c: kernels from decoded functions: register rows, frames, shared memory, code with the functions it calls.
 *
 * In:  a module of functions on virtual registers. Out: its kernels, ready to run; and the queries about them.
 * Fails: when memory is short, or a kernel is larger than any device would take. A call that cannot be made (no body,
 *        recursion, other parameters than declared) faults when it is reached.
 *
 * Each function a kernel reaches is placed once, with registers and frame of its own: without recursion no more is needed,
 * and lanes may be in different functions at the same time. Callees lie below their callers, so that the lowest-pc rule
 * finishes a call before the lanes that skipped it run ahead.
 */
#include "ptx_internal.h"

#include <string.h>

#define MAX_REGISTER_BYTES (1u << 26)
#define MAX_FRAME_BYTES (1u << 22)
#define MAX_SHARED_BYTES (48u << 10)

struct linker {
	struct ptx_module *m;
	struct ptx_kernel *k;
	struct func **order;
	uint32_t norder, reg_bytes, frame_bytes, ncode, nrows;
	uint64_t *shared_at; /* offset + 1 of each shared variable in use */
	uint64_t shared_bytes;
	uint32_t dynamic_align;
	bool dynamic;
	const char *error;
};

const ptx_fn *ptx_force_table;

static const ptx_fn *handlers(void)
{
	if (ptx_force_table)
		return ptx_force_table;
#ifdef PTX_X86_VARIANTS
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
		return ptx_table_v3;
#endif
	return ptx_table_base;
}

static uint32_t up(uint32_t v, uint32_t align) { return (v + align - 1) & ~(align - 1); }

enum { NEW, OPEN, PLACED };

static bool callable(const struct func *f, const struct insn *call)
{
	return f->body && !f->entry && !f->register_formals && f->visit != OPEN && f->nin == call->o[2] && f->nout == call->o[3];
}

/* Depth first, callees before callers. Depth is bounded: a chain longer than that is treated as recursion. */
static void visit(struct linker *l, struct func *f, uint32_t depth)
{
	f->visit = OPEN;
	for (uint32_t i = 0; i < f->ncode && !l->error; i++) {
		struct func *g;

		if (f->code[i].op != OP_CALL)
			continue;
		g = l->m->funcs[f->code[i].aux];
		if (g->visit == NEW && depth < 200 && callable(g, &f->code[i]))
			visit(l, g, depth + 1);
	}
	if (l->error)
		return;
	f->visit = PLACED;
	if (!f->offset && !ptx_assign_rows(&l->m->arena, f)) {
		l->error = "out of memory";
		return;
	}
	f->base_reg = l->reg_bytes;
	f->base_frame = l->frame_bytes;
	f->base_pc = l->ncode;
	l->order[l->norder++] = f;
	l->reg_bytes += f->reg_bytes;
	l->frame_bytes = up(l->frame_bytes + f->frame_bytes, 16);
	l->ncode += f->ncode;
	if (l->reg_bytes > MAX_REGISTER_BYTES)
		l->error = "kernel needs too many registers";
	else if (l->frame_bytes > MAX_FRAME_BYTES)
		l->error = "kernel needs too much local memory";
}

static bool row_of_block(const struct vreg *v) { return v->kind == V_SREG && v->value >= SR_CTAID_X && v->value <= SR_CTAID_Z; }

static uint64_t shared_offset(struct linker *l, uint32_t ref)
{
	const struct svar *v = &l->m->shared[ref];

	if (v->dynamic) {
		l->dynamic = true;
		l->dynamic_align = v->align > l->dynamic_align ? v->align : l->dynamic_align;
		return UINT64_MAX;
	}
	if (!l->shared_at[ref]) {
		l->shared_bytes = (l->shared_bytes + v->align - 1) & ~((uint64_t)v->align - 1);
		l->shared_at[ref] = l->shared_bytes + 1;
		l->shared_bytes += v->size;
	}
	return l->shared_at[ref] - 1;
}

static void rows(struct linker *l)
{
	struct ptx_kernel *k = l->k;

	for (int pass = 0; pass < 3; pass++) {
		/* First the static variables, which decide where dynamic shared memory starts. */
		if (pass == 1)
			k->dynamic_base = l->dynamic ? up((uint32_t)l->shared_bytes, l->dynamic_align) : 0;
		for (uint32_t n = 0; n < l->norder; n++) {
			struct func *f = l->order[n];

			for (uint32_t i = 0; i < f->nv; i++) {
				const struct vreg *v = &f->v[i];
				struct init_row *r;
				uint64_t at;

				if (f->offset[i] == UINT32_MAX || (v->kind != V_CONST && v->kind != V_SREG))
					continue;
				at = v->reloc == REL_SHARED ? shared_offset(l, v->ref) : 0;
				if (l->shared_bytes > 1u << 30) {
					l->error = "kernel needs more than 1 GiB of shared memory";
					return;
				}
				/* Then the rows to refill for each block, then the others. */
				if (!pass || (pass == 1) != row_of_block(v))
					continue;
				if (at == UINT64_MAX)
					at = k->dynamic_base;
				r = &k->rows[k->nrows++];
				*r = (struct init_row){ .offset = f->base_reg + f->offset[i], .ref = v->ref, .value = v->value + at, .cls = v->cls, .kind = v->kind,
					.reloc = v->reloc == REL_GLOBAL ? REL_GLOBAL : REL_NONE };
				if (v->reloc == REL_FRAME)
					r->value += f->base_frame;
			}
		}
		if (pass == 1)
			k->nblock_rows = k->nrows;
	}
	if (l->shared_bytes > MAX_SHARED_BYTES)
		l->error = "kernel uses more than 48 KiB of static shared memory";
	k->shared_bytes = (uint32_t)l->shared_bytes;
}

static bool has_cache(uint16_t op) { return (op >= OP_LDG_1 && op <= OP_STX_8) || op == OP_ATOM || op == OP_ASYNC_COPY; }

static void unsupported(struct insn *in, const char *text)
{
	in->op = OP_UNSUPPORTED;
	if (text)
		in->text = text;
}

static void place(struct linker *l, struct func *f, const ptx_fn *table)
{
	struct insn *out = l->k->code + f->base_pc;

	memcpy(out, f->code, sizeof *out * f->ncode);
	for (uint32_t i = 0; i < f->ncode; i++) {
		struct insn *in = &out[i];

		for (uint32_t j = 0; j < (uint32_t)in->ndef + in->nuse; j++)
			in->o[j] = f->base_reg + f->offset[in->o[j]];
		if (in->op == OP_CALL) {
			const struct func *g = l->m->funcs[in->aux];

			if (g->visit == PLACED && g->base_pc < f->base_pc && callable(g, in)) {
				in->aux = g->base_pc;
				in->o[0] = g->base_reg + g->offset[g->ret_row];
			} else {
				unsupported(in, !g->body ? "call of a function without a body" : "recursive or mismatched call");
			}
		} else if (in->op == OP_COPY_FRAME) {
			const struct func *g = l->m->funcs[in->o[2]];
			const struct formal *list = in->sub ? g->out : g->in, *fo;

			if (g->visit != PLACED || g->base_pc >= f->base_pc || in->o[3] >= (in->sub ? g->nout : g->nin)) {
				unsupported(in, !g->body ? "call of a function without a body" : "recursive or mismatched call");
			} else {
				fo = &list[in->o[3]];
				in->imm = fo->size < in->imm ? fo->size : in->imm;
				in->o[in->sub ? 0 : 1] += f->base_frame;
				in->o[in->sub ? 1 : 0] = g->base_frame + fo->offset;
			}
		} else if (has_cache(in->op)) {
			in->aux = l->k->ncache++;
		}
		in->fn = table[in->op];
	}
}

static void kernel(struct linker *l, struct func *f)
{
	struct ptx_module *m = l->m;
	struct ptx_kernel *k = l->k;
	uint32_t nconst = 0;

	*k = (struct ptx_kernel){ .module = m, .f = f };
	for (size_t i = 0; i < m->nfuncs; i++)
		m->funcs[i]->visit = NEW;
	l->order = ptx_alloc(&m->arena, m->nfuncs, sizeof *l->order);
	l->shared_at = ptx_alloc(&m->arena, m->nshared + 1, sizeof *l->shared_at);
	if (!l->order || !l->shared_at) {
		l->error = "out of memory";
		return;
	}
	l->norder = l->reg_bytes = l->frame_bytes = l->ncode = 0;
	l->shared_bytes = 0;
	l->dynamic = false;
	l->dynamic_align = 1;
	visit(l, f, 0);
	if (l->error)
		return;
	for (uint32_t i = 0; i < l->norder; i++)
		for (uint32_t j = 0; j < l->order[i]->nv; j++)
			nconst += l->order[i]->offset[j] != UINT32_MAX && l->order[i]->v[j].kind != V_REG;
	k->rows = ptx_alloc(&m->arena, nconst + 1, sizeof *k->rows);
	k->code = ptx_alloc(&m->arena, l->ncode, sizeof *k->code);
	k->params = ptx_alloc(&m->arena, f->nin + 1, sizeof *k->params);
	if (!k->rows || !k->code || !k->params) {
		l->error = "out of memory";
		return;
	}
	rows(l);
	if (l->error)
		return;
	k->reg_bytes = l->reg_bytes;
	k->frame_bytes = l->frame_bytes;
	k->ncode = l->ncode;
	k->entry = f->base_pc;
	k->nparams = f->nin;
	for (uint32_t i = 0; i < f->nin; i++)
		k->params[i] = (struct ptx_param){ f->in[i].offset, f->in[i].size, f->in[i].align };
	for (uint32_t i = 0; i < l->norder; i++)
		place(l, l->order[i], handlers());
}

const char *ptx_link(struct ptx_module *m)
{
	struct linker l = { .m = m };
	size_t n = 0;

	for (size_t i = 0; i < m->nfuncs; i++)
		n += m->funcs[i]->entry && m->funcs[i]->body;
	m->kernels = ptx_alloc(&m->arena, n + 1, sizeof *m->kernels);
	if (!m->kernels)
		return "out of memory";
	for (size_t i = 0; i < m->nfuncs && !l.error; i++)
		if (m->funcs[i]->entry && m->funcs[i]->body) {
			l.k = &m->kernels[m->nkernels++];
			kernel(&l, m->funcs[i]);
		}
	return l.error;
}

size_t ptx_kernel_count(const struct ptx_module *m) { return m->nkernels; }
struct ptx_kernel *ptx_kernel_at(const struct ptx_module *m, size_t i) { return i < m->nkernels ? &m->kernels[i] : NULL; }
const char *ptx_kernel_name(const struct ptx_kernel *k) { return k->f->name; }
uint32_t ptx_kernel_param_bytes(const struct ptx_kernel *k) { return k->f->param_bytes; }
uint32_t ptx_kernel_shared_bytes(const struct ptx_kernel *k) { return k->shared_bytes; }
uint32_t ptx_kernel_max_threads(const struct ptx_kernel *k) { return k->f->max_threads; }
uint32_t ptx_kernel_local_bytes(const struct ptx_kernel *k) { return k->frame_bytes; }

size_t ptx_kernel_params(const struct ptx_kernel *k, const struct ptx_param **out)
{
	*out = k->params;
	return k->nparams;
}

size_t ptx_global_count(const struct ptx_module *m) { return m->nglobals; }
const struct ptx_global *ptx_global_at(const struct ptx_module *m, size_t i) { return i < m->nglobals ? &m->globals[i]->pub : NULL; }
void ptx_bind(struct ptx_module *m, size_t i, uint64_t addr) { m->globals[i]->bound = addr; }

void ptx_init_global(const struct ptx_module *m, size_t i, void *host)
{
	const struct gvar *g = m->globals[i];

	if (g->pub.init)
		memcpy(host, g->pub.init, g->pub.size);
	else
		memset(host, 0, g->pub.size);
	for (uint32_t r = 0; r < g->nrefs; r++) {
		uint64_t v = m->globals[g->refs[r].ref]->bound + g->refs[r].value;

		memcpy((uint8_t *)host + g->refs[r].offset, &v, sizeof v);
	}
}
