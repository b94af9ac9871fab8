/*
 * ptx_forms.c: which instructions PTX has: modifiers, types, operands, and the version and target that they need.
 *
 * In:  none. Out: rows for ptx_check.c. A name may have several rows; an instruction is right if one of them fits.
 *
 * Modifiers are groups, in any order: "rn|rz?" is one of two or none, "%u32|s32" names the type U beside the type T, which is the
 * last type of the instruction. Operands are letters:
 *   d t  destination and source of type T         D s  of type U             W w  of twice the width of T
 *   R r  of T or wider, S the same or a special register, X destination of U or wider
 *   v V  destination and source of T or wider, or lists of them as .v2 and .v4 say
 *   h u  destination and source u32               y  source u64              c  cache policy
 *   P p  predicate, Q a predicate and perhaps one behind '|', q a destination of T and perhaps a predicate behind '|',
 *   H    destination u32 and perhaps a predicate behind '|', E the same, which may be a sink, with the predicate
 *   m    address                                  i  constant                l j  label, list of labels
 *   M N  source and destination of mov            o  u32 or predicate        *  anything from here on
 *   F B G and a digit: a list of so many f32, b32, f64
 * A target above 1000 is one with the suffix "a". '?' marks an operand that may be missing.
 */
#include "ptx_parse.h"

#define INT "u16 u32 u64 s16 s32 s64"
#define BIT "b16 b32 b64"
#define INT8 "u8 u16 u32 u64 s8 s16 s32 s64"
#define MEM "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
#define ROUND "rn|rz|rm|rp"
#define ORDER "eq|ne|lt|le|gt|ge"
#define UNORDERED ORDER "|equ|neu|ltu|leu|gtu|geu|num|nan"
#define LOGIC "and|or|xor"
#define SCOPE "cta|cluster|gpu|sys"
#define SHARED "shared|shared::cta|shared::cluster"
#define LOAD "const|global|local|param|param::entry|param::func|" SHARED
#define STORE "global|local|param|param::func|" SHARED
#define L1 "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate?"
#define L2 " L2::evict_normal|L2::evict_first|L2::evict_last? L2::cache_hint? L2::64B|L2::128B|L2::256B? v2|v4|v8?"
#define ATOM "relaxed|acquire|release|acq_rel? " SCOPE "? global|" SHARED "? L2::cache_hint? "
#define RED "relaxed|release? " SCOPE "? global|" SHARED "? L2::cache_hint? "
#define MULTI "weak|relaxed|acquire|release? " SCOPE "? global? "
#define MMA "sync aligned row col "

