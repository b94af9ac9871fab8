/*
 * ptx_exec_base.c: the operations for any host (see ptx_exec.h).
 *
 * Products and sums stay separate operations on every host: a fused multiply-add happens only where PTX says fma.
 */
#include "ptx_internal.h"

#ifndef __clang__
#pragma GCC optimize("O3", "no-math-errno", "no-trapping-math", "fp-contract=off")
#endif
#define PTX_TABLE ptx_table_base
#include "ptx_exec.h"
