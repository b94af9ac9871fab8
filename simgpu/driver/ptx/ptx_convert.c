/*
 * ptx_convert.c: cvt between any two types, lane by lane, and access to single lanes of registers.
 *
 * In:  an OP_CVT instruction: o[0], o[1] registers, o[4] the source type, o[5] the type of the result, imm rounding and flags. An 8-bit
 *      floating-point type stands for two numbers, the first one above: to them, o[1] and o[2] or both halves of o[1] are converted.
 * Out: the converted lanes. Fails: never; the decoder admits only combinations that are handled.
 */
#include "ptx_float8.h"
#include "ptx_half.h"
#include "ptx_internal.h"

#include <fenv.h>
#include <math.h>

#ifndef __clang__
#pragma GCC optimize("no-fast-math", "rounding-math", "fp-contract=off")
#endif

uint64_t ptx_lane(const struct warp *w, uint32_t offset, uint8_t cls, uint32_t lane)
{
	uint64_t v = 0;
	uint32_t u;

	if (cls == CLS_W64) {
		memcpy(&v, w->regs + offset + lane * 8, 8);
		return v;
	}
	memcpy(&u, w->regs + offset + lane * 4, 4);
	return u;
}

void ptx_set_lane(struct warp *w, uint32_t offset, uint8_t cls, uint32_t lane, uint64_t v)
{
	uint32_t u = (uint32_t)(cls == CLS_W16 ? v & 0xffff : v);

	if (cls == CLS_W64)
		memcpy(w->regs + offset + lane * 8, &v, 8);
	else
		memcpy(w->regs + offset + lane * 4, &u, 4);
}

static const int modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };

static int bits_of(enum ptx_type t)
{
	switch (t) {
	case TY_B8: case TY_U8: case TY_S8: return 8;
	case TY_B16: case TY_U16: case TY_S16: case TY_F16: case TY_BF16: return 16;
	case TY_B64: case TY_U64: case TY_S64: case TY_F64: return 64;
	default: return 32;
	}
}

static bool is_signed(enum ptx_type t) { return t == TY_S8 || t == TY_S16 || t == TY_S32 || t == TY_S64; }
static bool is_float(enum ptx_type t) { return t >= TY_F16; }

static double to_double(uint64_t v, enum ptx_type t)
{
	switch (t) {
	case TY_F16: return half_float((uint32_t)v & 0xffff);
	case TY_BF16: return bfloat_float((uint32_t)v & 0xffff);
	case TY_F32: return bits_float((uint32_t)v);
	default: return bits_double(v);
	}
}

static double round_to_int(double d, int mode)
{
	switch (mode) {
	case CVT_RZ: return trunc(d);
	case CVT_RM: return floor(d);
	case CVT_RP: return ceil(d);
	default: return nearbyint(d);
	}
}

/* Out-of-range values clamp to the type's ends; NaN becomes 0 (for 64-bit results, the most negative bit pattern). */
static uint64_t float_to_int(double d, enum ptx_type t, int mode)
{
	int n = bits_of(t);
	double hi = ldexp(1, is_signed(t) ? n - 1 : n), lo = is_signed(t) ? -hi : 0;

	if (isnan(d))
		return n == 64 ? 0x8000000000000000ull : 0;
	d = round_to_int(d, mode);
	if (is_signed(t)) {
		if (d >= hi)
			return (1ull << (n - 1)) - 1;
		return d < lo ? 0 - (1ull << (n - 1)) : (uint64_t)(int64_t)d;
	}
	if (d >= hi)
		return n == 64 ? UINT64_MAX : (1ull << n) - 1;
	return d <= lo ? 0 : (uint64_t)d;
}

/* Half or bfloat bits of a float that is exact or rounded to odd, truncated toward zero unless mode is nearest. */
static uint32_t narrow(float f, enum ptx_type t, int mode)
{
	uint32_t h = t == TY_F16 ? float_half(f) : float_bfloat(f);
	float back = t == TY_F16 ? half_float(h) : bfloat_float(h);
	bool up;

	if (mode == CVT_RN || isnan(f) || back == f)
		return h;
	up = mode == CVT_RP || (mode == CVT_RZ && f < 0);
	if (up && back < f)
		return h == 0x8000 ? 1 : back < 0 ? h - 1 : h + 1;
	if (!up && back > f)
		return h == 0 ? 0x8001 : back > 0 ? h - 1 : h + 1;
	return h;
}

static uint64_t from_double(double d, enum ptx_type t, int mode)
{
	volatile double v = d;
	volatile float f;

	switch (t) {
	case TY_F64: return double_bits(d);
	case TY_F32:
		fesetround(modes[mode]);
		f = (float)v;
		fesetround(FE_TONEAREST);
		return isnan(d) ? 0x7fffffff : float_bits(f);
	default: return narrow(double_float_odd(d), t, mode);
	}
}