const struct ptx_form ptx_forms[] = {
	/* integers */
	{ "add sub", "", INT, "dtt", 0, 0 }, { "add sub", "sat", "s32", "dtt", 0, 0 }, { "add", "", "u16x2 s16x2", "dtt", 80, 90 },
	{ "add sub addc subc", "cc", "u32 s32 u64 s64", "dtt", 0, 0 }, { "addc subc", "", "u32 s32 u64 s64", "dtt", 0, 0 },
	{ "mul", "lo|hi", INT, "dtt", 0, 0 }, { "mul", "wide", "u16 u32 s16 s32", "Wtt", 0, 0 },
	{ "mad", "lo|hi", INT, "dttt", 0, 0 }, { "mad", "wide", "u16 u32 s16 s32", "WttW", 0, 0 }, { "mad", "hi sat", "s32", "dttt", 0, 0 },
	{ "mad madc", "lo|hi cc", "u32 s32 u64 s64", "dttt", 0, 0 }, { "madc", "lo|hi", "u32 s32 u64 s64", "dttt", 0, 0 },
	{ "mul24", "lo|hi", "u32 s32", "dtt", 0, 0 }, { "mad24", "lo|hi", "u32 s32", "dttt", 0, 0 }, { "mad24", "hi sat", "s32", "dttt", 0, 0 },
	{ "div rem", "", INT, "dtt", 0, 0 }, { "sad", "", INT, "dttt", 0, 0 }, { "abs neg", "", "s16 s32 s64", "dt", 0, 0 },
	{ "min max", "", INT, "dtt", 0, 0 }, { "min max", "", "u16x2 s16x2", "dtt", 80, 90 }, { "min max", "relu", "s32 s16x2", "dtt", 80, 90 },
	{ "popc clz", "", "b32 b64", "ht", 0, 0 }, { "bfind", "shiftamt?", "u32 s32 u64 s64", "ht", 0, 0 }, { "brev", "", "b32 b64", "dt", 0, 0 },
	{ "fns", "", "b32", "dttt", 60, 30 }, { "bmsk", "clamp|wrap", "b32", "dtt", 76, 70 }, { "szext", "clamp|wrap", "u32 s32", "dtu", 76, 70 },
	{ "bfe", "", "u32 s32 u64 s64", "dtuu", 0, 0 }, { "bfi", "", "b32 b64", "dttuu", 0, 0 },
	{ "dp4a", "%u32|s32", "u32 s32", "httt", 0, 61 }, { "dp2a", "lo|hi %u32|s32", "u32 s32", "httt", 0, 61 },
	{ "and or xor", "", BIT, "dtt", 0, 0 }, { "and or xor", "", "pred", "Ppp", 0, 0 }, { "not", "", BIT, "dt", 0, 0 }, { "not", "", "pred", "Pp", 0, 0 },
	{ "cnot", "", BIT, "dt", 0, 0 }, { "lop3", "", "b32", "dttti", 0, 0 }, { "lop3", "and|or", "b32", "qtttip", 82, 70 },
	{ "shl", "", BIT, "dtu", 0, 0 }, { "shr", "", BIT " " INT, "dtu", 0, 0 }, { "shf", "l|r clamp|wrap", "b32", "dttu", 0, 0 },
	{ "prmt", "f4e|b4e|rc8|ecl|ecr|rc16?", "b32", "dttt", 0, 0 },
	/* floating point */
	{ "add sub", ROUND "? ftz? sat?", "f32", "dtt", 0, 0 }, { "add sub", ROUND "?", "f64", "dtt", 0, 0 },
	{ "add sub mul", "rn? ftz? sat?", "f16 f16x2", "dtt", 42, 53 }, { "add sub mul", "rn?", "bf16 bf16x2", "dtt", 78, 90 },
	{ "add sub mul", ROUND "? ftz?", "f32x2", "dtt", 86, 100 },
	{ "mul", ROUND "? ftz? sat?", "f32", "dtt", 0, 0 }, { "mul", ROUND "?", "f64", "dtt", 0, 0 },
	{ "fma mad", ROUND " ftz? sat?", "f32", "dttt", 0, 0 }, { "fma mad", ROUND, "f64", "dttt", 0, 0 },
	{ "fma", "rn ftz? sat?", "f16 f16x2", "dttt", 42, 53 }, { "fma", "rn ftz? relu", "f16 f16x2", "dttt", 70, 80 },
	{ "fma", "rn relu?", "bf16 bf16x2", "dttt", 70, 80 }, { "fma", ROUND " ftz?", "f32x2", "dttt", 86, 100 },
	{ "div", "approx|full|" ROUND " ftz?", "f32", "dtt", 0, 0 }, { "div", ROUND, "f64", "dtt", 0, 0 },
	{ "min max", "ftz?", "f32", "dtt", 0, 0 }, { "min max", "ftz? NaN", "f32", "dtt", 70, 80 },
	{ "min max", "ftz? NaN? xorsign abs", "f32", "dtt", 72, 86 }, { "min max", "ftz? NaN? abs?", "f32", "dttt", 88, 100 },
	{ "min max", "", "f64", "dtt", 0, 0 }, { "min max", "ftz? NaN?", "f16 f16x2", "dtt", 70, 80 }, { "min max", "NaN?", "bf16 bf16x2", "dtt", 70, 80 },
	{ "min max", "ftz? NaN? xorsign abs", "f16 f16x2", "dtt", 72, 86 }, { "min max", "NaN? xorsign abs", "bf16 bf16x2", "dtt", 72, 86 },
	{ "abs neg", "ftz?", "f32", "dt", 0, 0 }, { "abs neg", "", "f64", "dt", 0, 0 }, { "abs", "ftz?", "f16 f16x2", "dt", 65, 53 },
	{ "neg", "ftz?", "f16 f16x2", "dt", 60, 53 }, { "abs neg", "", "bf16 bf16x2", "dt", 70, 80 },
	{ "sqrt rcp", "approx|" ROUND " ftz?", "f32", "dt", 0, 0 }, { "sqrt rcp", ROUND, "f64", "dt", 0, 0 }, { "rcp", "approx ftz", "f64", "dt", 0, 0 },
	{ "rsqrt", "approx ftz?", "f32 f64", "dt", 0, 0 }, { "sin cos ex2 lg2", "approx ftz?", "f32", "dt", 0, 0 },
	{ "ex2", "approx", "f16 f16x2", "dt", 70, 75 }, { "ex2", "approx ftz", "bf16 bf16x2", "dt", 78, 90 },
	{ "tanh", "approx", "f32 f16 f16x2", "dt", 70, 75 }, { "tanh", "approx", "bf16 bf16x2", "dt", 78, 90 },
	{ "copysign", "", "f32 f64", "dtt", 0, 0 }, { "testp", "finite|infinite|number|notanumber|normal|subnormal", "f32 f64", "Pt", 0, 0 },
	/* comparison and selection */
	{ "setp", "eq|ne", BIT, "Qtt", 0, 0 }, { "setp", "eq|ne " LOGIC, BIT, "Qttp", 0, 0 },
	{ "setp", ORDER, INT, "Qtt", 0, 0 }, { "setp", ORDER " " LOGIC, INT, "Qttp", 0, 0 },
	{ "setp", "lo|ls|hi|hs", "u16 u32 u64", "Qtt", 0, 0 }, { "setp", "lo|ls|hi|hs " LOGIC, "u16 u32 u64", "Qttp", 0, 0 },
	{ "setp", UNORDERED " ftz?", "f32 f16 f16x2", "Qtt", 0, 0 }, { "setp", UNORDERED " ftz? " LOGIC, "f32 f16 f16x2", "Qttp", 0, 0 },
	{ "setp", UNORDERED, "f64", "Qtt", 0, 0 }, { "setp", UNORDERED " " LOGIC, "f64", "Qttp", 0, 0 },
	{ "setp", UNORDERED, "bf16 bf16x2", "Qtt", 78, 90 }, { "setp", UNORDERED " " LOGIC, "bf16 bf16x2", "Qttp", 78, 90 },
	{ "set", "eq|ne " LOGIC "? %u32|s32|f32", BIT, "Dttp?", 0, 0 }, { "set", ORDER " " LOGIC "? %u32|s32|f32", INT, "Dttp?", 0, 0 },
	{ "set", "lo|ls|hi|hs " LOGIC "? %u32|s32|f32", "u16 u32 u64", "Dttp?", 0, 0 },
	{ "set", UNORDERED " ftz? " LOGIC "? %u32|s32|f32", "f32 f16", "Dttp?", 0, 0 }, { "set", UNORDERED " " LOGIC "? %u32|s32|f32", "f64", "Dttp?", 0, 0 },
	{ "set", UNORDERED " ftz? " LOGIC "? %u16|s16|f16", "f16", "Dttp?", 0, 0 }, { "set", UNORDERED " ftz? " LOGIC "? %f16x2", "f16x2", "Dttp?", 0, 0 },
	{ "set", UNORDERED " " LOGIC "? %u16|s16|u32|s32|bf16", "bf16", "Dttp?", 78, 90 }, { "set", UNORDERED " " LOGIC "? %bf16x2", "bf16x2", "Dttp?", 78, 90 },
	{ "selp", "", BIT " " INT " f32 f64", "dttp", 0, 0 },
	{ "slct", "%b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64", "s32", "Dsst", 0, 0 },
	{ "slct", "ftz? %b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64", "f32", "Dsst", 0, 0 },
	/* conversion and moves */
	{ "cvt", "sat? %u8|u16|u32|u64|s8|s16|s32|s64", INT8, "XS", 0, 0 }, { "cvt", ROUND " ftz? sat? %f16|f32|f64", INT8, "XS", 0, 0 },
	{ "cvt", ROUND " %bf16", INT8, "XS", 78, 90 }, { "cvt", "rni|rzi|rmi|rpi ftz? sat? %u8|u16|u32|u64|s8|s16|s32|s64", "f16 f32 f64", "XS", 0, 0 },
	{ "cvt", "rni|rzi|rmi|rpi sat? %u8|u16|u32|u64|s8|s16|s32|s64", "bf16", "XS", 78, 90 },
	{ "cvt", "rni|rzi|rmi|rpi? ftz? sat? %f32", "f32", "XS", 0, 0 }, { "cvt", "rni|rzi|rmi|rpi? ftz? sat? %f16", "f16", "XS", 0, 0 },
	{ "cvt", "rni|rzi|rmi|rpi? sat? %f64", "f64", "XS", 0, 0 }, { "cvt", "ftz? sat? %f32", "f16", "XS", 0, 0 }, { "cvt", "ftz? sat? %f64", "f16 f32", "XS", 0, 0 },
	{ "cvt", ROUND " ftz? sat? %f32", "f64", "XS", 0, 0 }, { "cvt", ROUND " ftz? sat? %f16", "f32 f64", "XS", 0, 0 },
	{ "cvt", "rn|rz relu %f16|bf16", "f32", "XS", 70, 80 }, { "cvt", "rn|rz relu? satfinite %f16|bf16", "f32", "XS", 81, 80 },
	{ "cvt", ROUND " %bf16", "f32", "XS", 70, 80 }, { "cvt", "%f32", "bf16", "XS", 71, 80 }, { "cvt", ROUND "? %f64|f16", "bf16", "XS", 78, 90 },
	{ "cvt", ROUND " %bf16", "f16 f64", "XS", 78, 90 }, { "cvt", "rni|rzi|rmi|rpi? %bf16", "bf16", "XS", 78, 90 },
	{ "cvt", "rn|rz relu? %f16x2|bf16x2", "f32", "XSS", 70, 80 }, { "cvt", "rn|rz relu? satfinite %f16x2|bf16x2", "f32", "XSS", 81, 80 },
	{ "cvt", "rs relu? satfinite? %f16x2|bf16x2", "f32", "XSSu", 87, 100 },
	{ "cvt", "rna tf32", "f32", "hS", 70, 80 }, { "cvt", "rna satfinite tf32", "f32", "hS", 81, 80 }, { "cvt", "rn|rz relu? satfinite? tf32", "f32", "hS", 78, 90 },
	{ "cvt", "rn satfinite relu? e4m3x2|e5m2x2", "f32", "*", 81, 89 }, { "cvt", "rn satfinite relu? e4m3x2|e5m2x2", "f16x2", "*", 81, 89 },
	{ "cvt", "rn relu? %f16x2 e4m3x2|e5m2x2", "", "*", 81, 89 },
	{ "cvt", "pack sat %u16|s16|u8|s8|u4|s4|u2|s2", "s32", "htt", 65, 72 }, { "cvt", "pack sat %u8|s8|u4|s4|u2|s2 s32", "b32", "httt", 65, 72 },
	{ "mov", "", "pred", "Pp", 0, 0 }, { "mov", "v2|v4?", "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64", "NM", 0, 0 }, { "mov", "b128", "", "*", 83, 70 },
	{ "cvta", "to? global|const|local|param|param::entry|" SHARED, "u64", "dM", 0, 0 },
	{ "isspacep", "global|const|local|param|param::entry|" SHARED, "", "Py", 0, 0 },
	/* memory */
	{ "ld", "weak? " LOAD "? ca|cg|cs|lu|cv?" L2, MEM, "vm", 0, 0 }, { "ld", "weak? global|local? " L1 L2, MEM, "vm", 74, 70 },
	{ "ld", "volatile global|" SHARED "? L2::64B|L2::128B|L2::256B? v2|v4?", MEM, "vm", 0, 0 }, { "ld", "volatile local|const v2|v4?", MEM, "vm", 91, 0 },
	{ "ld", "relaxed|acquire " SCOPE " global|" SHARED "? " L1 L2, MEM, "vm", 60, 70 }, { "ld", "mmio relaxed sys global? v2|v4?", MEM, "vm", 82, 70 },
	{ "ld", "global ca|cg|cs? nc " L1 L2, MEM, "vm", 0, 0 }, { "ldu", "global? v2|v4?", MEM, "vm", 0, 0 },
	{ "st", "weak? " STORE "? wb|cg|cs|wt?" L2, MEM, "mV", 0, 0 }, { "st", "weak? global|local? " L1 L2, MEM, "mV", 74, 70 },
	{ "st", "volatile global|" SHARED "? v2|v4?", MEM, "mV", 0, 0 }, { "st", "volatile local v2|v4?", MEM, "mV", 91, 0 },
	{ "st", "relaxed|release " SCOPE " global|" SHARED "? " L1 L2, MEM, "mV", 60, 70 }, { "st", "mmio relaxed sys global? v2|v4?", MEM, "mV", 82, 70 },
	{ "atom", ATOM LOGIC "|exch", "b32 b64", "dmt", 0, 0 }, { "atom", ATOM "cas", "b32 b64", "dmtt", 0, 0 }, { "atom", ATOM "cas", "b16", "dmtt", 63, 70 },
	{ "atom", ATOM "inc|dec", "u32", "dmt", 0, 0 }, { "atom", ATOM "add", "u32 s32 u64 f32 f64", "dmt", 0, 0 },
	{ "atom", ATOM "min|max", "u32 s32 u64 s64", "dmt", 0, 0 }, { "atom", ATOM "add noftz", "f16 f16x2", "dmt", 62, 70 },
	{ "atom", ATOM "add noftz", "bf16 bf16x2", "dmt", 78, 90 }, { "atom", ATOM "exch|cas b128", "", "*", 83, 90 },
	{ "atom", ATOM "add|min|max noftz? v2|v4|v8", "f16 bf16 f16x2 bf16x2 f32", "*", 81, 90 },
	{ "red", RED LOGIC, "b32 b64", "mt", 0, 0 }, { "red", RED "inc|dec", "u32", "mt", 0, 0 }, { "red", RED "add", "u32 s32 u64 f32 f64", "mt", 0, 0 },
	{ "red", RED "min|max", "u32 s32 u64 s64", "mt", 0, 0 }, { "red", RED "add noftz", "f16 f16x2", "mt", 62, 70 },
	{ "red", RED "add noftz", "bf16 bf16x2", "mt", 78, 90 }, { "red", RED "add|min|max noftz? v2|v4|v8", "f16 bf16 f16x2 bf16x2 f32", "*", 81, 90 },
	{ "red", "async relaxed|release? cluster|gpu|sys? mmio? global|shared::cluster? mbarrier::complete_tx::bytes? add|min|max|inc|dec|and|or|xor", "u32 s32 u64 s64 b32 b64", "*", 81, 90 },
	{ "multimem", "ld_reduce " MULTI LOGIC, "b32 b64", "dm", 81, 90 }, { "multimem", "ld_reduce " MULTI "add", "u32 s32 u64 f64", "dm", 81, 90 },
	{ "multimem", "ld_reduce " MULTI "min|max", "u32 s32 u64 s64", "dm", 81, 90 }, { "multimem", "ld_reduce " MULTI "add v2|v4?", "f32", "*", 81, 90 },
	{ "multimem", "ld_reduce " MULTI "add|min|max acc::f32? v2|v4|v8?", "f16 f16x2 bf16 bf16x2", "*", 81, 90 },
	{ "multimem", "st " MULTI, "b32 b64 u32 s32 u64 s64 f64", "mt", 81, 90 }, { "multimem", "st " MULTI "v2|v4|v8?", "f32 f16 f16x2 bf16 bf16x2", "*", 81, 90 },
	{ "multimem", "red " MULTI LOGIC, "b32 b64", "mt", 81, 90 }, { "multimem", "red " MULTI "add", "u32 s32 u64 f64", "mt", 81, 90 },
	{ "multimem", "red " MULTI "min|max", "u32 s32 u64 s64", "mt", 81, 90 }, { "multimem", "red " MULTI "add v2|v4|v8?", "f32 f16 f16x2 bf16 bf16x2", "*", 81, 90 },
	{ "prefetch", "global|local? L1|L2", "", "m", 0, 0 }, { "prefetch", "global L2::evict_last|L2::evict_normal", "", "m", 74, 80 },
	{ "prefetch", "const|param? tensormap", "", "m", 80, 90 }, { "prefetchu", "L1", "", "m", 0, 0 },
	{ "discard", "global? L2", "", "mi", 74, 80 }, { "applypriority", "global? L2::evict_normal", "", "mi", 74, 80 },
	{ "createpolicy", "fractional L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged L2::evict_first|L2::evict_unchanged?", "b64", "d*", 74, 80 },
	{ "createpolicy", "range global? L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged L2::evict_first|L2::evict_unchanged?", "b64", "dmuu", 74, 80 },
	{ "createpolicy", "cvt L2", "b64", "dc", 74, 80 },
	{ "cp", "async ca " SHARED " global L2::cache_hint? L2::64B|L2::128B|L2::256B?", "", "mmio?", 70, 80 },
	{ "cp", "async cg " SHARED " global L2::cache_hint? L2::64B|L2::128B|L2::256B?", "", "mmio?", 70, 80 },
	{ "cp", "async commit_group|wait_all", "", "", 70, 80 }, { "cp", "async wait_group", "", "i", 70, 80 },
	{ "cp", "async mbarrier arrive noinc? " SHARED "?", "b64", "m", 70, 80 },
	/* barriers, votes, exchanges */
	{ "bar barrier", "cta? sync", "", "uu?", 0, 0 }, { "bar barrier", "cta? arrive", "", "uu", 0, 0 }, { "bar barrier", "cta? red popc", "u32", "dup", 0, 0 },
	{ "bar barrier", "cta? red popc", "u32", "duup", 0, 0 }, { "bar barrier", "cta? red and|or", "pred", "Pup", 0, 0 },
	{ "bar barrier", "cta? red and|or", "pred", "Puup", 0, 0 }, { "barrier", "cta? sync aligned", "", "uu?", 0, 0 },
	{ "barrier", "cta? arrive aligned", "", "uu", 0, 0 }, { "barrier", "cta? red popc aligned", "u32", "dup", 0, 0 },
	{ "barrier", "cta? red popc aligned", "u32", "duup", 0, 0 }, { "barrier", "cta? red and|or aligned", "pred", "Pup", 0, 0 },
	{ "barrier", "cta? red and|or aligned", "pred", "Puup", 0, 0 }, { "bar", "warp sync", "", "u", 60, 30 },
	{ "barrier", "cluster arrive|wait aligned?", "", "", 78, 90 }, { "barrier", "cluster arrive release|relaxed aligned?", "", "", 80, 90 },
	{ "barrier", "cluster wait acquire aligned?", "", "", 80, 90 },
	{ "membar", "cta|gl|sys", "", "", 0, 0 }, { "membar", "proxy alias", "", "", 75, 70 }, { "membar", "proxy async|async.global", "", "", 80, 90 },
	{ "fence", "sc|acq_rel? " SCOPE, "", "", 60, 70 }, { "fence", "acquire|release " SCOPE, "", "", 86, 90 }, { "fence", "proxy alias", "", "", 75, 70 },
	{ "fence", "proxy async|async::generic global|shared::cta|shared::cluster? acquire|release? sync_restrict::shared::cta|sync_restrict::shared::cluster? cluster?", "", "", 80, 90 },
	{ "fence", "proxy tensormap::generic acquire|release cta|cluster|gpu|sys", "", "*", 83, 90 }, { "fence", "mbarrier_init release cluster", "", "", 80, 90 },
	{ "fence", "acquire|release sync_restrict::shared::cta|sync_restrict::shared::cluster cluster", "", "", 86, 90 },
	{ "nanosleep", "", "u32", "t", 63, 70 }, { "activemask", "", "b32", "d", 62, 0 },
	{ "shfl", "sync up|down|bfly|idx", "b32", "qtuuu", 60, 30 }, { "vote", "sync all|any|uni", "pred", "Ppu", 60, 30 }, { "vote", "sync ballot", "b32", "dpu", 60, 30 },
	{ "match", "any sync", "b32 b64", "htu", 60, 70 }, { "match", "all sync", "b32 b64", "Htu", 60, 70 },
	{ "redux", "sync add|min|max", "u32 s32", "dtu", 70, 80 }, { "redux", "sync " LOGIC, "b32", "dtu", 70, 80 },
	{ "redux", "sync min|max abs? NaN?", "f32", "dtu", 86, 1100 }, { "elect", "sync", "", "Eu", 80, 90 },
	/* matrices */
	{ "ldmatrix", "sync aligned m8n8 x1 trans? " SHARED "?", "b16", "B1m", 65, 75 }, { "ldmatrix", "sync aligned m8n8 x2 trans? " SHARED "?", "b16", "B2m", 65, 75 },
	{ "ldmatrix", "sync aligned m8n8 x4 trans? " SHARED "?", "b16", "B4m", 65, 75 },
	{ "ldmatrix", "sync aligned m16n16|m8n16 x1|x2|x4 trans? " SHARED "? b8x16.b6x16_p32|b8x16.b4x16_p64|b8|b8x16? b6x16_p32|b4x16_p64?", "", "*", 86, 100 },
	{ "stmatrix", "sync aligned m8n8 x1 trans? " SHARED "?", "b16", "mB1", 78, 90 }, { "stmatrix", "sync aligned m8n8 x2 trans? " SHARED "?", "b16", "mB2", 78, 90 },
	{ "stmatrix", "sync aligned m8n8 x4 trans? " SHARED "?", "b16", "mB4", 78, 90 }, { "stmatrix", "sync aligned m16n8 x1|x2|x4 trans? " SHARED "?", "b8", "*", 86, 100 },
	{ "mma", MMA "m16n8k16 f32 bf16 bf16 f32", "", "F4B4B2F4", 70, 80 }, { "mma", MMA "m16n8k8 f32 bf16 bf16 f32", "", "F4B2B1F4", 70, 80 },
	{ "mma", MMA "m16n8k16 f32 f16 f16 f32", "", "F4B4B2F4", 70, 80 }, { "mma", MMA "m16n8k8 f32 f16 f16 f32", "", "F4B2B1F4", 65, 75 },
	{ "mma", MMA "m16n8k16 f16 f16 f16 f16", "", "B2B4B2B2", 70, 80 }, { "mma", MMA "m16n8k8 f16 f16 f16 f16", "", "B2B2B1B2", 65, 75 },
	{ "mma", MMA "m16n8k8 f32 tf32 tf32 f32", "", "F4B4B2F4", 70, 80 }, { "mma", MMA "m16n8k4 f32 tf32 tf32 f32", "", "F4B2B1F4", 70, 80 },
	{ "mma", MMA "m8n8k4 f64 f64 f64 f64", "", "G2G1G1G2", 70, 80 }, { "mma", MMA "m16n8k4|m16n8k8|m16n8k16 f64 f64 f64 f64", "", "*", 78, 90 },
	{ "mma", MMA "m16n8k32 satfinite? s32 s8|u8 s8|u8 s32", "", "B4B4B2B4", 70, 80 }, { "mma", MMA "m16n8k16 satfinite? s32 s8|u8 s8|u8 s32", "", "B4B2B1B4", 70, 80 },
	{ "mma", MMA "m8n8k16 satfinite? s32 s8|u8 s8|u8 s32", "", "B2B1B1B2", 65, 75 }, { "mma", MMA "m8n8k32 satfinite? s32 s4|u4 s4|u4 s32", "", "B2B1B1B2", 65, 75 },
	{ "mma", MMA "m16n8k32 satfinite? s32 s4|u4 s4|u4 s32", "", "B4B2B1B4", 70, 80 }, { "mma", MMA "m16n8k64 satfinite? s32 s4|u4 s4|u4 s32", "", "B4B4B2B4", 70, 80 },
	{ "mma", "sync aligned m8n8k4 row|col row|col f16|f32 f16 f16 f16|f32", "", "*", 64, 70 },
	{ "mma", MMA "m16n8k32 f32 e4m3|e5m2 e4m3|e5m2 f32", "", "F4B4B2F4", 84, 89 }, { "mma", MMA "m16n8k16 f32 e4m3|e5m2 e4m3|e5m2 f32", "", "F4B2B1F4", 87, 89 },
	{ "mma", MMA "m16n8k32 f16 e4m3|e5m2 e4m3|e5m2 f16", "", "B2B4B2B2", 87, 89 }, { "mma", MMA "m16n8k16 f16 e4m3|e5m2 e4m3|e5m2 f16", "", "B2B2B1B2", 87, 89 },
	/* control */
	{ "bra", "uni?", "", "l", 0, 0 }, { "brx", "idx uni?", "", "uj", 0, 0 }, { "ret", "uni?", "", "", 0, 0 }, { "exit trap brkpt", "", "", "", 0, 0 },
	{ NULL, NULL, NULL, NULL, 0, 0 },
};

