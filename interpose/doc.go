// Package interpose starts a process under the interposer, the preloaded C library that records what a process does
// with the CUDA driver (or, in replay mode, keeps the maps that restoring needs).
//
// In: an argument vector and a [Config]. Out: an [os/exec.Cmd] ready to start. What can fail: no library is found, or
// the configuration contradicts itself. The records that recording leaves are read by package trace.
package interpose

//go:generate go run ./gen
