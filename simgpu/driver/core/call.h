/*
 * call.h: the frame of every entry point: the driver's lock, the checks common to all calls, the call log.
 *
 * procs.c wraps each implementation in call_enter and call_leave, so an implementation runs with the lock held, has a
 * place for log details and cannot forget to be logged.
 */
#ifndef SIMGPU_CALL_H
#define SIMGPU_CALL_H

#define CUDA_EXACT_SYMBOLS
#include "cuda.h"

struct context;

struct call {
	const char *name;
	int per_thread; /* a _ptsz or _ptds symbol: stream 0 is the thread's own default stream */
	int locked;
	uint64_t start_us;
	struct context *ctx; /* set by call_context */
	char detail[1024];   /* "key=value\tkey=value", cut off at the end of the room */
	size_t detail_len;
};

/* Non-zero: the call ends with this result (driver not initialised, or made from inside a host function). */
CUresult call_enter(struct call *c, const char *name, int per_thread);
CUresult call_leave(struct call *c, CUresult r);

/* The calling thread's current context in c->ctx; fails if there is none, it is gone, or it holds a sticky error. */
CUresult call_context(struct call *c);

/* CUDA_ERROR_NOT_SUPPORTED, with the entry point's name in the error log. */
CUresult call_unsupported(struct call *c);
/* The same for a part of an entry point that does exist. */
CUresult call_unsupported_part(struct call *c, const char *what);

__attribute__((format(printf, 2, 3))) void call_detail(struct call *c, const char *format, ...);

/* fault.c: the result that this call is to fail with, or success. Called once for each call of an initialised driver. */
CUresult fault_take(const char *name);

/* Lets other threads into the driver while a host function runs. */
void driver_unlock(void);
void driver_lock(void);
/* Waits until another thread finished a host function. */
void driver_wait(void);
void driver_wake(void);

#endif
