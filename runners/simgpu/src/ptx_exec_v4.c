/*
 * ptx_exec_v4.c: the operations for x86-64 hosts with AVX-512 (F, BW, CD, DQ, VL; see ptx_exec.h).
 */
#include "ptx_internal.h"

#ifdef PTX_X86_VARIANTS
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl,prefer-vector-width=512")
#define PTX_TABLE ptx_table_v4
#include <immintrin.h>
#include "ptx_exec.h"
#else
typedef int ptx_no_variant;
#endif
