// Package materialize turns recorded engine starts into a verified artifact.
//
// In: the traces of two starts that differ only in where memory lies (runs A and B of docs/architecture.md), each read
// by interpose/trace. Out: a graphir.Spec in which every device address is an indirect index pointer and every kernel
// handle a name in an identified module; and, through Run, an artifact whose restored graphs were compared bit by bit
// with natively captured ones before it got its name.
//
// Compile is pure: equal traces give equal specs, and no device is needed. What it cannot prove it refuses, with graph,
// node, kernel, parameter and offset in the error: a word is a pointer only where it names the same byte of the same
// allocation in both runs at two different addresses, and a constant only where it is the same in both and points into
// no live allocation of either (paper §4; the paper takes high 8-byte values as pointers and checks by running).
//
// A trace may be damaged or made up. Reading and compiling take time and memory in proportion to it; what would take more is
// refused with a *RecordingError or a *RefusedError: memory that wraps around or lies inside of other memory, a graph that
// embeds itself or that two nodes embed, graphs embedded in each other more than 64 times (graphir.MaxNesting), and nodes of a capture in
// so little order that memory comes and goes 2^28 times between them (maxSteps).
package materialize
