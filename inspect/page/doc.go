// Package page makes one HTML page about an artifact: the time of each stage of a native and a restored start, the use of memory,
// the kernels with their numbers of nodes, and the sizes of the graphs.
//
// In: an artifact and its file's sections. Out: a self-contained page without scripts and network requests, in the reader's light
// or dark colours. Equal artifacts give equal pages. Fails: writing.
package page
