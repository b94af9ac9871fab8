/*
 * capture_error_cases.c: the calls that stream capture forbids, and their results.
 */
#include "conformance.h"

static CUstream s, t;
static CUevent event;
static CUdeviceptr p;

static CUresult open(unsigned flags)
{
	CUresult r = cu.cuStreamCreate(&s, flags);
	r = r ? r : cu.cuStreamCreate(&t, flags);
	r = r ? r : cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	return r ? r : cu.cuMemAlloc_v2(&p, 64);
}

static CUresult close(void)
{
	CUresult r = cu.cuMemFree_v2(p);
	r = r ? r : cu.cuEventDestroy_v2(event);
	r = r ? r : cu.cuStreamDestroy_v2(s);
	return r ? r : cu.cuStreamDestroy_v2(t);
}

static CUresult begin(CUstreamCaptureMode mode)
{
	return cu.cuStreamBeginCapture_v2(s, mode);
}

/* The end of a capture that was invalidated. */
static CUresult end(void)
{
	CUgraph g = NULL;
	CUresult r = cu.cuStreamEndCapture(s, &g);
	if (g)
		cu.cuGraphDestroy(g);
	return r;
}

#define GLOBAL CU_STREAM_CAPTURE_MODE_GLOBAL
#define THREAD_LOCAL CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
#define RELAXED CU_STREAM_CAPTURE_MODE_RELAXED

static const char *legacy(void)
{
	WANT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamBeginCapture_v2(NULL, GLOBAL));
	WANT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cu.cuStreamBeginCapture_v2(CU_STREAM_LEGACY, GLOBAL));
	return NULL;
}

static const char *twice(void)
{
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(GLOBAL));
	CUresult r = begin(GLOBAL);
	end();
	OK(close());
	WANT(CUDA_ERROR_ILLEGAL_STATE, r);
	return NULL;
}

static const char *not_begun(void)
{
	OK(open(CU_STREAM_NON_BLOCKING));
	CUresult r = end();
	OK(close());
	WANT(CUDA_ERROR_ILLEGAL_STATE, r);
	return NULL;
}

static const char *synchronize(void)
{
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(RELAXED));
	CUresult sync = cu.cuStreamSynchronize(s);
	CUresult next = add(s, p, 1, 1), over = end();
	OK(close());
	WANT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, sync);
	WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, next);
	WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, over);
	return NULL;
}

static const char *query(void)
{
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(RELAXED));
	CUresult r = cu.cuStreamQuery(s), over = end();
	OK(close());
	WANT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, r);
	WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, over);
	return NULL;
}

static const char *context_synchronize(void)
{
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(GLOBAL));
	CUresult r = cu.cuCtxSynchronize(), over = end();
	OK(close());
	WANT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, r);
	WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, over);
	return NULL;
}

static const char *alloc_global(void)
{
	CUdeviceptr q = 0;
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(GLOBAL));
	CUresult r = cu.cuMemAlloc_v2(&q, 64), over = end();
	OK(close());
	WANT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, r);
	WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, over);
	return NULL;
}

static const char *alloc_relaxed(void)
{
	CUdeviceptr q = 0;
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(RELAXED));
	CUresult r = cu.cuMemAlloc_v2(&q, 64), over = end();
	OK(close());
	OK(r);
	OK(over);
	OK(cu.cuMemFree_v2(q));
	return NULL;
}

static const char *exchange_mode(void)
{
	CUdeviceptr q = 0;
	CUstreamCaptureMode mode = RELAXED;
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(GLOBAL));
	CUresult swap = cu.cuThreadExchangeStreamCaptureMode(&mode);
	CUresult r = cu.cuMemAlloc_v2(&q, 64);
	CUstreamCaptureMode old = mode;
	cu.cuThreadExchangeStreamCaptureMode(&mode);
	CUresult over = end();
	OK(close());
	OK(swap);
	CHECK(old == GLOBAL);
	OK(r);
	OK(over);
	OK(cu.cuMemFree_v2(q));
	return NULL;
}

