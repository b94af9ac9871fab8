/*
 * ptx_ops_test.c: one instruction at a time against a host expression, in every instruction set the host offers, with all
 * lanes and with every third lane switched off.
 *
 * Inputs mix random bits with the values at the edges of each type. Results must agree in every bit; NaNs count as equal.
 */
#include "ptx_test.h"
#include "../driver/ptx/ptx_half.h"
#include "../driver/ptx/ptx_internal.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;

#define N 2048
#define F(x) bits_float((u32)(x))
#define D(x) bits_double(x)
#define H(x) half_float((u32)(x) & 0xffff)
#define B(x) bfloat_float((u32)(x) & 0xffff)
#define FB(x) float_bits(x)
#define DB(x) double_bits(x)
#define SETP(type, cmp) "{.reg .pred p; setp." cmp "." type " p, a, b; selp.b32 d, 1, 0, p;}"

static u64 field(u64 a, u32 pos, u32 len, int width, bool sign)
{
	u64 r = 0;
	u64 top = sign && len ? (pos + len - 1 > (u32)width - 1 ? (u32)width - 1 : pos + len - 1) : 0;

	for (u32 i = 0; i < (u32)width; i++) {
		u64 bit = i < len && pos + i < (u32)width ? a >> (pos + i) & 1 : sign && len ? a >> top & 1 : 0;

		r |= bit << i;
	}
	return r;
}

static u32 permute(u32 a, u32 b, u32 c)
{
	u64 v = (u64)b << 32 | a;
	u32 r = 0;

	for (int i = 0; i < 4; i++) {
		u32 s = c >> (4 * i) & 15, x = (u32)(v >> (8 * (s & 7))) & 255;

		r |= (s & 8 ? (x & 128 ? 255 : 0) : x) << (8 * i);
	}
	return r;
}

static float directed(int mode, float (*op)(float, float, float), float a, float b, float c)
{
	volatile float r;

	fesetround(mode);
	r = op(a, b, c);
	fesetround(FE_TONEAREST);
	return r;
}
static float add3(float a, float b, float c) { (void)c; volatile float r = a + b; return r; }
static float mul3(float a, float b, float c) { (void)c; volatile float r = a * b; return r; }
static float fma3(float a, float b, float c) { volatile float r = fmaf(a, b, c); return r; }
static float div3(float a, float b, float c) { (void)c; volatile float r = a / b; return r; }
static float flush(float f) { return fpclassify(f) == FP_SUBNORMAL ? copysignf(0, f) : f; }
static float least(float a, float b) { return isnan(a) ? b : isnan(b) ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b; }
static float most(float a, float b) { return isnan(a) ? b : isnan(b) ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b; }
static s32 to_s32(double d) { return isnan(d) ? 0 : d >= 2147483648.0 ? INT32_MAX : d < -2147483648.0 ? INT32_MIN : (s32)d; }
static u32 to_u32(double d) { return isnan(d) || d <= 0 ? 0 : d >= 4294967296.0 ? UINT32_MAX : (u32)d; }
static u32 half_of(double d) { return float_half(double_float_odd(d)); }

