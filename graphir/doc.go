// Package graphir is the graph IR: the allocation sequence, the kernel-name table, the captured graphs with their indirect index
// pointers, and the contents of permanent buffers.
//
// In: a Spec, from materialize or by hand. Out: its encoding (README.md describes the format apart from this code), a canonical
// text dump, or a list of all its inconsistencies. Fails: when encoding a Spec that is not valid (*ValidationError), is larger
// than maxDecoded, or has a graph larger than maxGroup; when decoding bytes that are damaged (*FormatError, ErrCorrupt) or newer
// than this code (ErrVersion); and when reading row groups. The row groups of a large set of graphs stay in their storage until a
// Cursor needs them. This package uses no device, no file and no other package of this module.
package graphir

//go:generate go run ./gen graph.proto graphpb/graph.pb.go