static uint64_t int_to_float(uint64_t v, bool neg, enum ptx_type t, int mode)
{
	volatile uint64_t u = v;
	volatile int64_t s = (int64_t)v;
	volatile float f;
	volatile double d;

	fesetround(modes[mode]);
	f = neg ? (float)s : (float)u;
	d = neg ? (double)s : (double)u;
	fesetround(FE_TONEAREST);
	if (t == TY_F32)
		return float_bits(f);
	if (t == TY_F64)
		return double_bits(d);
	/* Values beyond 2^53 overflow a half anyway; a bfloat keeps 8 bits, so setting the last bit of an inexact double suffices. */
	d = neg ? (double)s : (double)u;
	return narrow(double_float_odd(d), t, mode);
}

static double flush(double d) { return fabs(d) < 0x1p-126 ? copysign(0, d) : d; }

static uint64_t convert(uint64_t v, enum ptx_type from, enum ptx_type to, int64_t flags)
{
	int mode = (int)(flags & CVT_MODE), n = bits_of(from), m = bits_of(to);
	double d;

	if (!is_float(from)) {
		bool neg;

		if (n < 64)
			v = is_signed(from) ? (uint64_t)((int64_t)(v << (64 - n)) >> (64 - n)) : v & ((1ull << n) - 1);
		neg = is_signed(from) && (int64_t)v < 0;
		if (is_float(to)) {
			v = int_to_float(v, neg, to, mode);
			return flags & CVT_SAT ? convert(v, to, to, CVT_SAT) : v;
		}
		if (flags & CVT_SAT) {
			if (is_signed(to)) {
				int64_t hi = (int64_t)((1ull << (m - 1)) - 1), lo = -hi - 1;

				v = neg ? ((int64_t)v < lo ? (uint64_t)lo : v) : v > (uint64_t)hi ? (uint64_t)hi : v;
			} else {
				uint64_t hi = m == 64 ? UINT64_MAX : (1ull << m) - 1;

				v = neg ? 0 : v > hi ? hi : v;
			}
		}
		return m < 64 && !is_signed(to) ? v & ((1ull << m) - 1) : m < 64 ? (uint64_t)((int64_t)(v << (64 - m)) >> (64 - m)) : v;
	}
	d = to_double(v, from);
	if (flags & CVT_FTZ && from == TY_F32)
		d = flush(d);
	if (!is_float(to))
		return float_to_int(d, to, mode);
	if (flags & CVT_TO_INT)
		d = round_to_int(d, mode);
	if (flags & CVT_SAT)
		d = d > 0 ? d < 1 ? d : 1 : 0;
	if (flags & CVT_RELU && d < 0)
		d = 0;
	if (flags & CVT_TF32)
		return isnan(d) ? 0x7fffffff : (v + 0x1000) & 0xffffe000;
	if (flags & CVT_FTZ && to == TY_F32)
		d = flush(d);
	return from_double(d, to, flags & CVT_TO_INT ? CVT_RN : mode);
}

static bool is_pair(enum ptx_type t) { return t == TY_E4M3X2 || t == TY_E5M2X2; }

/* A half has room for every 8-bit number. */
static uint64_t from_pair(uint64_t v, enum ptx_type from, bool relu)
{
	uint32_t half[2];

	for (int i = 0; i < 2; i++) {
		float f = from == TY_E4M3X2 ? e4m3_float((uint8_t)(v >> 8 * i)) : e5m2_float((uint8_t)(v >> 8 * i));

		half[i] = float_half(relu && f < 0 ? 0 : f);
	}
	return half[0] | half[1] << 16;
}

static uint64_t to_pair(const struct warp *w, const struct insn *in, uint32_t lane, enum ptx_type from, enum ptx_type to)
{
	uint64_t first = ptx_lane(w, in->o[1], CLS_W32, lane), v = 0;
	double d[2] = { to_double(first & 0xffff, TY_F16), to_double(first >> 16, TY_F16) };

	if (from == TY_F32) {
		d[0] = to_double(ptx_lane(w, in->o[2], CLS_W32, lane), TY_F32);
		d[1] = to_double(first, TY_F32);
	}
	for (int i = 0; i < 2; i++)
		v |= (uint64_t)float8_of(in->imm & CVT_RELU && d[i] < 0 ? 0 : d[i], to == TY_E4M3X2 ? 3 : 2) << 8 * i;
	return v;
}

const struct insn *ptx_convert(struct warp *w, const struct insn *in)
{
	enum ptx_type from = (enum ptx_type)in->o[4], to = (enum ptx_type)in->o[5];

	for (uint32_t m = w->mask; m; m &= m - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(m);
		uint64_t v = is_pair(to) ? to_pair(w, in, lane, from, to) : ptx_lane(w, in->o[1], in->size, lane);

		if (is_pair(from))
			v = from_pair(v, from, in->imm & CVT_RELU);
		else if (!is_pair(to))
			v = convert(v, from, to, in->imm);

		ptx_set_lane(w, in->o[0], in->cls, lane, v);
	}
	return in + 1;
}