/* id, instruction, bits of d a b c, kind of inputs (i integer, f float, d double, h half, b bfloat, s small integer), result */
#define CASES(X) \
	X(add32, "add.s32 d, a, b;", 32, 32, 32, 0, "ii", (u32)(a + b)) \
	X(add16, "add.u16 d, a, b;", 16, 16, 16, 0, "ii", (u16)(a + b)) \
	X(add64, "add.s64 d, a, b;", 64, 64, 64, 0, "ii", a + b) \
	X(addsat, "add.sat.s32 d, a, b;", 32, 32, 32, 0, "ii", (u32)to_s32((double)(s32)a + (s32)b)) \
	X(sub16, "sub.s16 d, a, b;", 16, 16, 16, 0, "ii", (u16)(a - b)) \
	X(sub64, "sub.u64 d, a, b;", 64, 64, 64, 0, "ii", a - b) \
	X(mul32, "mul.lo.s32 d, a, b;", 32, 32, 32, 0, "ii", (u32)(a * b)) \
	X(mul16, "mul.lo.u16 d, a, b;", 16, 16, 16, 0, "ii", (u16)(a * b)) \
	X(mul64, "mul.lo.u64 d, a, b;", 64, 64, 64, 0, "ii", a * b) \
	X(mulhi_u, "mul.hi.u32 d, a, b;", 32, 32, 32, 0, "ii", (u32)(a * b >> 32)) \
	X(mulhi_s, "mul.hi.s32 d, a, b;", 32, 32, 32, 0, "ii", (u32)((u64)((s64)(s32)a * (s32)b) >> 32)) \
	X(mulhi_64, "mul.hi.u64 d, a, b;", 64, 64, 64, 0, "ii", (u64)((unsigned __int128)a * b >> 64)) \
	X(mulhi_s64, "mul.hi.s64 d, a, b;", 64, 64, 64, 0, "ii", (u64)((__int128)(s64)a * (s64)b >> 64)) \
	X(wide_u, "mul.wide.u32 d, a, b;", 64, 32, 32, 0, "ii", a * b) \
	X(wide_s, "mul.wide.s32 d, a, b;", 64, 32, 32, 0, "ii", (u64)((s64)(s32)a * (s32)b)) \
	X(wide_s16, "mul.wide.s16 d, a, b;", 32, 16, 16, 0, "ii", (u32)((s16)a * (s16)b)) \
	X(madwide, "mad.wide.u32 d, a, b, c;", 64, 32, 32, 64, "iii", a * b + c) \
	X(mad, "mad.lo.s32 d, a, b, c;", 32, 32, 32, 32, "iii", (u32)(a * b + c)) \
	X(madhi, "mad.hi.u32 d, a, b, c;", 32, 32, 32, 32, "iii", (u32)((a * b >> 32) + c)) \
	X(mul24, "mul24.lo.s32 d, a, b;", 32, 32, 32, 0, "ii", (u32)((s64)((s32)(a << 8) >> 8) * ((s32)(b << 8) >> 8))) \
	X(div_u, "div.u32 d, a, b;", 32, 32, 32, 0, "ii", (u32)b ? (u32)a / (u32)b : UINT32_MAX) \
	X(div_s, "div.s32 d, a, b;", 32, 32, 32, 0, "ii", (u32)b ? (u32)((s64)(s32)a / (s32)b) : UINT32_MAX) \
	X(rem_s, "rem.s32 d, a, b;", 32, 32, 32, 0, "ii", (u32)b ? (u32)((s64)(s32)a % (s32)b) : a) \
	X(rem_u64, "rem.u64 d, a, b;", 64, 64, 64, 0, "ii", b ? a % b : a) \
	X(div_s16, "div.s16 d, a, b;", 16, 16, 16, 0, "ii", (u16)b ? (u16)((s32)(s16)a / (s16)b) : 0xffff) \
	X(min_s, "min.s32 d, a, b;", 32, 32, 32, 0, "ii", (s32)a < (s32)b ? a : b) \
	X(max_u, "max.u32 d, a, b;", 32, 32, 32, 0, "ii", a > b ? a : b) \
	X(min_s16, "min.s16 d, a, b;", 16, 16, 16, 0, "ii", (s16)a < (s16)b ? a : b) \
	X(max_s64, "max.s64 d, a, b;", 64, 64, 64, 0, "ii", (s64)a > (s64)b ? a : b) \
	X(abs32, "abs.s32 d, a;", 32, 32, 0, 0, "i", (s32)a < 0 ? (u32)(0 - a) : a) \
	X(neg64, "neg.s64 d, a;", 64, 64, 0, 0, "i", 0 - a) \
	X(sad, "sad.s32 d, a, b, c;", 32, 32, 32, 32, "iii", (u32)(((s32)a > (s32)b ? a - b : b - a) + c)) \
	X(and16, "and.b16 d, a, b;", 16, 16, 16, 0, "ii", a & b) \
	X(not16, "not.b16 d, a;", 16, 16, 0, 0, "i", (u16)~a) \
	X(xor64, "xor.b64 d, a, b;", 64, 64, 64, 0, "ii", a ^ b) \
	X(cnot, "cnot.b32 d, a;", 32, 32, 0, 0, "i", a == 0) \
	X(shl32, "shl.b32 d, a, b;", 32, 32, 32, 0, "is", b > 31 ? 0 : (u32)(a << b)) \
	X(shl64, "shl.b64 d, a, b;", 64, 64, 32, 0, "is", b > 63 ? 0 : a << b) \
	X(shr_u32, "shr.u32 d, a, b;", 32, 32, 32, 0, "is", b > 31 ? 0 : a >> b) \
	X(shr_s32, "shr.s32 d, a, b;", 32, 32, 32, 0, "is", (u32)((s32)a >> (b > 31 ? 31 : b))) \
	X(shr_s16, "shr.s16 d, a, b;", 16, 16, 32, 0, "is", (u16)((s16)a >> (b > 15 ? 15 : b))) \
	X(shr_s64, "shr.s64 d, a, b;", 64, 64, 32, 0, "is", (u64)((s64)a >> (b > 63 ? 63 : b))) \
	X(popc, "popc.b64 d, a;", 32, 64, 0, 0, "i", (u64)__builtin_popcountll(a)) \
	X(clz, "clz.b32 d, a;", 32, 32, 0, 0, "i", a ? (u64)__builtin_clz((u32)a) : 32) \
	X(brev, "brev.b32 d, a;", 32, 32, 0, 0, "i", ({ u32 r = 0; for (int i = 0; i < 32; i++) r |= (u32)(a >> i & 1) << (31 - i); r; })) \
	X(bfind_s, "bfind.s32 d, a;", 32, 32, 0, 0, "i", ({ u32 v = (s32)a < 0 ? ~(u32)a : (u32)a; v ? (u32)(31 - __builtin_clz(v)) : UINT32_MAX; })) \
	X(bfe_u, "bfe.u32 d, a, b, c;", 32, 32, 32, 32, "iss", field(a, b & 255, c & 255, 32, false)) \
	X(bfe_s, "bfe.s32 d, a, b, c;", 32, 32, 32, 32, "iss", field(a, b & 255, c & 255, 32, true)) \
	X(bfe_s64, "bfe.s64 d, a, b, c;", 64, 64, 32, 32, "iss", field(a, b & 255, c & 255, 64, true)) \
	X(bfi, "bfi.b32 d, a, b, c, 9;", 32, 32, 32, 32, "iis", ({ u32 p = c & 255, m = p > 31 ? 0 : 511u << p; (u32)((b & ~m) | ((p > 31 ? 0 : a << p) & m)); })) \
	X(prmt, "prmt.b32 d, a, b, c;", 32, 32, 32, 32, "iii", permute((u32)a, (u32)b, (u32)c)) \
	X(shf_l, "shf.l.wrap.b32 d, a, b, c;", 32, 32, 32, 32, "iis", (u32)((b << 32 | a) << (c & 31) >> 32)) \
	X(shf_r, "shf.r.clamp.b32 d, a, b, c;", 32, 32, 32, 32, "iis", (u32)((b << 32 | a) >> (c > 32 ? 32 : c))) \
	X(lop3, "lop3.b32 d, a, b, c, 0xca;", 32, 32, 32, 32, "iii", (a & b) | (~a & c & UINT32_MAX)) \
	X(dp4a, "dp4a.s32.u32 d, a, b, c;", 32, 32, 32, 32, "iii", ({ u32 r = (u32)c; for (int i = 0; i < 4; i++) r += (u32)((s32)(int8_t)(a >> (8 * i)) * (s32)(b >> (8 * i) & 255)); r; })) \
	X(carry, "{.reg .b32 l, h, x, y, z, w; mov.b64 {l, h}, a; mov.b64 {x, y}, b; add.cc.u32 z, l, x; addc.u32 w, h, y; mov.b64 d, {z, w};}", 64, 64, 64, 0, "ii", a + b) \
	X(borrow, "{.reg .b32 l, h, x, y, z, w; mov.b64 {l, h}, a; mov.b64 {x, y}, b; sub.cc.u32 z, l, x; subc.u32 w, h, y; mov.b64 d, {z, w};}", 64, 64, 64, 0, "ii", a - b) \
	X(pack4, "{.reg .b16 w, x, y, z; mov.b64 {w, x, y, z}, a; mov.b64 d, {z, y, x, w};}", 64, 64, 0, 0, "i", a >> 48 | (a >> 32 & 0xffff) << 16 | (a >> 16 & 0xffff) << 32 | a << 48) \
	X(slct, "slct.b32.s32 d, a, b, c;", 32, 32, 32, 32, "iii", (s32)c >= 0 ? a : b) \
	X(setp_s, SETP("s32", "lt"), 32, 32, 32, 0, "ii", (s32)a < (s32)b) \
	X(setp_u, SETP("u32", "hs"), 32, 32, 32, 0, "ii", a >= b) \
	X(setp_16, SETP("s16", "ge"), 32, 16, 16, 0, "ii", (s16)a >= (s16)b) \
	X(setp_64, SETP("u64", "le"), 32, 64, 64, 0, "ii", a <= b) \
	X(setp_q, "{.reg .pred p, q, r; setp.ne.s32 r, c, 0; setp.gt.and.s32 p|q, a, b, !r; selp.b32 d, 1, 0, p; @q add.s32 d, d, 2;}", 32, 32, 32, 32, "iis", \
	  c ? 0 : (s32)a > (s32)b ? 1 : 2) \
	X(setp_f, SETP("f32", "lt"), 32, 32, 32, 0, "ff", F(a) < F(b)) \
	X(setp_ne, SETP("f32", "ne"), 32, 32, 32, 0, "ff", F(a) < F(b) || F(a) > F(b)) \
	X(setp_geu, SETP("f32", "geu"), 32, 32, 32, 0, "ff", !(F(a) < F(b))) \
	X(setp_nan, SETP("f64", "nan"), 32, 64, 64, 0, "dd", isnan(D(a)) || isnan(D(b))) \
	X(setp_h, SETP("f16", "gt"), 32, 16, 16, 0, "hh", H(a) > H(b)) \
	X(set, "set.le.u32.f32 d, a, b;", 32, 32, 32, 0, "ff", F(a) <= F(b) ? UINT32_MAX : 0) \
	X(fadd, "add.f32 d, a, b;", 32, 32, 32, 0, "ff", FB(F(a) + F(b))) \
	X(fadd_rz, "add.rz.f32 d, a, b;", 32, 32, 32, 0, "ff", FB(directed(FE_TOWARDZERO, add3, F(a), F(b), 0))) \
	X(fadd_ftz, "add.ftz.f32 d, a, b;", 32, 32, 32, 0, "ff", FB(flush(flush(F(a)) + flush(F(b))))) \
	X(fsub_rm, "sub.rm.f32 d, a, b;", 32, 32, 32, 0, "ff", FB(directed(FE_DOWNWARD, add3, F(a), -F(b), 0))) \
	X(fmul, "mul.f32 d, a, b;", 32, 32, 32, 0, "ff", FB(F(a) * F(b))) \
	X(fmul_ftz, "mul.ftz.f32 d, a, b;", 32, 32, 32, 0, "ff", FB(flush(flush(F(a)) * flush(F(b))))) \
	X(fmul_rp, "mul.rp.f32 d, a, b;", 32, 32, 32, 0, "ff", FB(directed(FE_UPWARD, mul3, F(a), F(b), 0))) \
	X(fmul_sat, "mul.sat.f32 d, a, b;", 32, 32, 32, 0, "ff", ({ float r = F(a) * F(b); FB(isnan(r) || r <= 0 ? 0 : r > 1 ? 1 : r); })) \
	X(fma, "fma.rn.f32 d, a, b, c;", 32, 32, 32, 32, "fff", FB(fmaf(F(a), F(b), F(c)))) \
	X(fma_rm, "fma.rm.f32 d, a, b, c;", 32, 32, 32, 32, "fff", FB(directed(FE_DOWNWARD, fma3, F(a), F(b), F(c)))) \
	X(muladd, "{.reg .b32 t; mul.f32 t, a, b; add.f32 d, t, c;}", 32, 32, 32, 32, "fff", ({ volatile float t = F(a) * F(b); FB(t + F(c)); })) \
	X(dfma, "fma.rn.f64 d, a, b, c;", 64, 64, 64, 64, "ddd", DB(fma(D(a), D(b), D(c)))) \
	X(dadd, "add.f64 d, a, b;", 64, 64, 64, 0, "dd", DB(D(a) + D(b))) \
	X(fdiv, "div.rn.f32 d, a, b;", 32, 32, 32, 0, "ff", FB(F(a) / F(b))) \
	X(fdiv_rz, "div.rz.f32 d, a, b;", 32, 32, 32, 0, "ff", FB(directed(FE_TOWARDZERO, div3, F(a), F(b), 0))) \
	X(ddiv, "div.rn.f64 d, a, b;", 64, 64, 64, 0, "dd", DB(D(a) / D(b))) \
	X(sqrt, "sqrt.rn.f32 d, a;", 32, 32, 0, 0, "f", FB(sqrtf(F(a)))) \
	X(rcp, "rcp.rn.f32 d, a;", 32, 32, 0, 0, "f", FB(1 / F(a))) \
	X(rcp_ftz, "rcp.rn.ftz.f32 d, a;", 32, 32, 0, 0, "f", FB(flush(1 / flush(F(a))))) \
	X(rcp_rp, "rcp.rp.f32 d, a;", 32, 32, 0, 0, "f", FB(directed(FE_UPWARD, div3, 1, F(a), 0))) \
	X(fmin, "min.f32 d, a, b;", 32, 32, 32, 0, "ff", FB(least(F(a), F(b)))) \
	X(fmax, "max.f32 d, a, b;", 32, 32, 32, 0, "ff", FB(most(F(a), F(b)))) \
	X(fmaxnan, "max.NaN.f32 d, a, b;", 32, 32, 32, 0, "ff", isnan(F(a)) || isnan(F(b)) ? 0x7fffffff : FB(most(F(a), F(b)))) \
	X(fneg, "neg.f32 d, a;", 32, 32, 0, 0, "f", a ^ 0x80000000u) \
	X(dabs, "abs.f64 d, a;", 64, 64, 0, 0, "d", a & INT64_MAX) \
	X(copysign, "copysign.f32 d, a, b;", 32, 32, 32, 0, "ff", (b & 0x7fffffff) | (a & 0x80000000u)) \
	X(testp, "{.reg .pred p; testp.subnormal.f32 p, a; selp.b32 d, 1, 0, p;}", 32, 32, 0, 0, "f", fpclassify(F(a)) == FP_SUBNORMAL) \
	X(hadd, "add.f16 d, a, b;", 16, 16, 16, 0, "hh", half_of((double)H(a) + H(b))) \
	X(hmul, "mul.rn.f16 d, a, b;", 16, 16, 16, 0, "hh", half_of((double)H(a) * H(b))) \
	X(hfma, "fma.rn.f16 d, a, b, c;", 16, 16, 16, 16, "hhh", half_of(fma((double)H(a), H(b), H(c)))) \
	X(hfma2, "fma.rn.f16x2 d, a, b, c;", 32, 32, 32, 32, "hhh", \
	  half_of(fma((double)H(a), H(b), H(c))) | half_of(fma((double)H(a >> 16), H(b >> 16), H(c >> 16))) << 16) \
	X(hmax, "max.f16 d, a, b;", 16, 16, 16, 0, "hh", float_half(most(H(a), H(b)))) \
	X(hneg2, "neg.f16x2 d, a;", 32, 32, 0, 0, "h", a ^ 0x80008000u) \
	X(badd, "add.rn.bf16 d, a, b;", 16, 16, 16, 0, "bb", float_bfloat(B(a) + B(b))) \
	X(bfma2, "fma.rn.bf16x2 d, a, b, c;", 32, 32, 32, 32, "bbb", \
	  float_bfloat(narrow_fma(B(a), B(b), B(c))) | float_bfloat(narrow_fma(B(a >> 16), B(b >> 16), B(c >> 16))) << 16) \
	X(cvt_f_h, "cvt.f32.f16 d, a;", 32, 16, 0, 0, "h", FB(H(a))) \
	X(cvt_h_f, "cvt.rn.f16.f32 d, a;", 16, 32, 0, 0, "f", float_half(F(a))) \
	X(cvt_h_rz, "cvt.rz.f16.f32 d, a;", 16, 32, 0, 0, "f", ({ u32 h = float_half(F(a)); float f = F(a); isnan(f) || isinf(f) ? h : fabsf(half_float(h)) > fabsf(f) ? h - 1 : h; })) \
	X(cvt_h2, "cvt.rn.f16x2.f32 d, a, b;", 32, 32, 32, 0, "ff", (u64)float_half(F(a)) << 16 | float_half(F(b))) \
	X(cvt_b_f, "cvt.rn.bf16.f32 d, a;", 16, 32, 0, 0, "f", float_bfloat(F(a))) \
	X(cvt_h_d, "cvt.rn.f16.f64 d, a;", 16, 64, 0, 0, "d", half_of(D(a))) \
	X(cvt_f_d, "cvt.rn.f32.f64 d, a;", 32, 64, 0, 0, "d", FB((float)D(a))) \
	X(cvt_d_f, "cvt.f64.f32 d, a;", 64, 32, 0, 0, "f", DB((double)F(a))) \
	X(cvt_s_f, "cvt.rzi.s32.f32 d, a;", 32, 32, 0, 0, "f", (u32)to_s32(truncf(F(a)))) \
	X(cvt_sn_f, "cvt.rni.s32.f32 d, a;", 32, 32, 0, 0, "f", (u32)to_s32(nearbyintf(F(a)))) \
	X(cvt_u_f, "cvt.rpi.u32.f32 d, a;", 32, 32, 0, 0, "f", to_u32(ceilf(F(a)))) \
	X(cvt_u8_f, "cvt.rzi.u8.f32 d, a;", 32, 32, 0, 0, "f", ({ u32 v = to_u32(truncf(F(a))); v > 255 ? 255 : v; })) \
	X(cvt_s64_d, "cvt.rmi.s64.f64 d, a;", 64, 64, 0, 0, "d", ({ double r = floor(D(a)); isnan(r) ? 1ull << 63 : r >= 0x1p63 ? INT64_MAX : r < -0x1p63 ? 1ull << 63 : (u64)(s64)r; })) \
	X(cvt_f_s, "cvt.rn.f32.s32 d, a;", 32, 32, 0, 0, "i", FB((float)(s32)a)) \
	X(cvt_f_u64, "cvt.rn.f32.u64 d, a;", 32, 64, 0, 0, "i", FB((float)a)) \
	X(cvt_h_s, "cvt.rn.f16.s32 d, a;", 16, 32, 0, 0, "i", half_of((double)(s32)a)) \
	X(cvt_round, "cvt.rni.f32.f32 d, a;", 32, 32, 0, 0, "f", FB(nearbyintf(F(a)))) \
	X(cvt_sat, "cvt.sat.f32.f32 d, a;", 32, 32, 0, 0, "f", FB(isnan(F(a)) || F(a) <= 0 ? 0 : F(a) > 1 ? 1 : F(a))) \
	X(cvt_s8, "cvt.s32.s8 d, a;", 32, 32, 0, 0, "i", (u32)(s32)(int8_t)a) \
	X(cvt_u16, "cvt.u32.u16 d, a;", 32, 16, 0, 0, "i", a) \
	X(cvt_s16, "cvt.s64.s16 d, a;", 64, 16, 0, 0, "i", (u64)(s64)(s16)a) \
	X(cvt_narrow, "cvt.u16.u64 d, a;", 16, 64, 0, 0, "i", (u16)a) \
	X(cvt_sat_i, "cvt.sat.s8.s32 d, a;", 32, 32, 0, 0, "i", (u32)((s32)a > 127 ? 127 : (s32)a < -128 ? -128 : (s32)a)) \
	X(cvt_u8, "cvt.u16.u8 d, a;", 16, 16, 0, 0, "i", a & 255)

