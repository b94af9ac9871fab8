/*
 * calls.h: functions for entry points that touch several parts.
 */
#ifndef SIMGPU_CALLS_H
#define SIMGPU_CALLS_H

#include "streams/streams.h"

/* Ends every object and allocation of the context. */
void context_clear(struct context *ctx);
CUresult context_resolve(CUcontext handle, struct context **out);
bool peer_forget(struct context *ctx, const struct context *peer); /* false: ctx could not reach it */
/* from and to: the contexts whose memory a side is; NULL: the stream's. */
CUresult copy_submit(struct call *c, struct stream *s, const CUDA_MEMCPY3D *p, const struct context *from, const struct context *to, bool async);
void exec_end(struct exec *e);
struct pool *pool_default(CUdevice dev);

#endif
