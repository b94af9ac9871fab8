/*
 * peer.c: memory of one device for the contexts of another: peer access, and copies that name a context for each side.
 *
 * In: pairs of contexts of this process. Out: whose memory the kernels of a context may touch (core/context.c), and copies. Fails: as the
 * driver documents. A copy whose side is not memory of the context that was named for it is INVALID_VALUE.
 *
 * Copies need no peer access: without it a driver stages them through the host.
 */
#include "calls/calls.h"

#include <string.h>

bool peer_forget(struct context *ctx, const struct context *peer)
{
	for (size_t i = 0; i < ctx->peer_count; i++)
		if (ctx->peers[i] == peer) {
			ctx->peers[i] = ctx->peers[--ctx->peer_count];
			return true;
		}
	return false;
}

static CUresult enter(struct call *c, CUcontext handle, struct context **peer)
{
	CUresult r = call_context(c);
	return r || (r = context_resolve(handle, peer)) ? r : *peer == c->ctx ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult sim_cuCtxEnablePeerAccess(struct call *c, CUcontext peer_context, unsigned int flags)
{
	struct context *peer;
	CUresult r = enter(c, peer_context, &peer);
	if (r)
		return r;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (peer->device == c->ctx->device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (context_reaches(c->ctx, peer))
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	c->ctx->peers = grow(c->ctx->peers, &c->ctx->peer_cap, c->ctx->peer_count + 1, sizeof(*c->ctx->peers));
	c->ctx->peers[c->ctx->peer_count++] = peer;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxDisablePeerAccess(struct call *c, CUcontext peer_context)
{
	struct context *peer;
	CUresult r = enter(c, peer_context, &peer);
	if (r)
		return r;
	return peer_forget(c->ctx, peer) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

static bool of_context(uint64_t addr, const struct context *ctx)
{
	const struct allocation *a = allocation_at(addr);
	return a && (!a->block || a->device == ctx->device);
}

static CUresult copy(struct call *c, CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes, CUstream stream, bool async)
{
	struct context *to, *from;
	struct stream *s;
	CUresult r = call_context(c);
	if (r || (r = context_resolve(dst_context, &to)) || (r = context_resolve(src_context, &from)) || (r = stream_resolve(c, stream, &s)))
		return r;
	if (bytes && (!of_context(dst, to) || !of_context(src, from)))
		return CUDA_ERROR_INVALID_VALUE;
	/* Without a stream the copy comes after all work of the three contexts, and before all later work of theirs. */
	if (!async && ((r = capture_unsafe(c)) || (r = queue_run_all(c->ctx)) || (r = queue_run_all(to)) || (r = queue_run_all(from))))
		return r;
	CUDA_MEMCPY3D p = copy_linear(CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_DEVICE, src, bytes);
	r = copy_submit(c, s, &p, from, to, async);
	return r || async ? r : queue_run_stream(s);
}

CUresult sim_cuMemcpyPeer(struct call *c, CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes)
{
	return copy(c, dst, dst_context, src, src_context, bytes, NULL, false);
}

CUresult sim_cuMemcpyPeerAsync(struct call *c, CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes, CUstream stream)
{
	return copy(c, dst, dst_context, src, src_context, bytes, stream, true);
}