/* Approximations: within a relative error of 2^-21 of the exact value, or of that absolutely for sin and cos. */
#define APPROXIMATE(X) \
	X(ex2, "ex2.approx.f32 d, a;", exp2(x)) X(lg2, "lg2.approx.f32 d, a;", log2(x)) X(tanh, "tanh.approx.f32 d, a;", tanh(x)) \
	X(sin, "sin.approx.f32 d, a;", sin(x)) X(cos, "cos.approx.f32 d, a;", cos(x)) X(rsqrt, "rsqrt.approx.f32 d, a;", 1 / sqrt(x)) \
	X(sqrt, "sqrt.approx.f32 d, a;", sqrt(x)) X(rcp, "rcp.approx.f32 d, a;", 1 / x) X(ex2z, "ex2.approx.ftz.f32 d, a;", exp2(x))

#define X(id, op, db, ab, bb, cb, in, e) static u64 ref_##id(u64 a, u64 b, u64 c) { (void)a; (void)b; (void)c; return (u64)(e); }
CASES(X)
#undef X
#define X(id, op, e) static double approx_##id(double x) { return e; }
APPROXIMATE(X)
#undef X

static const struct opcase { const char *name, *op; int bits[4]; const char *kinds; u64 (*ref)(u64, u64, u64); } cases[] = {
#define X(id, op, db, ab, bb, cb, in, e) { #id, op, { db, ab, bb, cb }, in, ref_##id },
	CASES(X)
#undef X
};
static const struct { const char *op; double (*ref)(double); } approximate[] = {
#define X(id, op, e) { op, approx_##id },
	APPROXIMATE(X)
#undef X
};

