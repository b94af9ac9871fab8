// Package interpose starts a process under the interposer, a preloaded C library. In record mode the interposer records how a
// process uses the CUDA driver; in replay mode it keeps the maps that a restore needs.
//
// In: an argument vector and a [Config]. Out: an [os/exec.Cmd] ready to start. Fails: the library is not found, or the
// configuration contradicts itself. Package trace reads the records.
package interpose

//go:generate go run ./gen