/* Instructions of PTX of which no form is simulated and none is checked. */
const struct ptx_form ptx_unchecked[] = {
	{ "mbarrier", "try_wait|expect_tx|complete_tx", NULL, NULL, 78, 90 },
	{ "call mbarrier tex tld4 txq suld sust sured suq istypep pmevent wmma alloca stackrestore stacksave getctarank mapa vset vset2 vset4 vadd vsub vabsdiff vmin "
	  "vmax vshl vshr vmad vadd2 vadd4 vsub2 vsub4 vavrg2 vavrg4 vabsdiff2 vabsdiff4 vmin2 vmin4 vmax2 vmax4", NULL, NULL, NULL, 0, 0 },
	{ "griddepcontrol tensormap clusterlaunchcontrol", NULL, NULL, NULL, 78, 90 }, { "tcgen05", NULL, NULL, NULL, 86, 1100 },
	{ "st red multimem", "async|bulk", NULL, NULL, 81, 90 }, { "cp", "bulk|reduce", NULL, NULL, 80, 90 }, { "wgmma setmaxnreg", NULL, NULL, NULL, 80, 1090 },
	{ "mma", "kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4|sp|sp::ordered_metadata|and|xor", NULL, NULL, 70, 80 },
	{ NULL, NULL, NULL, NULL, 0, 0 },
};
