/*
 * driver_test.h: helpers of the tests of the simulated driver.
 */
#ifndef DRIVER_TEST_H
#define DRIVER_TEST_H

#include "cuda.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(cond)                                                                         \
	do {                                                                                    \
		if (!(cond)) {                                                                      \
			printf("%s:%d: %s is false\n", __FILE__, __LINE__, #cond);                      \
			_exit(1);                                                                       \
		}                                                                                   \
	} while (0)
#define WANT(want, expr)                                                                    \
	do {                                                                                    \
		CUresult r_ = (expr);                                                               \
		if (r_ != (want)) {                                                                 \
			printf("%s:%d: %s gave %d, want %d\n", __FILE__, __LINE__, #expr, r_, want);    \
			_exit(1);                                                                       \
		}                                                                                   \
	} while (0)
#define OK(expr) WANT(CUDA_SUCCESS, expr)

#define KERNEL(name, op)                                                                                       \
	".visible .entry " name "(.param .u64 buf, .param .u32 n, .param .f32 v)\n{\n"                             \
	".reg .pred %p<2>;\n.reg .f32 %f<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n"                               \
	"ld.param.u64 %rd1, [buf];\nld.param.u32 %r1, [n];\nld.param.f32 %f1, [v];\n"                              \
	"mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"                                    \
	"mad.lo.s32 %r5, %r2, %r3, %r4;\nsetp.ge.u32 %p1, %r5, %r1;\n@%p1 bra DONE;\n"                             \
	"cvta.to.global.u64 %rd2, %rd1;\nmul.wide.u32 %rd3, %r5, 4;\nadd.s64 %rd4, %rd2, %rd3;\n"                  \
	"ld.global.f32 %f2, [%rd4];\n" op " %f3, %f2, %f1;\nst.global.f32 [%rd4], %f3;\nDONE:\nret;\n}\n"
#define HEADER ".version 7.0\n.target sm_80\n.address_size 64\n"

extern CUfunction add_kernel;

CUfunction load(const char *ptx, const char *name);
CUresult launch(CUfunction f, CUstream s, CUdeviceptr buf, unsigned n, float v);
CUstream new_stream(void);
/* The first line of a file that holds both words, or NULL. */
const char *line_with(const char *path, const char *a, const char *b);

void undone(void);
void unordered(void);
void missing_edge(void);
void host_function_waits(void);
void threads(void);
void large_graph(void);
void print_addresses(void);
void print_distances(void);
void reuse(void);
void placement(void);
void not_zeroed(void);
void out_of_memory(void);
void freed_memory(void);
void past_the_end(void);
void no_names(void);
void unsupported(void);
void between_processes(void);
void shared_device(void);
void no_compute(void);
void capability(void);
void other_device(void);
void multicast(void);
void library_in_capture(void);
void copies_take_time(void);
void fat_binary(void);
void origins_refused(void);
void origins_idle(void);
void code_refused(void);
void code_runs_nothing(void);
void code_damaged(void);
void code_damaged_block(void);
void code_files_cut_off(void);
void code_sections_without_bytes(void);
void call_log(void);
void forks(void);
void truth(void);
void truth_of_long_names(void);
void leave_things(void);
void leaks(void);
void fault_once(void);
void fault_sticky(void);

#endif
