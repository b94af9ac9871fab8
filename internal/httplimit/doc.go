// Package httplimit bounds what clients of a port can take without being known: connections, time, and memory for bodies.
//
// In: a listener, and bodies of requests. Out: a listener whose connections are bounded in number, for each client and in all, and whose writes have
// a deadline; bodies that share one bound. Fails: a body that is too large (*http.MaxBytesError), bodies that are too large together
// ([ErrFull]). A connection too many is closed at once.
package httplimit
