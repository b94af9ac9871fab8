// Package page makes one HTML page of an artifact: how long each stage of a native and a restored start took, what memory
// is for, which kernels run how often, how large the graphs are.
//
// In: an artifact and its file's sections. Out: a page that needs nothing else, no script and no network, in the reader's
// light or dark colours. Equal artifacts give equal pages. What can fail: writing.
package page
