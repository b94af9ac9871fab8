// Package cuda calls the CUDA driver API from Go without cgo. It is the only package that imports purego.
//
// The driver (libcuda.so.1) is opened at the first call that needs it, and each symbol is bound at its first use. A process that
// does not use a GPU never loads the driver, and if a driver lacks a symbol, only calls that need it fail. Opening and binding
// use dlopen and dlsym, so a preloaded library that exports dlsym sees every lookup.
//
// Bindings are typed functions and methods. If a signature follows from the C prototype, the binding is generated from
// driver.spec (bind_gen.go). The others are written by hand and call the same variables. Entry gives C code the address of a
// function. No other package names a driver function.
//
// Calls return nil or an error that wraps a Result. A missing library or symbol is a *MissingError. No function here panics.
//
// # Threads
//
// The driver's current context belongs to an operating-system thread, and the Go scheduler moves goroutines between threads. A
// goroutine that calls the driver must therefore first call runtime.LockOSThread, and Context.SetCurrent on that thread. Every
// other goroutine that uses the same context must do both as well. Calls that need no context (Init, DeviceGet, the
// graph-building calls between them) need no lock either.
//
// # Memory
//
// Pointers that are converted to uintptr inside the argument list of Proc.Call stay valid during the call. Memory that the driver
// reads after a call has returned (asynchronous copies from the host, kernel parameters passed by pointer) must not be ordinary
// Go memory: use HostAlloc and Args.
package cuda
