package cuda

import "unsafe"

// Event is a CUevent.
type Event uintptr

// EventDisableTiming is CU_EVENT_DISABLE_TIMING, for events that only order work.
const EventDisableTiming = 2

// CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
var procEventCreate = Driver("cuEventCreate")

// EventCreate makes an event in the current context.
func EventCreate(flags uint32) (Event, error) {
	var e Event
	err := procEventCreate.Call(uintptr(unsafe.Pointer(&e)), uintptr(flags))
	return e, err
}

// CUresult cuEventDestroy_v2(CUevent hEvent)
var procEventDestroy = Driver("cuEventDestroy_v2")

// Destroy gives the event back.
func (e Event) Destroy() error { return procEventDestroy.Call(uintptr(e)) }

// CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
var procEventRecord = Driver("cuEventRecord")

// Record makes the event stand for all work that the stream holds now.
func (e Event) Record(s Stream) error { return procEventRecord.Call(uintptr(e), uintptr(s)) }

// CUresult cuEventSynchronize(CUevent hEvent)
var procEventSynchronize = Driver("cuEventSynchronize")

// Synchronize waits for what the event recorded; an event never recorded is done.
func (e Event) Synchronize() error { return procEventSynchronize.Call(uintptr(e)) }
