/*
 * ptx_rows.c: register file offsets for a function's virtual registers.
 *
 * In:  a decoded function. Out: f->offset (UINT32_MAX where a register is never used) and f->reg_bytes.
 * Fails: when memory is short.
 */
#include "ptx_internal.h"

bool ptx_assign_rows(struct ptx_arena *a, struct func *f)
{
	uint32_t preds = 0, at;

	f->offset = ptx_alloc(a, f->nv + 1, sizeof *f->offset);
	if (!f->offset)
		return false;
	for (uint32_t i = 0; i < f->nv; i++)
		f->offset[i] = UINT32_MAX;
	for (uint32_t i = 0; i < f->ncode; i++)
		for (uint32_t j = 0; j < (uint32_t)f->code[i].ndef + f->code[i].nuse; j++)
			f->offset[f->code[i].o[j]] = 0;
	f->offset[f->ret_row] = 0;
	for (uint32_t i = 0; i < f->nv; i++)
		if (f->offset[i] == 0 && f->v[i].cls == CLS_PRED)
			f->offset[i] = 4 * preds++;
	at = (4 * preds + 127) & ~127u;
	for (uint32_t i = 0; i < f->nv; i++)
		if (f->offset[i] == 0 && f->v[i].cls != CLS_PRED) {
			f->offset[i] = at;
			at += ptx_class_bytes(f->v[i].cls);
		}
	f->reg_bytes = at;
	return true;
}