static u64 input(char kind, int bits)
{
	static const u64 ints[] = { 0, 1, 2, 7, 31, 127, 128, 255, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, 1ull << 63, UINT64_MAX };
	static const float floats[] = { 0, -0.0f, 1, -1, 0.5f, 2.5f, 65504, 65520, 1e-7f, -3e-8f, 1e-40f, -1e-44f, 3e38f, 255.5f, 2147483648.f, -2147483648.f, INFINITY, -INFINITY, NAN, 1.5f };
	u32 r = next_random();
	u64 wide = (u64)next_random() << 32 | next_random(), v;
	float f = r % 3 == 0 ? floats[r / 3 % 20] : r % 3 == 1 ? ldexpf(random_float(), (int)(r / 3 % 40) - 20) : F(wide);

	switch (kind) {
	case 'i': v = r % 3 == 0 ? ints[r / 3 % 17] : wide; break;
	case 's': v = r % 70; break;
	case 'f': v = FB(f); break;
	case 'd': v = r % 4 == 0 ? wide : DB((double)f * (1 + 0x1p-30 * (r & 3))); break;
	case 'h': v = r % 2 ? wide : float_half(f) | float_half(random_float()) << 16; break;
	default: v = r % 2 ? wide : float_bfloat(f) | float_bfloat(random_float()) << 16; break;
	}
	return bits == 64 ? v : v & ((1ull << bits) - 1);
}

