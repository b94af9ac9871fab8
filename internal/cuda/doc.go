// Package cuda calls the CUDA driver API from Go without cgo. It is the only package that imports purego.
//
// The driver (libcuda.so.1) is opened at the first call that needs it and its symbols are bound one by one, so that a
// process that never touches a GPU never loads it, and a driver that lacks a symbol fails only the call that needs it.
// Opening and binding go through dlopen and dlsym: a preloaded library that exports dlsym sees every lookup.
//
// Bindings are typed functions and methods. Those whose signature follows from the C prototype are generated from
// driver.spec (bind_gen.go); the others are written by hand and call the same variables. Entry gives the address of a
// function to C code. No other package names a driver function.
//
// Calls return nil or an error that wraps a Result; a library or symbol that does not exist is a *MissingError.
// Nothing here panics.
//
// # Threads
//
// The driver's current context belongs to an operating-system thread, and the Go scheduler moves goroutines between
// threads. A goroutine that calls the driver therefore calls runtime.LockOSThread first and Context.SetCurrent on that
// thread; a second goroutine that uses the same context does both again. The calls that need no context (Init,
// DeviceGet, the graph-building calls between them) need no lock either.
//
// # Memory
//
// Pointers converted to uintptr inside the argument list of Proc.Call stay valid for the duration of the call. Memory
// that the driver reads after a call has returned (asynchronous copies from the host, kernel parameters held by
// pointer) must not be ordinary Go memory: use HostAlloc and Args.
package cuda
