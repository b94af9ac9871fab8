/*
 * proxy.h: a counting stand-in for libcuda.so.1, for devices that keep no call log of their own.
 *
 * Preloaded, it takes the driver's place by its soname: every entry point of driver.spec jumps on to the real driver, and
 * the few whose calls a test counts also write a line as the simulated GPU does (simgpu/README.md). It shares no
 * code with the interposer, which in turn meets it as the driver.
 *
 * In: CALLLOG, the file to write, and CALLLOG_DRIVER, the real driver's path (default: the usual places).
 * Fails: a real driver that cannot be opened ends the process with a message; this is a test's tool.
 */
#ifndef CALLLOG_PROXY_H
#define CALLLOG_PROXY_H

#define CUDA_EXACT_SYMBOLS
#include "cuda.h"

/* The real driver's function of this exact name, NULL if it has none. */
void *proxy_real(const char *symbol);
#define REAL(name) ((__typeof__(&name))proxy_real(#name))

/* Our own function for the real one at this address, or the address itself: whoever matches functions by address then finds that
 * cuGetProcAddress and dlsym agree, as they do with a driver. */
void *proxy_own(void *real);

__attribute__((format(printf, 3, 4))) void proxy_log(const char *name, CUresult r, const char *details, ...);

#endif