static void make_text(char *text, size_t cap, const char *op, const int bits[4])
{
	static const char names[] = "dabc";
	size_t n = (size_t)snprintf(text, cap, ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 ps, .param .u32 pm)\n{\n"
	                            ".reg .b64 %%x<9>;\n.reg .b32 %%y<9>;\n.reg .pred %%q<3>;\n");

	for (int i = 0; i < 4; i++)
		n += (size_t)snprintf(text + n, cap - n, ".reg .b%d %c;\n", bits[i] ? bits[i] : 32, names[i]);
	n += (size_t)snprintf(text + n, cap - n, "ld.param.u64 %%x1, [ps];\nld.param.u32 %%y5, [pm];\nmov.u32 %%y1, %%ctaid.x;\nmov.u32 %%y2, %%ntid.x;\n"
	                      "mov.u32 %%y3, %%tid.x;\nmad.lo.s32 %%y4, %%y1, %%y2, %%y3;\nmad.wide.u32 %%x2, %%y4, 32, %%x1;\n");
	for (int i = 0; i < 4; i++)
		n += (size_t)snprintf(text + n, cap - n, "ld.global.b%d %c, [%%x2+%d];\n", bits[i] ? bits[i] : 32, names[i], 8 * i);
	snprintf(text + n, cap - n, "rem.u32 %%y6, %%y4, 3;\nsetp.eq.u32 %%q1, %%y6, %%y5;\n@%%q1 bra SKIP;\n%s\nSKIP:\nst.global.b%d [%%x2], d;\nret;\n}\n", op, bits[0]);
}