static void alloc_elsewhere(void *arg)
{
	CUdeviceptr q = 0;
	cu.cuCtxSetCurrent(context);
	*(CUresult *)arg = cu.cuMemAlloc_v2(&q, 64);
	if (q)
		cu.cuMemFree_v2(q);
	cu.cuCtxSetCurrent(NULL);
}

static const char *other_thread_global(void)
{
	CUresult r = CUDA_SUCCESS;
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(GLOBAL));
	on_thread(alloc_elsewhere, &r);
	CUresult over = end();
	OK(close());
	WANT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, r);
	WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, over);
	return NULL;
}

static const char *other_thread_local(void)
{
	CUresult r = CUDA_ERROR_UNKNOWN;
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(THREAD_LOCAL));
	on_thread(alloc_elsewhere, &r);
	CUresult over = end();
	OK(close());
	OK(r);
	OK(over);
	return NULL;
}

static void end_elsewhere(void *arg)
{
	CUgraph g = NULL;
	cu.cuCtxSetCurrent(context);
	*(CUresult *)arg = cu.cuStreamEndCapture(s, &g);
	if (g)
		cu.cuGraphDestroy(g);
	cu.cuCtxSetCurrent(NULL);
}

static const char *wrong_thread(void)
{
	CUresult r = CUDA_SUCCESS;
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(THREAD_LOCAL));
	on_thread(end_elsewhere, &r);
	end();
	OK(close());
	WANT(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, r);
	return NULL;
}

static const char *any_thread_relaxed(void)
{
	CUresult r = CUDA_ERROR_UNKNOWN;
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(RELAXED));
	on_thread(end_elsewhere, &r);
	if (r)
		end();
	OK(close());
	OK(r);
	return NULL;
}

static const char *unjoined(void)
{
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(GLOBAL));
	OK(add(s, p, 1, 1));
	OK(cu.cuEventRecord(event, s));
	OK(cu.cuStreamWaitEvent(t, event, 0));
	OK(add(t, p, 1, 1));
	CUresult over = end();
	CUstreamCaptureStatus st = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	CUresult ask = cu.cuStreamIsCapturing(s, &st);
	OK(close());
	WANT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, over);
	OK(ask);
	CHECK(st == CU_STREAM_CAPTURE_STATUS_NONE);
	return NULL;
}

static const char *unmatched(void)
{
	CUgraph g = NULL;
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(GLOBAL));
	OK(cu.cuEventRecord(event, s));
	OK(cu.cuStreamWaitEvent(t, event, 0));
	CUresult r = cu.cuStreamEndCapture(t, &g);
	end();
	OK(close());
	WANT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, r);
	return NULL;
}

static const char *isolation(void)
{
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(add(t, p, 1, 1));
	OK(cu.cuEventRecord(event, t));
	OK(begin(RELAXED));
	CUresult r = cu.cuStreamWaitEvent(s, event, 0), over = end();
	OK(close());
	WANT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, r);
	WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, over);
	return NULL;
}

static const char *merge(void)
{
	CUgraph g = NULL;
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(RELAXED));
	OK(cu.cuStreamBeginCapture_v2(t, RELAXED));
	OK(cu.cuEventRecord(event, t));
	CUresult r = cu.cuStreamWaitEvent(s, event, 0), first = end();
	CUresult second = cu.cuStreamEndCapture(t, &g);
	OK(close());
	WANT(CUDA_ERROR_STREAM_CAPTURE_MERGE, r);
	WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, first);
	WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, second);
	return NULL;
}

static const char *implicit(void)
{
	OK(open(CU_STREAM_DEFAULT));
	OK(begin(RELAXED));
	CUresult r = add(NULL, p, 1, 1), over = end();
	OK(close());
	WANT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, r);
	WANT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, over);
	return NULL;
}

static const char *implicit_query(void)
{
	CUstreamCaptureStatus st;
	OK(open(CU_STREAM_DEFAULT));
	OK(begin(RELAXED));
	CUresult r = cu.cuStreamIsCapturing(NULL, &st), over = end();
	OK(close());
	WANT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, r);
	OK(over);
	return NULL;
}

