/*
 * calls.h: functions for entry points that touch several parts.
 */
#ifndef SIMGPU_CALLS_H
#define SIMGPU_CALLS_H

#include "streams/streams.h"

/* Ends every object and allocation of the context. */
void context_clear(struct context *ctx);
CUresult copy_submit(struct call *c, struct stream *s, const CUDA_MEMCPY3D *p, bool async);
void exec_end(struct exec *e);
struct pool *pool_default(void);

#endif
