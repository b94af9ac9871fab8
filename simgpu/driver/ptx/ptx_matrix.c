/*
 * ptx_matrix.c: ldmatrix, stmatrix and mma.sync: small matrices whose elements lie in the registers of a whole warp.
 *
 * In:  an instruction that all lanes execute. Out: the matrices in shared memory or registers, as the PTX manual lays them out:
 *      lane 4g + t holds elements of rows g and g + 8, from column 2t (or 4t, or t) on.
 * Fails: with a fault if a lane is missing, or for an address outside shared memory.
 *
 * Products are summed in float in the order of the columns. A device sums in another order and with other roundings.
 */
#include "ptx_half.h"
#include "ptx_internal.h"
#include "ptx_float8.h"

#include <string.h>

static uint32_t word(const struct warp *w, uint32_t offset, uint32_t lane) { return (uint32_t)ptx_lane(w, offset, CLS_W32, lane); }

/* Lane 8k + i has the address of row i of matrix k. Rows are eight elements of 16 bits. */
static const struct insn *rows(struct warp *w, const struct insn *in)
{
	bool load = in->op == OP_LDMATRIX, trans = in->aux;
	uint32_t n = in->vec, reg = load ? 0 : 1, address = load ? n : 0;
	uint16_t *row[32];

	for (uint32_t i = 0; i < 8 * n; i++) {
		uint64_t at = ptx_lane(w, in->o[address], in->sub & MEM_ADDR32 ? CLS_W32 : CLS_W64, i) + (uint64_t)in->imm;

		if (in->sub >> MEM_SPACE == SP_GENERIC && (at & PTX_WINDOW_MASK) != PTX_SHARED_WINDOW)
			return ptx_fault_at(w, in, i, PTX_ILLEGAL_ADDRESS, at, "address 0x%llx is outside shared memory", (unsigned long long)at);
		row[i] = (uint16_t *)(void *)ptx_resolve(w, in, i, at, 16);
		if (!row[i])
			return NULL;
	}
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
			uint32_t i = lane / 4, j = lane % 4 * 2;
			/* mutant: transposed matrices */
			uint16_t *lo = trans ? &row[8 * k + j][i] : &row[8 * k + i][j], *hi = trans ? &row[8 * k + j + 1][i] : &row[8 * k + i][j + 1];

			/* mutant: matrices to memory */
			if (load) {
				ptx_set_lane(w, in->o[reg + k], CLS_W32, lane, *lo | (uint32_t)*hi << 16);
			} else {
				uint32_t v = word(w, in->o[reg + k], lane);

				*lo = (uint16_t)v;
				*hi = (uint16_t)(v >> 16);
			}
		}
	return in + 1;
}

/* Element c of the row of an operand whose elements have the given width. */
static float element(uint32_t v, uint32_t at, enum ptx_matrix_type t)
{
	switch (t) {
	case MX_BF16: return bfloat_float(v >> 16 * at & 0xffff);
	case MX_F16: return half_float(v >> 16 * at & 0xffff);
	case MX_E4M3: return e4m3_float((uint8_t)(v >> 8 * at));
	case MX_E5M2: return e5m2_float((uint8_t)(v >> 8 * at));
	/* mutant: operands are rounded to TF32 */
	case MX_TF32: return bits_float(v & 0xffffe000);
	case MX_S8: return (int8_t)(v >> 8 * at);
	default: return (uint8_t)(v >> 8 * at);
	}
}

/* The matrix A of 16 rows or the transpose of B of 8, k columns: registers hold rows g and g + 8 first, then columns further right. */
static void unpack(const struct warp *w, const uint32_t *regs, uint32_t halves, uint32_t k, enum ptx_matrix_type t, float m[][64])
{
	uint32_t per = t == MX_TF32 ? 1 : t == MX_BF16 || t == MX_F16 ? 2 : 4, span = 4 * per;

	for (uint32_t r = 0; r < halves * k / span; r++)
		for (uint32_t lane = 0; lane < PTX_LANES; lane++)
			for (uint32_t e = 0; e < per; e++)
				m[lane / 4 + 8 * (r % halves)][r / halves * span + lane % 4 * per + e] = element(word(w, regs[r], lane), e, t);
}

/* in[-2] has the registers of A and B, in[-1] those of C, in itself those of D. size: columns of A. */
const struct insn *ptx_mma(struct warp *w, const struct insn *in)
{
	const struct insn *ab = in - 2, *c = in - 1;
	bool whole = in->sub == MX_S8 || in->sub == MX_U8, half = in->cls == CLS_W16;
	uint32_t na = ab->vec;
	float a[16][64], b[8][64], sum[PTX_LANES][4];
	int32_t isum[PTX_LANES][4];

	unpack(w, ab->o, 2, in->size, (enum ptx_matrix_type)in->sub, a);
	unpack(w, ab->o + na, 1, in->size, (enum ptx_matrix_type)in->vec, b);
	for (uint32_t lane = 0; lane < PTX_LANES; lane++)
		for (uint32_t e = 0; e < 4; e++) {
			uint32_t i = lane / 4 + 8 * (e / 2), j = lane % 4 * 2 + e % 2, v = word(w, c->o[half ? e / 2 : e], lane);
			float s = half ? half_float(v >> 16 * (e % 2) & 0xffff) : bits_float(v);
			int64_t n = (int32_t)v;

			for (uint32_t k = 0; k < in->size; k++) {
				n += whole ? (int64_t)a[i][k] * (int64_t)b[j][k] : 0;
				/* mutant: products of floats */
				s += a[i][k] * b[j][k];
			}
			sum[lane][e] = s;
			/* mutant: sums of integers that saturate */
			isum[lane][e] = in->aux ? (int32_t)(n > INT32_MAX ? INT32_MAX : n < INT32_MIN ? INT32_MIN : n) : (int32_t)(uint32_t)n;
		}
	for (uint32_t lane = 0; lane < PTX_LANES; lane++)
		for (uint32_t e = 0; e < (half ? 2 : 4); e++)
			ptx_set_lane(w, in->o[e], CLS_W32, lane,
			             half ? float_half(sum[lane][2 * e]) | float_half(sum[lane][2 * e + 1]) << 16 : whole ? (uint32_t)isum[lane][e] : float_bits(sum[lane][e]));
	return in + 1;
}

static const struct insn *matrix(struct warp *w, const struct insn *in)
{
	/* mutant: lanes of a matrix */
	if (w->mask != UINT32_MAX)
		return ptx_fault_at(w, in, (uint32_t)__builtin_ctz(w->mask), PTX_ILLEGAL_ADDRESS, 0, "not all 32 lanes of the warp take part");
	return in->op == OP_MMA ? ptx_mma(w, in) : rows(w, in);
}

const struct insn *ptx_matrix(struct warp *w, const struct insn *in)
{
	uint32_t all[PTX_LANES];

	if (w->mask == UINT32_MAX)
		return matrix(w, in);
	memset(all, 0xff, sizeof all);
	return ptx_sync(w, in, all, matrix);
}
