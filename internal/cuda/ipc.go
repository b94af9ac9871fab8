package cuda

import (
	"runtime"
	"unsafe"
)

var (
	// CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
	procIpcOpenMemHandle = libcuda.Proc("cuIpcOpenMemHandle_v2")
	// CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
	procIpcCloseMemHandle = libcuda.Proc("cuIpcCloseMemHandle")
	// CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
	procIpcGetEventHandle = libcuda.Proc("cuIpcGetEventHandle")
	// CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
	procIpcOpenEventHandle = libcuda.Proc("cuIpcOpenEventHandle")
)

// IpcEventHandle is a CUipcEventHandle.
type IpcEventHandle [64]byte

// ipcMemLazyEnablePeerAccess is the only value of the flags.
const ipcMemLazyEnablePeerAccess = 1

// Open maps another process's allocation into this one. CloseIpc undoes it.
func (h IpcMemHandle) Open() (DevicePtr, error) {
	var ptr DevicePtr
	err := callWithHandle(procIpcOpenMemHandle, uintptr(unsafe.Pointer(&ptr)), h, ipcMemLazyEnablePeerAccess)
	return ptr, err
}

// CloseIpc unmaps memory that Open has mapped.
func (d DevicePtr) CloseIpc() error { return procIpcCloseMemHandle.Call(uintptr(d)) }

// IpcHandle returns the handle with which another process opens an interprocess event.
func (e Event) IpcHandle() (IpcEventHandle, error) {
	var handle IpcEventHandle
	err := procIpcGetEventHandle.Call(uintptr(unsafe.Pointer(&handle)), uintptr(e))
	return handle, err
}

// Open returns another process's event.
func (h IpcEventHandle) Open() (Event, error) {
	var e Event
	err := callWithHandle(procIpcOpenEventHandle, uintptr(unsafe.Pointer(&e)), h, 0)
	return e, err
}

// callWithHandle calls a function whose second parameter is a handle by value, and whose last one may be flags.
//
//go:uintptrescapes
func callWithHandle(proc *Proc, out uintptr, h [64]byte, flags uintptr) error {
	if runtime.GOARCH != "amd64" { // a struct of this size is passed by its address
		return proc.Call(out, uintptr(unsafe.Pointer(&h)), flags)
	}
	w := *(*[8]uintptr)(unsafe.Pointer(&h)) // on the stack, behind the six registers
	return proc.Call(out, flags, 0, 0, 0, 0, w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7])
}
