/* ptx_exec_float.h: floating-point operations and the common conversions (part of ptx_exec.h). */
#include "ptx_half.h"

#include <fenv.h>

static inline float ftz(float f)
{
	uint32_t u = float_bits(f);

	return bits_float(u & 0x7f800000 ? u : u & 0x80000000);
}

/* One operation in every format: E works on float or double operands a, b, c. */
#define F_FUNCTION1(NAME, E) \
	static inline float NAME##_f(float a) { return E; } \
	static inline double NAME##_d(double a) { return E; }
#define F_FUNCTION2(NAME, E) \
	static inline float NAME##_f(float a, float b) { return E; } \
	static inline double NAME##_d(double a, double b) { return E; }
#define F_WIDE1(NAME) \
	UNARY(NAME##_F32, f32a, f32a, NAME##_f(a)) \
	UNARY(NAME##_F32Z, f32a, f32a, ftz(NAME##_f(ftz(a)))) \
	UNARY(NAME##_F64, f64a, f64a, NAME##_d(a))
#define F_WIDE2(NAME) \
	BINARY(NAME##_F32, f32a, f32a, f32a, NAME##_f(a, b)) \
	BINARY(NAME##_F32Z, f32a, f32a, f32a, ftz(NAME##_f(ftz(a), ftz(b)))) \
	BINARY(NAME##_F64, f64a, f64a, f64a, NAME##_d(a, b))
#define F_NARROW2(NAME, F) \
	BINARY(NAME##_F16, u32a, u32a, u32a, float_half(F(half_float(a), half_float(b)))) \
	BINARY(NAME##_H2, u32a, u32a, u32a, float_half(F(half_float(a), half_float(b))) | \
	       float_half(F(half_float(a >> 16), half_float(b >> 16))) << 16) \
	BINARY(NAME##_BF16, u32a, u32a, u32a, float_bfloat(F(bfloat_float(a), bfloat_float(b)))) \
	BINARY(NAME##_BF2, u32a, u32a, u32a, float_bfloat(F(bfloat_float(a), bfloat_float(b))) | \
	       float_bfloat(F(bfloat_float(a >> 16), bfloat_float(b >> 16))) << 16)
#define F_BINARY(NAME, E) F_FUNCTION2(NAME, E) F_WIDE2(NAME) F_NARROW2(NAME, NAME##_f)

F_BINARY(FADD, a + b)
F_BINARY(FSUB, a - b)
F_BINARY(FMUL, a * b)

/* A NaN loses against a number, and -0 counts as less than +0. */
F_BINARY(FMIN, a != a ? b : b != b ? a : a < b || (a == b && signbit(a)) ? a : b)
F_BINARY(FMAX, a != a ? b : b != b ? a : a > b || (a == b && !signbit(a)) ? a : b)
F_BINARY(FMINNAN, a != a ? a : b != b ? b : a < b || (a == b && signbit(a)) ? a : b)
F_BINARY(FMAXNAN, a != a ? a : b != b ? b : a > b || (a == b && !signbit(a)) ? a : b)

TERNARY(FMA_F32, f32a, f32a, f32a, f32a, __builtin_fmaf(a, b, c))
TERNARY(FMA_F32Z, f32a, f32a, f32a, f32a, ftz(__builtin_fmaf(ftz(a), ftz(b), ftz(c))))
TERNARY(FMA_F64, f64a, f64a, f64a, f64a, __builtin_fma(a, b, c))
TERNARY(FMA_F16, u32a, u32a, u32a, u32a, float_half(narrow_fma(half_float(a), half_float(b), half_float(c))))
TERNARY(FMA_H2, u32a, u32a, u32a, u32a, float_half(narrow_fma(half_float(a), half_float(b), half_float(c))) |
        float_half(narrow_fma(half_float(a >> 16), half_float(b >> 16), half_float(c >> 16))) << 16)
TERNARY(FMA_BF16, u32a, u32a, u32a, u32a, float_bfloat(narrow_fma(bfloat_float(a), bfloat_float(b), bfloat_float(c))))
TERNARY(FMA_BF2, u32a, u32a, u32a, u32a, float_bfloat(narrow_fma(bfloat_float(a), bfloat_float(b), bfloat_float(c))) |
        float_bfloat(narrow_fma(bfloat_float(a >> 16), bfloat_float(b >> 16), bfloat_float(c >> 16))) << 16)

#define SIGN_OPERATION(NAME, OP, M16, M32, M64) \
	UNARY(NAME##_F32, u32a, u32a, a OP M32) \
	UNARY(NAME##_F32Z, u32a, u32a, float_bits(ftz(bits_float(a OP M32)))) \
	UNARY(NAME##_F64, u64a, u64a, a OP M64) \
	UNARY(NAME##_F16, u32a, u32a, a OP M16) \
	UNARY(NAME##_H2, u32a, u32a, a OP (M16 << 16 | M16)) \
	UNARY(NAME##_BF16, u32a, u32a, a OP M16) \
	UNARY(NAME##_BF2, u32a, u32a, a OP (M16 << 16 | M16))
SIGN_OPERATION(FNEG, ^, 0x8000u, 0x80000000u, 0x8000000000000000ull)
SIGN_OPERATION(FABS, &, 0x7fffu, 0x7fffffffu, 0x7fffffffffffffffull)

F_FUNCTION2(FDIV, a / b)
F_WIDE2(FDIV)
static inline float FSQRT_f(float a) { return sqrtf(a); }
static inline double FSQRT_d(double a) { return sqrt(a); }
F_WIDE1(FSQRT)
F_FUNCTION1(FRCP, 1 / a)
F_WIDE1(FRCP)
static inline float FRSQRT_f(float a) { return (float)(1 / sqrt((double)a)); }
static inline double FRSQRT_d(double a) { return 1 / sqrt(a); }
F_WIDE1(FRSQRT)
BINARY(FCOPYSIGN_F32, u32a, u32a, u32a, (b & 0x7fffffff) | (a & 0x80000000))
BINARY(FCOPYSIGN_F32Z, u32a, u32a, u32a, (b & 0x7fffffff) | (a & 0x80000000))
BINARY(FCOPYSIGN_F64, u64a, u64a, u64a, (b & 0x7fffffffffffffffull) | (a & 0x8000000000000000ull))

UNARY(FLUSH_F32, f32a, f32a, ftz(a))
UNARY(SATURATE_F32, f32a, f32a, a > 0 ? a < 1 ? a : 1 : 0)
UNARY(SATURATE_F64, f64a, f64a, a > 0 ? a < 1 ? a : 1 : 0)

/* Directed rounding: the loops read and write memory between the two calls, so they cannot move out. sub: fesetround mode
 * index (0 nearest, 1 toward zero, 2 down, 3 up). */
static const int rounding_modes[4] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };
#define ROUNDED(NAME, T, N, E) \
	HANDLER(NAME) \
	{ \
		const T *pa = ROW(T, 1), *pb = ROW(T, N > 1 ? 2 : 1), *pc = ROW(T, N > 2 ? 3 : 1); \
		T *d = OUT(T, 0); \
		fesetround(rounding_modes[in->sub]); \
		EACH { T a = pa[i], b = pb[i], c = pc[i]; (void)b; (void)c; d[i] = (E); } \
		fesetround(FE_TONEAREST); \
		COMMIT(T, 0); \
		return in + 1; \
	}
ROUNDED(ROUNDED_ADD_F32, f32a, 2, a + b)
ROUNDED(ROUNDED_MUL_F32, f32a, 2, a * b)
ROUNDED(ROUNDED_FMA_F32, f32a, 3, __builtin_fmaf(a, b, c))
ROUNDED(ROUNDED_DIV_F32, f32a, 2, a / b)
ROUNDED(ROUNDED_SQRT_F32, f32a, 1, sqrtf(a))
ROUNDED(ROUNDED_ADD_F64, f64a, 2, a + b)
ROUNDED(ROUNDED_MUL_F64, f64a, 2, a * b)
ROUNDED(ROUNDED_FMA_F64, f64a, 3, __builtin_fma(a, b, c))
ROUNDED(ROUNDED_DIV_F64, f64a, 2, a / b)
ROUNDED(ROUNDED_SQRT_F64, f64a, 1, sqrt(a))

/* The C library's functions, more accurate than the device's approximations. sub: 1 flushes subnormals. */
#define LIBRARY(NAME, E) \
	HANDLER(NAME) \
	{ \
		const f32a *pa = ROW(f32a, 1); \
		f32a *d = ROW(f32a, 0); \
		for (uint32_t m = w->mask; m; m &= m - 1) { \
			int i = __builtin_ctz(m); \
			float a = in->sub ? ftz(pa[i]) : pa[i]; \
			float r = (E); \
			d[i] = in->sub ? ftz(r) : r; \
		} \
		return in + 1; \
	}
LIBRARY(SIN_F32, sinf(a))
LIBRARY(COS_F32, cosf(a))
LIBRARY(LG2_F32, log2f(a))
LIBRARY(TANH_F32, tanhf(a))

/* 2^a in double: the fraction's power by its series (relative error 5e-9), the whole part into the exponent. Clamped if
 * float over- or underflows anyway. Right to the last bit of a float except for near-ties, the same on every host. */
static inline float exp2_float(float a)
{
	double x = a < -160 ? -160 : a > 130 ? 130 : (double)a;
	double t = x + 0x1.8p52, r = x - (t - 0x1.8p52), p = 1.525273380405984e-5;

	p = p * r + 1.5403530393381608e-4;
	p = p * r + 1.3333558146428443e-3;
	p = p * r + 9.618129107628477e-3;
	p = p * r + 5.550410866482158e-2;
	p = p * r + 2.402265069591007e-1;
	p = p * r + 6.931471805599453e-1;
	p = p * r + 1;
	p *= bits_double((double_bits(t) + 1023) << 52);
	return a != a ? a : (float)p;
}
UNARY(EX2_F32, f32a, f32a, exp2_float(a))
UNARY(EX2_F32Z, f32a, f32a, ftz(exp2_float(ftz(a))))

static inline bool testp(double a, bool normal, int test)
{
	switch (test) {
	case 0: return isfinite(a);
	case 1: return isinf(a);
	case 2: return !isnan(a);
	case 3: return isnan(a);
	case 4: return normal;
	default: return isfinite(a) && a != 0 && !normal;
	}
}
#define TEST_PROPERTY(NAME, T) \
	HANDLER(NAME) \
	{ \
		const T *pa = ROW(T, 1); \
		uint32_t m = 0; \
		for (int i = 0; i < PTX_LANES; i++) \
			m |= (uint32_t)testp(pa[i], isnormal(pa[i]), in->sub) << i; \
		PRED(0) = pred_blend(w, PRED(0), m); \
		return in + 1; \
	}
TEST_PROPERTY(TESTP_F32, f32a)
TEST_PROPERTY(TESTP_F64, f64a)

#define COMPARE_FLOAT(CMP, E) \
	COMPARE(SETP_##CMP##_F32, f32a, (void)0, E) \
	COMPARE(SETP_##CMP##_F32Z, f32a, a = ftz(a); b = ftz(b), E) \
	COMPARE(SETP_##CMP##_F64, f64a, (void)0, E)
COMPARE_FLOAT(FEQ, a == b)
COMPARE_FLOAT(FNE, a < b || a > b)
COMPARE_FLOAT(FLT, a < b)
COMPARE_FLOAT(FLE, a <= b)
COMPARE_FLOAT(FGT, a > b)
COMPARE_FLOAT(FGE, a >= b)
COMPARE_FLOAT(FEQU, !(a < b || a > b))
COMPARE_FLOAT(FNEU, a != b)
COMPARE_FLOAT(FLTU, !(a >= b))
COMPARE_FLOAT(FLEU, !(a > b))
COMPARE_FLOAT(FGTU, !(a <= b))
COMPARE_FLOAT(FGEU, !(a < b))
COMPARE_FLOAT(FNUM, a == a && b == b)
COMPARE_FLOAT(FNAN, a != a || b != b)

/* Conversions that kernels use in inner loops; all others go lane by lane through ptx_convert. */
static const struct insn *h_CVT(struct warp *w, const struct insn *in) { return ptx_convert(w, in); }
UNARY(CVT_U64_U32, u64a, u32a, a)
UNARY(CVT_S64_S32, u64a, s32a, (int64_t)a)
UNARY(CVT_W32_W64, u32a, u64a, a)
UNARY(CVT_W16_W32, u32a, u32a, LOW16(a))
UNARY(CVT_S32_S16, u32a, u32a, S16(a))
UNARY(CVT_S32_S8, u32a, u32a, (int32_t)(int8_t)a)
UNARY(CVT_U32_U8, u32a, u32a, a & 0xff)
UNARY(CVT_F32_S32, f32a, s32a, (float)a)
UNARY(CVT_F32_U32, f32a, u32a, (float)a)
UNARY(CVT_S32_F32_RZ, s32a, f32a, a != a ? 0 : a >= 0x1p31f ? INT32_MAX : a < -0x1p31f ? INT32_MIN : (int32_t)a)
UNARY(CVT_F32_F16, f32a, u32a, half_float(a))
UNARY(CVT_F16_F32, u32a, f32a, float_half(a))
UNARY(CVT_F32_BF16, f32a, u32a, bfloat_float(a))
UNARY(CVT_BF16_F32, u32a, f32a, float_bfloat(a))
UNARY(CVT_F64_F32, f64a, f32a, a)
UNARY(CVT_F32_F64, f32a, f64a, (float)a)
