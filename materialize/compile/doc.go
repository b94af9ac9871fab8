// Package compile turns two recordings of one engine's start into the graph IR.
//
// In: recordings of two starts that differ only in the addresses of memory (record-a and record-b of docs/architecture.md). Out: a graphir.Spec in
// which every device address is an indirect index pointer and every kernel handle a name in an identified module, and the bytes that
// are presumed to be padding. Equal recordings give equal specs. Compiling needs no device, starts no process and opens no file.
//
// A word that cannot be proven is refused, with graph, node, kernel, parameter and offset in the error: a word is a pointer only if it names
// the same byte of the same allocation in both runs at two different addresses, and a constant only if it is the same in both and
// points into no live allocation of either (paper §4; the paper takes high 8-byte values as pointers and checks by running).
//
// CompareNodes compares the spec with the recording of a third start, which had no part in compiling it.
//
// A recording may be made up. Compiling takes time and memory in proportion to it; recordings that would take more are refused with a
// *recording.Error or a *RefusedError: memory that lies inside of other memory, and nodes of a capture in so little order that memory
// comes and goes 2^28 times between them (maxSteps).
package compile
