// Package graphir is the graph IR: the allocation sequence, the kernel-name table, the captured graphs with their
// indirect index pointers, and the contents of permanent buffers.
//
// In: a Spec, from materialize or by hand. Out: its encoding (README.md describes the format apart from this code), a
// canonical text dump, or the list of everything that is inconsistent in it. What can fail: encoding a Spec that is
// not valid (*ValidationError), larger than MaxDecoded or with a graph larger than MaxGroup, decoding bytes that are
// damaged (*FormatError, ErrCorrupt) or newer than this code (ErrVersion), and reading the row groups of a large set of graphs, which
// stay where they are until a Cursor asks for them. Nothing here touches a device, a file or another package of this module.
package graphir

//go:generate go run ./gen graph.proto graphpb/graph.pb.go