static const char *legacy_beside_non_blocking(void)
{
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(RELAXED));
	CUresult r = add(NULL, p, 1, 1), over = end();
	OK(close());
	OK(r);
	OK(over);
	return NULL;
}

static const char *captured_event(void)
{
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(RELAXED));
	OK(cu.cuEventRecord(event, s));
	CUresult ask = cu.cuEventQuery(event);
	end();
	OK(begin(RELAXED));
	OK(cu.cuEventRecord(event, s));
	CUresult wait = cu.cuEventSynchronize(event);
	end();
	OK(close());
	WANT(CUDA_ERROR_CAPTURED_EVENT, ask);
	WANT(CUDA_ERROR_CAPTURED_EVENT, wait);
	return NULL;
}

static const char *event_again(void)
{
	OK(open(CU_STREAM_NON_BLOCKING));
	OK(begin(RELAXED));
	OK(cu.cuEventRecord(event, s));
	OK(end());
	OK(cu.cuEventRecord(event, t));
	CUresult r = cu.cuEventSynchronize(event);
	OK(close());
	OK(r);
	return NULL;
}

static const char *bad_mode(void)
{
	OK(open(CU_STREAM_NON_BLOCKING));
	CUresult r = cu.cuStreamBeginCapture_v2(s, (CUstreamCaptureMode)7);
	OK(close());
	WANT(CUDA_ERROR_INVALID_VALUE, r);
	return NULL;
}

static const struct conformance_case cases[] = {
	{"capture/legacy", "cuStreamBeginCapture: not on the legacy stream", legacy, SHARED},
	{"capture/twice", "cuStreamBeginCapture: ILLEGAL_STATE on a capturing stream", twice, SHARED},
	{"capture/not_begun", "cuStreamEndCapture: ILLEGAL_STATE on a stream that does not capture", not_begun, SHARED},
	{"capture/bad_mode", "cuStreamBeginCapture: INVALID_VALUE", bad_mode, SHARED},
	{"capture/synchronize", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, then _INVALIDATED until the capture is ended", synchronize, SHARED},
	{"capture/query", "Programming guide, prohibited operations: querying a capturing stream", query, SHARED},
	{"capture/context_synchronize", "Programming guide, prohibited operations: broader handles such as the context", context_synchronize, SHARED},
	{"capture/alloc_global", "cuThreadExchangeStreamCaptureMode: GLOBAL forbids potentially unsafe calls", alloc_global, SHARED},
	{"capture/alloc_relaxed", "cuThreadExchangeStreamCaptureMode: a RELAXED capture forbids none", alloc_relaxed, SHARED},
	{"capture/exchange_mode", "cuThreadExchangeStreamCaptureMode: RELAXED on the thread allows them, the old mode is returned", exchange_mode, SHARED},
	{"capture/other_thread_global", "cuThreadExchangeStreamCaptureMode: GLOBAL captures of other threads count", other_thread_global, SHARED},
	{"capture/other_thread_local", "cuThreadExchangeStreamCaptureMode: THREAD_LOCAL captures of other threads do not", other_thread_local, SHARED},
	{"capture/wrong_thread", "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", wrong_thread, SHARED},
	{"capture/any_thread", "cuStreamEndCapture: a RELAXED capture may end on another thread", any_thread_relaxed, SHARED},
	{"capture/unjoined", "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", unjoined, SHARED},
	{"capture/unmatched", "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", unmatched, SHARED},
	{"capture/isolation", "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", isolation, SHARED},
	{"capture/merge", "CUDA_ERROR_STREAM_CAPTURE_MERGE", merge, SHARED},
	{"capture/implicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", implicit, SHARED},
	{"capture/implicit_query", "cuStreamIsCapturing: IMPLICIT for the legacy stream, without invalidating", implicit_query, SHARED},
	{"capture/legacy_beside", "Stream synchronization behaviour: non-blocking streams are independent of the legacy stream", legacy_beside_non_blocking, SHARED},
	{"capture/captured_event", "CUDA_ERROR_CAPTURED_EVENT", captured_event, SHARED},
	{"capture/event_again", "cuEventRecord: a later record replaces the captured one", event_again, SHARED},
};
GROUP(capture_error_cases, cases);
