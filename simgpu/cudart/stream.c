/*
 * stream.c: streams, events, capture and graphs. Handles are the driver's own.
 *
 * In: handles. Out: the driver call of the same meaning. Fails: driver calls, with the driver's result.
 */
#include "cudart.h"

EXPORT cudaError_t cudaStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	NEED_CONTEXT();
	return CALL(cuStreamCreateWithPriority, stream, flags, priority);
}

EXPORT cudaError_t cudaStreamCreate(CUstream *stream)
{
	return cudaStreamCreateWithPriority(stream, CU_STREAM_DEFAULT, 0);
}

EXPORT cudaError_t cudaStreamCreateWithFlags(CUstream *stream, unsigned int flags)
{
	return cudaStreamCreateWithPriority(stream, flags, 0);
}

EXPORT cudaError_t cudaStreamDestroy(CUstream stream)
{
	NEED_CONTEXT();
	return CALL(cuStreamDestroy, stream);
}

EXPORT cudaError_t cudaStreamGetPriority(CUstream stream, int *priority)
{
	NEED_CONTEXT();
	return CALL(cuStreamGetPriority, stream, priority);
}

EXPORT cudaError_t cudaStreamQuery(CUstream stream)
{
	NEED_CONTEXT();
	return CALL(cuStreamQuery, stream);
}

EXPORT cudaError_t cudaStreamSynchronize(CUstream stream)
{
	NEED_CONTEXT();
	return CALL(cuStreamSynchronize, stream);
}

EXPORT cudaError_t cudaStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	NEED_CONTEXT();
	return CALL(cuStreamWaitEvent, stream, event, flags);
}

EXPORT cudaError_t cudaStreamAddCallback(CUstream stream, CUstreamCallback fn, void *data, unsigned int flags)
{
	NEED_CONTEXT();
	return CALL(cuStreamAddCallback, stream, fn, data, flags);
}

EXPORT cudaError_t cudaStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	NEED_CONTEXT();
	return CALL(cuStreamIsCapturing, stream, status);
}

EXPORT cudaError_t cudaStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
	NEED_CONTEXT();
	return CALL(cuStreamBeginCapture, stream, mode);
}

EXPORT cudaError_t cudaStreamEndCapture(CUstream stream, CUgraph *graph)
{
	NEED_CONTEXT();
	return CALL(cuStreamEndCapture, stream, graph);
}

#if CUDART_VERSION >= 13000
EXPORT cudaError_t cudaStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, unsigned long long *id,
                                            CUgraph *graph, const CUgraphNode **deps, const CUgraphEdgeData **edges,
                                            size_t *count)
{
	NEED_CONTEXT();
	return CALL(cuStreamGetCaptureInfo, stream, status, (uint64_t *)id, graph, deps, edges, count);
}

EXPORT cudaError_t cudaGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *deps, CUgraphEdgeData *edges, size_t *count)
{
	NEED_CONTEXT();
	return CALL(cuGraphNodeGetDependencies, node, deps, edges, count);
}
#else
EXPORT cudaError_t cudaStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, unsigned long long *id,
                                               CUgraph *graph, const CUgraphNode **deps, size_t *count)
{
	NEED_CONTEXT();
	return CALL(cuStreamGetCaptureInfo, stream, status, (uint64_t *)id, graph, deps, count);
}
#endif

EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	NEED_DRIVER();
	return CALL(cuThreadExchangeStreamCaptureMode, mode);
}

EXPORT cudaError_t cudaEventCreateWithFlags(CUevent *event, unsigned int flags)
{
	NEED_CONTEXT();
	return CALL(cuEventCreate, event, flags);
}

EXPORT cudaError_t cudaEventCreate(CUevent *event)
{
	return cudaEventCreateWithFlags(event, CU_EVENT_DEFAULT);
}

EXPORT cudaError_t cudaEventDestroy(CUevent event)
{
	NEED_CONTEXT();
	return CALL(cuEventDestroy, event);
}

EXPORT cudaError_t cudaEventRecord(CUevent event, CUstream stream)
{
	NEED_CONTEXT();
	return CALL(cuEventRecord, event, stream);
}

EXPORT cudaError_t cudaEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	NEED_CONTEXT();
	return CALL(cuEventRecordWithFlags, event, stream, flags);
}

EXPORT cudaError_t cudaEventQuery(CUevent event)
{
	NEED_CONTEXT();
	return CALL(cuEventQuery, event);
}

EXPORT cudaError_t cudaEventSynchronize(CUevent event)
{
	NEED_CONTEXT();
	return CALL(cuEventSynchronize, event);
}

EXPORT cudaError_t cudaEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	NEED_CONTEXT();
	return CALL(cuEventElapsedTime, ms, start, end);
}

EXPORT cudaError_t cudaIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	NEED_CONTEXT();
	return CALL(cuIpcGetEventHandle, handle, event);
}

EXPORT cudaError_t cudaIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	NEED_CONTEXT();
	return CALL(cuIpcOpenEventHandle, event, handle);
}

EXPORT cudaError_t cudaGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	NEED_CONTEXT();
	return CALL(cuGraphGetNodes, graph, nodes, count);
}

EXPORT cudaError_t cudaGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	NEED_CONTEXT();
	return CALL(cuGraphInstantiateWithFlags, exec, graph, flags);
}

EXPORT cudaError_t cudaGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

EXPORT cudaError_t cudaGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	NEED_CONTEXT();
	return CALL(cuGraphExecUpdate, exec, graph, info);
}

EXPORT cudaError_t cudaGraphLaunch(CUgraphExec exec, CUstream stream)
{
	NEED_CONTEXT();
	return CALL(cuGraphLaunch, exec, stream);
}

EXPORT cudaError_t cudaGraphDestroy(CUgraph graph)
{
	NEED_CONTEXT();
	return CALL(cuGraphDestroy, graph);
}

EXPORT cudaError_t cudaGraphExecDestroy(CUgraphExec exec)
{
	NEED_CONTEXT();
	return CALL(cuGraphExecDestroy, exec);
}

EXPORT cudaError_t cudaGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
	NEED_CONTEXT();
	return CALL(cuGraphDebugDotPrint, graph, path, flags);
}
