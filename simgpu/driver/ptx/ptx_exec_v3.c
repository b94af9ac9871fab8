/*
 * ptx_exec_v3.c: the operations for x86-64 hosts with AVX2, FMA and BMI2 (see ptx_exec.h).
 */
#include "ptx_internal.h"

#ifdef PTX_X86_VARIANTS
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#pragma GCC target("avx2,fma,bmi,bmi2,popcnt")
#define PTX_TABLE ptx_table_v3
#include "ptx_exec.h"
#else
typedef int ptx_no_variant;
#endif
