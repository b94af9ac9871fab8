/* ptx_exec_int.h: integer, logic, predicate and move operations (part of ptx_exec.h). */

#define LOW16(E) ((E) & 0xffffu)
#define S16(x) ((int32_t)(int16_t)(x))

/* The same expression at 16, 32 and 64 bits; 16-bit results keep the upper half of their lane zero. */
#define W_UNARY(NAME, E) \
	UNARY(NAME##_W16, u32a, u32a, LOW16(E)) UNARY(NAME##_W32, u32a, u32a, E) UNARY(NAME##_W64, u64a, u64a, E)
#define W_BINARY(NAME, E) \
	BINARY(NAME##_W16, u32a, u32a, u32a, LOW16(E)) BINARY(NAME##_W32, u32a, u32a, u32a, E) BINARY(NAME##_W64, u64a, u64a, u64a, E)
#define W_TERNARY(NAME, E) \
	TERNARY(NAME##_W16, u32a, u32a, u32a, u32a, LOW16(E)) TERNARY(NAME##_W32, u32a, u32a, u32a, u32a, E) \
	TERNARY(NAME##_W64, u64a, u64a, u64a, u64a, E)

W_BINARY(ADD, a + b)
W_BINARY(SUB, a - b)
W_BINARY(MUL, a * b)
W_TERNARY(MAD, a * b + c)
W_UNARY(NEG, 0 - a)
W_BINARY(AND, a & b)
W_BINARY(OR, a | b)
W_BINARY(XOR, a ^ b)
W_UNARY(NOT, ~a)
W_UNARY(MOV, a)

UNARY(ABS_W16, u32a, u32a, LOW16(S16(a) < 0 ? 0 - a : a))
UNARY(ABS_W32, u32a, u32a, (int32_t)a < 0 ? 0 - a : a)
UNARY(ABS_W64, u64a, u64a, (int64_t)a < 0 ? 0 - a : a)

/* Shift counts are 32 bits wide and clamp at the operand's width. */
BINARY(SHL_W16, u32a, u32a, u32a, b > 15 ? 0 : LOW16(a << (b & 15)))
BINARY(SHL_W32, u32a, u32a, u32a, b > 31 ? 0 : a << (b & 31))
BINARY(SHL_W64, u64a, u64a, u32a, b > 63 ? 0 : a << (b & 63))
BINARY(SHR_U16, u32a, u32a, u32a, b > 15 ? 0 : a >> (b & 15))
BINARY(SHR_S16, u32a, u32a, u32a, LOW16((uint32_t)(S16(a) >> (b > 15 ? 15 : b))))
BINARY(SHR_U32, u32a, u32a, u32a, b > 31 ? 0 : a >> (b & 31))
BINARY(SHR_S32, u32a, s32a, u32a, a >> (b > 31 ? 31 : b))
BINARY(SHR_U64, u64a, u64a, u32a, b > 63 ? 0 : a >> (b & 63))
BINARY(SHR_S64, u64a, s64a, u32a, a >> (b > 63 ? 63 : b))

BINARY(MIN_U16, u32a, u32a, u32a, a < b ? a : b)
BINARY(MIN_S16, u32a, u32a, u32a, S16(a) < S16(b) ? a : b)
BINARY(MIN_U32, u32a, u32a, u32a, a < b ? a : b)
BINARY(MIN_S32, u32a, s32a, s32a, a < b ? a : b)
BINARY(MIN_U64, u64a, u64a, u64a, a < b ? a : b)
BINARY(MIN_S64, u64a, s64a, s64a, a < b ? a : b)
BINARY(MAX_U16, u32a, u32a, u32a, a > b ? a : b)
BINARY(MAX_S16, u32a, u32a, u32a, S16(a) > S16(b) ? a : b)
BINARY(MAX_U32, u32a, u32a, u32a, a > b ? a : b)
BINARY(MAX_S32, u32a, s32a, s32a, a > b ? a : b)
BINARY(MAX_U64, u64a, u64a, u64a, a > b ? a : b)
BINARY(MAX_S64, u64a, s64a, s64a, a > b ? a : b)

/* Division by zero has no defined result in PTX; current devices give all ones. The most negative value divided by -1
 * wraps. */
BINARY(DIV_U16, u32a, u32a, u32a, b ? a / b : 0xffff)
BINARY(DIV_S16, u32a, u32a, u32a, LOW16(b ? (uint32_t)(S16(a) / S16(b)) : 0xffff))
BINARY(DIV_U32, u32a, u32a, u32a, b ? a / b : UINT32_MAX)
BINARY(DIV_S32, u32a, s32a, s32a, b == 0 ? UINT32_MAX : b == -1 ? 0 - (uint32_t)a : (uint32_t)(a / b))
BINARY(DIV_U64, u64a, u64a, u64a, b ? a / b : UINT64_MAX)
BINARY(DIV_S64, u64a, s64a, s64a, b == 0 ? UINT64_MAX : b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b))
BINARY(REM_U16, u32a, u32a, u32a, b ? a % b : a)
BINARY(REM_S16, u32a, u32a, u32a, LOW16(b ? (uint32_t)(S16(a) % S16(b)) : a))
BINARY(REM_U32, u32a, u32a, u32a, b ? a % b : a)
BINARY(REM_S32, u32a, s32a, s32a, b == 0 ? a : b == -1 ? 0 : a % b)
BINARY(REM_U64, u64a, u64a, u64a, b ? a % b : a)
BINARY(REM_S64, u64a, s64a, s64a, b == 0 ? a : b == -1 ? 0 : a % b)

static inline uint64_t mulhi_u64(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
static inline uint64_t mulhi_s64(int64_t a, int64_t b) { return (uint64_t)((__int128)a * b >> 64); }

BINARY(MULHI_U16, u32a, u32a, u32a, a * b >> 16)
BINARY(MULHI_S16, u32a, u32a, u32a, LOW16((uint32_t)(S16(a) * S16(b) >> 16)))
BINARY(MULHI_U32, u32a, u32a, u32a, (uint64_t)a * b >> 32)
BINARY(MULHI_S32, u32a, s32a, s32a, (uint64_t)((int64_t)a * b) >> 32)
BINARY(MULHI_U64, u64a, u64a, u64a, mulhi_u64(a, b))
BINARY(MULHI_S64, u64a, s64a, s64a, mulhi_s64(a, b))
TERNARY(SAD_U16, u32a, u32a, u32a, u32a, LOW16((a > b ? a - b : b - a) + c))
TERNARY(SAD_S16, u32a, u32a, u32a, u32a, LOW16((uint32_t)(S16(a) > S16(b) ? S16(a) - S16(b) : S16(b) - S16(a)) + c))
TERNARY(SAD_U32, u32a, u32a, u32a, u32a, (a > b ? a - b : b - a) + c)
TERNARY(SAD_S32, u32a, s32a, s32a, u32a, (a > b ? (uint32_t)a - (uint32_t)b : (uint32_t)b - (uint32_t)a) + c)
TERNARY(SAD_U64, u64a, u64a, u64a, u64a, (a > b ? a - b : b - a) + c)
TERNARY(SAD_S64, u64a, s64a, s64a, u64a, (a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a) + c)

BINARY(MULWIDE_U16, u32a, u32a, u32a, a * b)
BINARY(MULWIDE_S16, u32a, u32a, u32a, S16(a) * S16(b))
BINARY(MULWIDE_U32, u64a, u32a, u32a, (uint64_t)a * b)
BINARY(MULWIDE_S32, u64a, s32a, s32a, (int64_t)a * b)
TERNARY(MADWIDE_U16, u32a, u32a, u32a, u32a, a * b + c)
TERNARY(MADWIDE_S16, u32a, u32a, u32a, u32a, (uint32_t)(S16(a) * S16(b)) + c)
TERNARY(MADWIDE_U32, u64a, u32a, u32a, u64a, (uint64_t)a * b + c)
TERNARY(MADWIDE_S32, u64a, s32a, s32a, u64a, (uint64_t)((int64_t)a * b) + c)
BINARY(MUL24_U32, u32a, u32a, u32a, (a & 0xffffff) * (b & 0xffffff))
BINARY(MUL24_S32, u32a, s32a, s32a, ((uint32_t)((int32_t)((uint32_t)a << 8) >> 8) * (uint32_t)((int32_t)((uint32_t)b << 8) >> 8)))

static inline int32_t clamp_s32(int64_t v) { return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v; }
BINARY(ADDSAT_S32, u32a, s32a, s32a, clamp_s32((int64_t)a + b))
BINARY(SUBSAT_S32, u32a, s32a, s32a, clamp_s32((int64_t)a - b))

static inline uint32_t brev32(uint32_t v)
{
	v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
	v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
	v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
	return __builtin_bswap32(v);
}

static inline uint32_t bfind(uint64_t v, bool is_signed, int width, bool amount)
{
	uint32_t r;

	if (is_signed && (int64_t)v < 0)
		v = ~v;
	if (!v)
		return UINT32_MAX;
	r = 63 - (uint32_t)__builtin_clzll(v);
	return amount ? (uint32_t)width - 1 - r : r;
}

UNARY(POPC_W32, u32a, u32a, __builtin_popcount(a))
UNARY(POPC_W64, u32a, u64a, __builtin_popcountll(a))
UNARY(CLZ_W32, u32a, u32a, a ? __builtin_clz(a) : 32)
UNARY(CLZ_W64, u32a, u64a, a ? __builtin_clzll(a) : 64)
UNARY(BREV_W32, u32a, u32a, brev32(a))
UNARY(BREV_W64, u64a, u64a, (uint64_t)brev32((uint32_t)a) << 32 | brev32((uint32_t)(a >> 32)))
UNARY(BFIND_U32, u32a, u32a, bfind(a, false, 32, in->sub))
UNARY(BFIND_S32, u32a, s32a, bfind((uint64_t)(int64_t)a, true, 32, in->sub))
UNARY(BFIND_U64, u32a, u64a, bfind(a, false, 64, in->sub))
UNARY(BFIND_S64, u32a, u64a, bfind(a, true, 64, in->sub))

/* Bit field extract: position and length are the low bytes; beyond the top a signed field repeats its sign bit. */
static inline uint64_t bfe(uint64_t a, uint32_t pos, uint32_t len, int width, bool is_signed)
{
	uint64_t v;
	uint32_t top;

	pos &= 0xff;
	len &= 0xff;
	if (len == 0)
		return 0;
	v = pos < (uint32_t)width ? a >> pos : 0;
	if (len < 64)
		v &= (1ull << len) - 1;
	if (is_signed) {
		top = pos + len - 1 < (uint32_t)width - 1 ? pos + len - 1 : (uint32_t)width - 1;
		uint32_t have = top >= pos ? top - pos + 1 : 0;

		if (a >> top & 1 && have < 64)
			v |= ~0ull << have;
	}
	return v;
}

static inline uint64_t bfi(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, uint32_t width)
{
	uint64_t m;

	pos &= 0xff;
	len &= 0xff;
	if (len == 0 || pos >= width)
		return b;
	m = (len < 64 ? (1ull << len) - 1 : ~0ull) << pos;
	return (b & ~m) | (a << pos & m);
}

TERNARY(BFE_U32, u32a, u32a, u32a, u32a, bfe(a, b, c, 32, false))
TERNARY(BFE_S32, u32a, u32a, u32a, u32a, bfe(a, b, c, 32, true))
TERNARY(BFE_U64, u64a, u64a, u32a, u32a, bfe(a, b, c, 64, false))
TERNARY(BFE_S64, u64a, u64a, u32a, u32a, bfe(a, b, c, 64, true))

#define BITFIELD_INSERT(NAME, T, WIDTH) \
	HANDLER(NAME) \
	{ \
		const T *pa = ROW(T, 1), *pb = ROW(T, 2); \
		const u32a *pos = ROW(u32a, 3), *len = ROW(u32a, 4); \
		T *d = OUT(T, 0); \
		EACH d[i] = (T)bfi(pa[i], pb[i], pos[i], len[i], WIDTH); \
		COMMIT(T, 0); \
		return in + 1; \
	}
BITFIELD_INSERT(BFI_W32, u32a, 32)
BITFIELD_INSERT(BFI_W64, u64a, 64)
/* sub: 1 for .wrap */
BINARY(BMSK_W32, u32a, u32a, u32a, bfi(UINT32_MAX, 0, in->sub ? a & 31 : a > 255 ? 255 : a, in->sub ? b & 31 : b > 255 ? 255 : b, 32))
static inline uint32_t szext(uint32_t a, uint32_t n, bool is_signed, bool wrap)
{
	n = wrap ? n & 31 : n;
	if (n >= 32)
		return a;
	if (n == 0)
		return 0;
	return is_signed ? (uint32_t)((int32_t)(a << (32 - n)) >> (32 - n)) : a & ((1u << n) - 1);
}
BINARY(SZEXT_U32, u32a, u32a, u32a, szext(a, b, false, in->sub))
BINARY(SZEXT_S32, u32a, u32a, u32a, szext(a, b, true, in->sub))

/* sub: 0 index mode, then f4e b4e rc8 ecl ecr rc16 */
static inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t c, int mode)
{
	uint64_t v = (uint64_t)b << 32 | a;
	uint32_t r = 0, s = c & 3;

	for (uint32_t j = 0; j < 4; j++) {
		uint32_t sel;

		switch (mode) {
		case 0: sel = c >> (4 * j) & 15; break;
		case 1: sel = s + j; break;
		case 2: sel = (s - j) & 7; break;
		case 3: sel = s; break;
		case 4: sel = j > s ? j : s; break;
		case 5: sel = j < s ? j : s; break;
		default: sel = (s & 1) * 2 + (j & 1); break;
		}
		uint32_t byte = (uint32_t)(v >> (8 * (sel & 7))) & 0xff;

		if (mode == 0 && sel & 8)
			byte = byte & 0x80 ? 0xff : 0;
		r |= byte << (8 * j);
	}
	return r;
}
TERNARY(PRMT, u32a, u32a, u32a, u32a, prmt(a, b, c, in->sub))
/* sub: 1 for .wrap, else the count clamps at 32 */
TERNARY(SHF_L, u32a, u32a, u32a, u32a, ((uint64_t)b << 32 | a) << (in->sub ? c & 31 : c > 32 ? 32 : c) >> 32)
TERNARY(SHF_R, u32a, u32a, u32a, u32a, ((uint64_t)b << 32 | a) >> (in->sub ? c & 31 : c > 32 ? 32 : c))

static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t lut)
{
	uint32_t r = 0;

	r |= (0u - (lut >> 0 & 1)) & ~a & ~b & ~c;
	r |= (0u - (lut >> 1 & 1)) & ~a & ~b & c;
	r |= (0u - (lut >> 2 & 1)) & ~a & b & ~c;
	r |= (0u - (lut >> 3 & 1)) & ~a & b & c;
	r |= (0u - (lut >> 4 & 1)) & a & ~b & ~c;
	r |= (0u - (lut >> 5 & 1)) & a & ~b & c;
	r |= (0u - (lut >> 6 & 1)) & a & b & ~c;
	r |= (0u - (lut >> 7 & 1)) & a & b & c;
	return r;
}
TERNARY(LOP3, u32a, u32a, u32a, u32a, lop3(a, b, c, (uint32_t)in->imm))

/* Dot products of bytes. sub: bit 0 a signed, bit 1 b signed, bit 2 the upper half of b (dp2a) */
static inline uint32_t dp_byte(uint32_t v, int j, bool is_signed)
{
	uint32_t b = v >> (8 * j) & 0xff;

	return is_signed ? (uint32_t)(int32_t)(int8_t)b : b;
}
static inline uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c, int sub)
{
	for (int j = 0; j < 4; j++)
		c += dp_byte(a, j, sub & 1) * dp_byte(b, j, sub & 2);
	return c;
}
static inline uint32_t dp2a(uint32_t a, uint32_t b, uint32_t c, int sub)
{
	for (int j = 0; j < 2; j++) {
		uint32_t h = a >> (16 * j) & 0xffff;

		c += (sub & 1 ? (uint32_t)S16(h) : h) * dp_byte(b, j + (sub & 4 ? 2 : 0), sub & 2);
	}
	return c;
}
TERNARY(DP4A, u32a, u32a, u32a, u32a, dp4a(a, b, c, in->sub))
TERNARY(DP2A, u32a, u32a, u32a, u32a, dp2a(a, b, c, in->sub))

/* Extended precision. sub: bit 0 adds the carry in, bit 1 writes the carry out. */
#define CARRY(NAME, T, WIDE, RESULT, CARRY_OUT) \
	HANDLER(NAME) \
	{ \
		const T *pa = ROW(T, 1), *pb = ROW(T, 2), *pc = ROW(T, in->nuse > 2 ? 3 : 2); \
		T *d = OUT(T, 0); \
		uint32_t out = 0; \
		for (int i = 0; i < PTX_LANES; i++) { \
			WIDE a = pa[i], b = pb[i], c = pc[i], k = in->sub & 1 ? w->carry >> i & 1 : 0; \
			WIDE r = (RESULT); \
			(void)c; \
			d[i] = (T)r; \
			out |= (uint32_t)((CARRY_OUT) & 1) << i; \
		} \
		COMMIT(T, 0); \
		if (in->sub & 2) \
			w->carry = pred_blend(w, w->carry, out); \
		return in + 1; \
	}
CARRY(ADDC_W32, u32a, uint64_t, a + b + k, r >> 32)
CARRY(ADDC_W64, u64a, unsigned __int128, a + b + k, r >> 64)
CARRY(SUBC_W32, u32a, uint64_t, a - b - k, r >> 32)
CARRY(SUBC_W64, u64a, unsigned __int128, a - b - k, r >> 64)
CARRY(MADC_LO_W32, u32a, uint64_t, (uint32_t)(a * b) + c + k, r >> 32)
CARRY(MADC_HI_U32, u32a, uint64_t, (a * b >> 32) + c + k, r >> 32)
CARRY(MADC_HI_S32, u32a, uint64_t, (uint64_t)(uint32_t)((uint64_t)((int64_t)(int32_t)a * (int32_t)b) >> 32) + c + k, r >> 32)
CARRY(MADC_LO_W64, u64a, unsigned __int128, (unsigned __int128)(uint64_t)(a * b) + c + k, r >> 64)
CARRY(MADC_HI_U64, u64a, unsigned __int128, (unsigned __int128)mulhi_u64((uint64_t)a, (uint64_t)b) + c + k, r >> 64)
CARRY(MADC_HI_S64, u64a, unsigned __int128, (unsigned __int128)mulhi_s64((int64_t)a, (int64_t)b) + c + k, r >> 64)

BINARY(PACK2_W16, u32a, u32a, u32a, a | b << 16)
BINARY(PACK2_W32, u64a, u32a, u32a, a | (uint64_t)b << 32)
HANDLER(PACK4_W16)
{
	const u32a *a = ROW(u32a, 1), *b = ROW(u32a, 2), *c = ROW(u32a, 3), *e = ROW(u32a, 4);
	u64a *d = OUT(u64a, 0);

	EACH d[i] = a[i] | b[i] << 16 | (uint64_t)(c[i] | e[i] << 16) << 32;
	COMMIT(u64a, 0);
	return in + 1;
}

#define UNPACK(NAME, TS, N, SHIFT, MASK) \
	HANDLER(NAME) \
	{ \
		TS v[PTX_LANES]; \
		memcpy(v, ROW(TS, N), sizeof v); \
		for (int j = 0; j < N; j++) { \
			u32a *d = OUT(u32a, j); \
			EACH d[i] = (uint32_t)(v[i] >> (SHIFT * j)) & MASK; \
			COMMIT(u32a, j); \
		} \
		return in + 1; \
	}
UNPACK(UNPACK2_W16, u32a, 2, 16, 0xffffu)
UNPACK(UNPACK2_W32, u64a, 2, 32, UINT32_MAX)
UNPACK(UNPACK4_W16, u64a, 4, 16, 0xffffu)

#define COMPARE_INT(CMP, OP) \
	COMPARE(SETP_##CMP##_U16, u32a, (void)0, a OP b) COMPARE(SETP_##CMP##_S16, u32a, (void)0, S16(a) OP S16(b)) \
	COMPARE(SETP_##CMP##_U32, u32a, (void)0, a OP b) COMPARE(SETP_##CMP##_S32, s32a, (void)0, a OP b) \
	COMPARE(SETP_##CMP##_U64, u64a, (void)0, a OP b) COMPARE(SETP_##CMP##_S64, s64a, (void)0, a OP b)
COMPARE_INT(EQ, ==)
COMPARE_INT(NE, !=)
COMPARE_INT(LT, <)
COMPARE_INT(LE, <=)
COMPARE_INT(GT, >)
COMPARE_INT(GE, >=)

#define PREDICATE(NAME, E) \
	HANDLER(NAME) \
	{ \
		PRED(0) = pred_blend(w, PRED(0), E); \
		return in + 1; \
	}
PREDICATE(PNOT, ~PRED(1))
PREDICATE(PMOV, PRED(1))
PREDICATE(PAND, PRED(1) & PRED(2))
PREDICATE(POR, PRED(1) | PRED(2))
PREDICATE(PXOR, PRED(1) ^ PRED(2))

#define SELECT(NAME, T) \
	HANDLER(NAME) \
	{ \
		const T *pa = ROW(T, 1), *pb = ROW(T, 2); \
		uint32_t p = in->sub ? ~PRED(3) : PRED(3); \
		T *d = OUT(T, 0); \
		EACH d[i] = p >> i & 1 ? pa[i] : pb[i]; \
		COMMIT(T, 0); \
		return in + 1; \
	}
SELECT(SELP_W16, u32a)
SELECT(SELP_W32, u32a)
SELECT(SELP_W64, u64a)
TERNARY(SLCT_S32, u32a, u32a, u32a, s32a, c >= 0 ? a : b)
TERNARY(SLCT_F32, u32a, u32a, u32a, f32a, c >= 0 ? a : b)
TERNARY(SLCT_S32_W64, u64a, u64a, u64a, s32a, c >= 0 ? a : b)
TERNARY(SLCT_F32_W64, u64a, u64a, u64a, f32a, c >= 0 ? a : b)
