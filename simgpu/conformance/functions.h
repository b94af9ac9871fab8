/*
 * functions.h: the entry points that the cases call, by exact symbol.
 */
#ifndef CONFORMANCE_FUNCTIONS_H
#define CONFORMANCE_FUNCTIONS_H

#define DRIVER_FUNCTIONS(X) \
	X(cuCtxCreate_v2) X(cuCtxDestroy_v2) X(cuCtxGetCurrent) X(cuCtxGetDevice) X(cuCtxGetLimit) \
	X(cuCtxGetStreamPriorityRange) X(cuCtxPopCurrent_v2) X(cuCtxPushCurrent_v2) X(cuCtxSetCurrent) \
	X(cuCtxSetLimit) X(cuCtxSynchronize) X(cuDeviceGet) X(cuDeviceGetAttribute) X(cuDeviceGetCount) \
	X(cuDeviceGetName) X(cuDeviceGetP2PAttribute) X(cuMulticastCreate) X(cuMulticastAddDevice) X(cuMulticastBindMem) X(cuMulticastBindAddr) X(cuMulticastUnbind) X(cuMulticastGetGranularity) X(cuCtxEnablePeerAccess) X(cuCtxDisablePeerAccess) X(cuMemcpyPeer) X(cuMemcpyPeerAsync) X(cuDeviceGetUuid) X(cuDeviceCanAccessPeer) X(cuDeviceGetUuid_v2) X(cuDevicePrimaryCtxGetState) \
	X(cuDevicePrimaryCtxRelease_v2) X(cuDevicePrimaryCtxReset_v2) X(cuDevicePrimaryCtxRetain) \
	X(cuDeviceTotalMem_v2) X(cuDriverGetVersion) X(cuEventCreate) X(cuEventDestroy_v2) \
	X(cuEventElapsedTime) X(cuEventQuery) X(cuEventRecord) X(cuEventSynchronize) X(cuFuncGetAttribute) \
	X(cuFuncGetModule) X(cuFuncGetName) X(cuFuncGetParamInfo) X(cuFuncIsLoaded) X(cuFuncLoad) \
	X(cuFuncSetAttribute) X(cuGetErrorName) X(cuGetErrorString) X(cuGetProcAddress_v2) \
	X(cuGraphAddChildGraphNode) X(cuGraphAddDependencies) X(cuGraphAddDependencies_v2) \
	X(cuGraphAddEmptyNode) X(cuGraphAddEventRecordNode) X(cuGraphAddEventWaitNode) X(cuGraphAddHostNode) \
	X(cuGraphAddKernelNode_v2) X(cuGraphAddMemcpyNode) X(cuGraphAddMemsetNode) X(cuGraphAddNode_v2) \
	X(cuGraphChildGraphNodeGetGraph) X(cuGraphClone) X(cuGraphCreate) X(cuGraphDestroy) \
	X(cuGraphDestroyNode) X(cuGraphEventRecordNodeGetEvent) X(cuGraphExecDestroy) X(cuGraphExecGetFlags) \
	X(cuGraphExecKernelNodeSetParams_v2) X(cuGraphExecUpdate_v2) X(cuGraphGetEdges) X(cuGraphGetEdges_v2) \
	X(cuGraphGetNodes) X(cuGraphGetRootNodes) X(cuGraphHostNodeGetParams) X(cuGraphInstantiateWithFlags) \
	X(cuGraphInstantiateWithParams) X(cuGraphKernelNodeCopyAttributes) X(cuGraphKernelNodeGetAttribute) \
	X(cuGraphKernelNodeGetParams_v2) X(cuGraphKernelNodeSetAttribute) X(cuGraphKernelNodeSetParams_v2) \
	X(cuGraphLaunch) X(cuGraphMemsetNodeGetParams) X(cuGraphMemsetNodeSetParams) X(cuGraphNodeFindInClone) \
	X(cuGraphNodeGetDependencies) X(cuGraphNodeGetDependencies_v2) X(cuGraphNodeGetDependentNodes) \
	X(cuGraphNodeGetEnabled) X(cuGraphNodeGetType) X(cuGraphNodeSetEnabled) X(cuGraphRemoveDependencies) \
	X(cuGraphRemoveDependencies_v2) X(cuGraphUpload) X(cuInit) X(cuKernelGetAttribute) \
	X(cuKernelGetFunction) X(cuKernelGetLibrary) X(cuKernelGetName) X(cuKernelGetParamInfo) \
	X(cuKernelSetAttribute) X(cuLaunchCooperativeKernel) X(cuLaunchHostFunc) X(cuLaunchKernel) \
	X(cuLaunchKernelEx) X(cuLaunchKernel_ptsz) X(cuLibraryEnumerateKernels) X(cuLibraryGetKernel) \
	X(cuLibraryGetKernelCount) X(cuLibraryGetModule) X(cuLibraryLoadData) X(cuLibraryUnload) \
	X(cuIpcCloseMemHandle) X(cuIpcGetEventHandle) X(cuIpcGetMemHandle) X(cuIpcOpenEventHandle) \
	X(cuIpcOpenMemHandle_v2) X(cuMemAddressFree) X(cuMemAddressReserve) X(cuMemCreate) X(cuMemGetAccess) \
	X(cuMemExportToShareableHandle) X(cuMemImportFromShareableHandle) X(cuMemGetAllocationGranularity) X(cuMemMap) X(cuMemRelease) X(cuMemRetainAllocationHandle) \
	X(cuMemSetAccess) X(cuMemUnmap) \
	X(cuMemAllocAsync) X(cuMemAllocHost_v2) X(cuMemAllocPitch_v2) X(cuMemAlloc_v2) X(cuMemFreeAsync) \
	X(cuMemFreeHost) X(cuMemFree_v2) X(cuMemGetAddressRange_v2) X(cuMemGetInfo_v2) \
	X(cuMemHostGetDevicePointer_v2) X(cuMemHostRegister_v2) X(cuMemHostUnregister) X(cuMemcpy) \
	X(cuMemcpy2D_v2) X(cuMemcpyDtoDAsync_v2) X(cuMemcpyDtoD_v2) X(cuMemcpyDtoHAsync_v2) X(cuMemcpyDtoH_v2) \
	X(cuMemcpyHtoDAsync_v2) X(cuMemcpyHtoD_v2) X(cuMemsetD16Async) X(cuMemsetD16_v2) X(cuMemsetD2D8_v2) \
	X(cuMemsetD32Async) X(cuMemsetD32_v2) X(cuMemsetD8_v2) X(cuModuleEnumerateFunctions) \
	X(cuModuleGetFunction) X(cuModuleGetFunctionCount) X(cuModuleGetGlobal_v2) X(cuModuleGetLoadingMode) \
	X(cuModuleLoad) X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleUnload) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor) X(cuPointerGetAttribute) X(cuStreamBeginCapture_v2) \
	X(cuStreamCreate) X(cuStreamCreateWithPriority) X(cuStreamDestroy_v2) X(cuStreamEndCapture) \
	X(cuStreamGetCaptureInfo) X(cuStreamGetCaptureInfo_v2) X(cuStreamGetCtx) X(cuStreamGetFlags) \
	X(cuStreamGetPriority) X(cuStreamIsCapturing) X(cuStreamQuery) X(cuStreamSynchronize) \
	X(cuGraphAddBatchMemOpNode) X(cuGraphBatchMemOpNodeGetParams) X(cuGraphBatchMemOpNodeSetParams) \
	X(cuGraphExecBatchMemOpNodeSetParams) X(cuStreamBatchMemOp_v2) X(cuStreamWaitValue32_v2) X(cuStreamWaitValue64_v2) \
	X(cuStreamWriteValue32_v2) X(cuStreamWriteValue64_v2) \
	X(cuStreamUpdateCaptureDependencies) X(cuStreamWaitEvent) X(cuTensorMapEncodeTiled) \
	X(cuTensorMapReplaceAddress) X(cuThreadExchangeStreamCaptureMode)

#endif
