package cuda

import "unsafe"

// Stream is a CUstream; 0 is the legacy default stream.
type Stream uintptr

// StreamNonBlocking is CU_STREAM_NON_BLOCKING: no implicit synchronisation with the default stream.
const StreamNonBlocking = 1

// CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
var procStreamCreate = Driver("cuStreamCreate")

// StreamCreate makes a stream in the current context.
func StreamCreate(flags uint32) (Stream, error) {
	var s Stream
	err := procStreamCreate.Call(uintptr(unsafe.Pointer(&s)), uintptr(flags))
	return s, err
}

// CUresult cuStreamDestroy_v2(CUstream hStream)
var procStreamDestroy = Driver("cuStreamDestroy_v2")

// Destroy gives the stream back; work under way is finished first.
func (s Stream) Destroy() error { return procStreamDestroy.Call(uintptr(s)) }

// CUresult cuStreamSynchronize(CUstream hStream)
var procStreamSynchronize = Driver("cuStreamSynchronize")

// Synchronize waits for the stream's work and reports its errors.
func (s Stream) Synchronize() error { return procStreamSynchronize.Call(uintptr(s)) }

// CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
var procStreamWaitEvent = Driver("cuStreamWaitEvent")

// Wait makes later work of the stream wait for what the event recorded. Inside a capture it forks or joins.
func (s Stream) Wait(e Event) error { return procStreamWaitEvent.Call(uintptr(s), uintptr(e), 0) }

// CaptureMode is a CUstreamCaptureMode: whose potentially unsafe calls a capture forbids.
type CaptureMode uint32

// Capture modes.
const (
	CaptureGlobal CaptureMode = iota
	CaptureThreadLocal
	CaptureRelaxed
)

// CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
var procStreamBeginCapture = Driver("cuStreamBeginCapture_v2")

// BeginCapture starts recording the stream's work into a graph instead of running it. The legacy default stream cannot
// be captured.
func (s Stream) BeginCapture(mode CaptureMode) error {
	return procStreamBeginCapture.Call(uintptr(s), uintptr(mode))
}

// CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
var procStreamEndCapture = Driver("cuStreamEndCapture")

// EndCapture ends the capture and returns the graph, which the caller destroys.
func (s Stream) EndCapture() (Graph, error) {
	var g Graph
	err := procStreamEndCapture.Call(uintptr(s), uintptr(unsafe.Pointer(&g)))
	return g, err
}