static bool same(u64 got, u64 want, const struct opcase *c)
{
	bool f = strchr("fdhb", c->kinds[0]) != NULL;

	if (got == want)
		return true;
	if (!f)
		return false;
	if (c->bits[0] == 64)
		return isnan(D(got)) && isnan(D(want));
	if (c->kinds[0] == 'h' || strstr(c->op, "f16"))
		for (int s = 0; s < c->bits[0]; s += 16) {
			u32 g = got >> s & 0xffff, x = want >> s & 0xffff;
			u32 inf = strstr(c->op, "bf16") ? 0x7f80 : 0x7c00;

			if (g != x && ((g & 0x7fff) <= inf || (x & 0x7fff) <= inf))
				return false;
		}
	else
		return isnan(F(got)) && isnan(F(want));
	return true;
}

static void run_case(const struct opcase *c, const char *table, u32 skip)
{
	char text[4096];
	u64 *io = dev_alloc(N * 32), want[N];
	struct ptx_module *m;
	int wrong = 0;

	for (int i = 0; i < N; i++) {
		io[4 * i] = 0xa5a5a5a5a5a5a5a5ull >> (64 - c->bits[0]);
		for (int k = 1; k < 4; k++)
			io[4 * i + k] = c->bits[k] ? input(c->kinds[k - 1], c->bits[k]) : 0;
		want[i] = (u32)i % 3 == skip ? io[4 * i] : c->ref(io[4 * i + 1], io[4 * i + 2], io[4 * i + 3]);
		if (c->bits[0] < 64)
			want[i] &= (1ull << c->bits[0]) - 1;
	}
	make_text(text, sizeof text, c->op, c->bits);
	m = load_text(text);
	launch_ok(m, "k", N / 128, 128, 0, &io, &skip);
	for (int i = 0; i < N && wrong < 3; i++) {
		u64 got = c->bits[0] == 64 ? io[4 * i] : io[4 * i] & ((1ull << c->bits[0]) - 1);

		wrong += !same(got, want[i], c);
		CHECK(same(got, want[i], c), "%s (%s, skip %u): a %llx b %llx c %llx gives %llx, want %llx", c->op, table, skip, (unsigned long long)io[4 * i + 1],
		      (unsigned long long)io[4 * i + 2], (unsigned long long)io[4 * i + 3], (unsigned long long)got, (unsigned long long)want[i]);
	}
	ptx_free(m);
	dev_free_all();
}

