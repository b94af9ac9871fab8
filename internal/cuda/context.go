package cuda

import "unsafe"

// Context is a CUcontext.
type Context uintptr

// CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
var procPrimaryCtxRetain = Driver("cuDevicePrimaryCtxRetain")

// RetainPrimary retains the device's primary context, the one that the CUDA runtime and every library use. It does not
// become current by that.
func (d Device) RetainPrimary() (Context, error) {
	var c Context
	err := procPrimaryCtxRetain.Call(uintptr(unsafe.Pointer(&c)), uintptr(d))
	return c, err
}

// CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
var procPrimaryCtxRelease = Driver("cuDevicePrimaryCtxRelease_v2")

// ReleasePrimary gives back what RetainPrimary took; the last release destroys the context with all it owns.
func (d Device) ReleasePrimary() error { return procPrimaryCtxRelease.Call(uintptr(d)) }

// CUresult cuCtxSetCurrent(CUcontext ctx)
var procCtxSetCurrent = Driver("cuCtxSetCurrent")

// SetCurrent binds the context to the calling thread, which the caller has locked with runtime.LockOSThread.
func (c Context) SetCurrent() error { return procCtxSetCurrent.Call(uintptr(c)) }

// CUresult cuCtxGetCurrent(CUcontext *pctx)
var procCtxGetCurrent = Driver("cuCtxGetCurrent")

// CurrentContext is the calling thread's context, 0 where there is none.
func CurrentContext() (Context, error) {
	var c Context
	err := procCtxGetCurrent.Call(uintptr(unsafe.Pointer(&c)))
	return c, err
}

// CUresult cuCtxSynchronize(void)
var procCtxSynchronize = Driver("cuCtxSynchronize")

// Synchronize waits for all work of the current context and reports errors of earlier launches.
func Synchronize() error { return procCtxSynchronize.Call() }
