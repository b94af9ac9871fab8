/*
 * conformance.h: shared by the cases: the driver's functions, a context, kernels, checks.
 *
 * A case returns NULL if the driver behaves as documented, and otherwise a description of its behaviour. It must leave no state
 * that disturbs the next case. A case that the machine cannot run returns skip.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#define CUDA_EXACT_SYMBOLS
#include "cuda.h"

#include <stdbool.h>

#include "functions.h"

struct driver {
#define X(name) __typeof__(&name) name;
	DRIVER_FUNCTIONS(X)
#undef X
};
extern struct driver cu;

struct conformance_case {
	const char *name, *doc;
	const char *(*run)(void);
	/* ALONE and BEFORE_INIT run in a process of their own, because the case needs an uninitialized driver or breaks the
	 * context. */
	enum { SHARED, ALONE, BEFORE_INIT } process;
};

struct group { const struct conformance_case *cases; int count; };
extern const struct group entry_cases, context_cases, memory_cases, module_cases, launch_cases, stream_cases, capture_cases,
	capture_error_cases, graph_cases, graph_exec_cases, memop_cases, vmm_cases, tensormap_cases, ipc_cases, peer_cases, multicast_cases;

/* process.c: the other process of a case. */
int ipc_peer(void);

/* multicast_cases.c: a kernel with a multimem instruction, run to its end; and an object of another process. */
CUresult multimem(const char *kernel, CUdeviceptr at, uint64_t arg);
CUresult team_import(int file);
CUresult team_bind(size_t size, CUdeviceptr *memory); /* with this process's device */
CUresult team_map(size_t size, CUdeviceptr *object);

#define GROUP(name, array) const struct group name = {array, sizeof(array) / sizeof(array[0])}

/* The primary context, current on the main thread, and a module loaded from fixture_ptx. */
extern CUcontext context;
extern CUmodule module;
extern CUfunction add_kernel, scale_kernel, bounded_kernel, shared_kernel;
extern const char fixture_ptx[];
CUresult fixture_open(void);

__attribute__((format(printf, 1, 2))) const char *message(const char *format, ...);
const char *result(CUresult r);
const char *skip(const char *why);
bool is_skip(const char *bad);

/* expr must give want. */
#define WANT(want, expr)                                                                                        \
	do {                                                                                                        \
		CUresult r_ = (expr);                                                                                   \
		if (r_ != (want))                                                                                       \
			return message("%s gave %s, want %s (line %d)", #expr, result(r_), result(want), __LINE__);         \
	} while (0)
#define OK(expr) WANT(CUDA_SUCCESS, expr)
#define CHECK(cond)                                                                                             \
	do {                                                                                                        \
		if (!(cond))                                                                                            \
			return message("%s is false (line %d)", #cond, __LINE__);                                           \
	} while (0)

/* Launches add_kernel: buf[i] += value for the first n floats. */
CUresult add(CUstream s, CUdeviceptr buf, unsigned n, float value);
/* The same as parameters of a node; the arrays live until the next call. */
CUDA_KERNEL_NODE_PARAMS add_params(CUdeviceptr buf, unsigned n, float value);
/* Runs fn(arg) on another thread that has no current context, and waits for it. */
void on_thread(void (*fn)(void *), void *arg);
/* Ends any capture on s, so that a failed case disturbs no other. */
void end_capture(CUstream s);

#endif