static void run_approximate(int k, const char *table)
{
	char text[4096];
	u64 *io = dev_alloc(N * 32);
	u32 none = 3;
	struct ptx_module *m;

	for (int i = 0; i < N; i++)
		io[4 * i + 1] = FB(i == 0 ? 0 : random_float() * (i % 2 ? 4 : 100));
	make_text(text, sizeof text, approximate[k].op, (int[]){ 32, 32, 0, 0 });
	m = load_text(text);
	launch_ok(m, "k", N / 128, 128, 0, &io, &none);
	for (int i = 0; i < N; i++) {
		float x = F(io[4 * i + 1]), got = F(io[4 * i]);
		double want = approximate[k].ref(x);

		CHECK((isnan(got) && isnan(want)) || got == (float)want || fabs(got - want) <= 0x1p-21 * fmax(fabs(want), strstr(approximate[k].op, "s.a") || strstr(approximate[k].op, "n.a") ? 1 : 0),
		      "%s (%s): %a gives %a, want %a", approximate[k].op, table, x, got, want);
	}
	ptx_free(m);
	dev_free_all();
}

void test_ops(void)
{
	struct { const char *name; const ptx_fn *table; } tables[] = {
		{ "base", ptx_table_base },
#ifdef PTX_X86_VARIANTS
		{ "v3", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") ? ptx_table_v3 : NULL },
#endif
	};

	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
		if (!tables[t].table)
			continue;
		ptx_force_table = tables[t].table;
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			run_case(&cases[i], tables[t].name, 3);
			run_case(&cases[i], tables[t].name, 1);
		}
		for (size_t i = 0; i < sizeof approximate / sizeof *approximate; i++)
			run_approximate((int)i, tables[t].name);
	}
	ptx_force_table = NULL;
}
