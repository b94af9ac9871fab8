// Package trace reads the traces that the interposer records (README.md describes the container).
//
// In: a trace file. Out: its records as Go structs, in order. Fails: an [*Error] with file, section and offset that wraps
// [ErrIncomplete], [errCorrupt], [errForeign] or [errVersion], or an error of the operating system. Records and their decoders are
// generated from interpose/trace.spec. Tests write traces with test/tracewriter.
package trace

import "fmt"

// Type is the number of a record in trace.spec.
type Type uint32

// Record is one event of a trace; use a type switch over the generated structs.
type Record interface {
	// RecordType returns the record's number in trace.spec.
	RecordType() Type
	// Header returns the fields that all records have.
	Header() *Head

	decode(*decoder)
}

// NodeRecord is a record about a node of a graph.
type NodeRecord interface {
	Record
	// Place returns the graph's number and the node's handle.
	Place() (graph uint32, node uint64)
}

// Head has the fields of every record.
type Head struct {
	Order  uint64 // the records of a trace count from 0
	Time   uint64 // ns since the first record
	Thread uint32 // in order of first appearance
}

// Header returns h.
func (h *Head) Header() *Head { return h }

func unknown(what string, n uint64) string { return fmt.Sprintf("%s %d", what, n) }
