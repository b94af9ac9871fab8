package cuda

// Handles of the driver's objects. Most methods are in bind_gen.go; the others are written by hand.
type (
	Device              int32   // CUdevice: an ordinal's handle
	Context             uintptr // CUcontext
	Module              uintptr // CUmodule
	Function            uintptr // CUfunction of a module
	LibraryHandle       uintptr // CUlibrary: code that is loaded once for all contexts
	Kernel              uintptr // CUkernel of a library
	Stream              uintptr // CUstream; 0 is the legacy default stream
	Event               uintptr // CUevent
	Graph               uintptr // CUgraph
	GraphExec           uintptr // CUgraphExec made from a graph
	Node                uintptr // CUgraphNode of a graph
	MemoryPool          uintptr // CUmemoryPool
	MemAllocationHandle uint64  // CUmemGenericAllocationHandle: physical memory

	DevicePtr uint64  // CUdeviceptr: an address in device memory
	HostPtr   uintptr // an address in host memory outside of the Go heap

	IpcMemHandle [64]byte // CUipcMemHandle
)

// StreamNonBlocking is CU_STREAM_NON_BLOCKING: no implicit synchronization with the default stream.
const StreamNonBlocking = 1

// Flags of events.
const (
	EventDisableTiming = 2 // CU_EVENT_DISABLE_TIMING, for events that only order work
	EventExternal      = 1 // CU_EVENT_RECORD_EXTERNAL, CU_EVENT_WAIT_EXTERNAL: a node of a captured graph, not an edge
)

// CaptureMode is a CUstreamCaptureMode: it says whose potentially unsafe calls a capture forbids.
type CaptureMode uint32

// Capture modes.
const (
	CaptureGlobal CaptureMode = iota
	CaptureThreadLocal
	CaptureRelaxed
)

// Wait makes later work of the stream wait for the work that the event recorded. Inside a capture it forks or joins.
func (s Stream) Wait(e Event) error { return s.WaitEvent(e, 0) }
