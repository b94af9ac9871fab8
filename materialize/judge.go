package materialize

import (
	"fmt"

	"medusa/restore/digest"
)

// ResultError is a graph whose natively captured original leaves results that say nothing about a restored one: nothing would be
// compared, or it would be equal whatever the graph did.
type ResultError struct {
	Graph  string
	Class  digest.Class
	Name   string // of the tensor, where the engine named one
	Alloc  uint32
	Offset uint64 // of the bytes, in the allocation
	Row    uint64
	HasRow bool
	Reason string
}

func (e *ResultError) Error() string {
	where := fmt.Sprintf("alloc#%d+%d", e.Alloc, e.Offset)
	if e.HasRow {
		where = fmt.Sprintf("row %d", e.Row)
	}
	return fmt.Sprintf("verify graph %q: %s %q %s %s", e.Graph, e.Class, e.Name, where, e.Reason)
}

const (
	reasonUnstable = "differs between two native replays on equal inputs: it depends on memory that the graph does not write, or on the order of work " +
		"(if the engine writes something before each replay, it has to offer BeforeReplay)"
	reasonMissing   = "is not written by the graph, though it belongs to its batch (if the engine writes something before each replay, it has to offer BeforeReplay)"
	reasonUnstepped = "is written by the engine's step without a graph, and not by the graph"
	reasonNotFinite = "holds NaN or Inf: results of other computations would be equal"
)

// judge demands of the native replays that there is something to compare: each result that a graph writes is the same in both
// and consists of numbers, and it writes each row that belongs to its batch, or that the engine's own step writes.
func judge(native *digest.Digest) error {
	for i := range native.Graphs {
		g := &native.Graphs[i]
		for k := range g.Ranges {
			if err := judgeRange(g, &g.Ranges[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

func judgeRange(g *digest.Graph, r *digest.Range) error {
	switch r.Class {
	case digest.KV, digest.Input, digest.Output:
	default:
		return nil
	}
	used := len(r.Written) > 0
	for c := range r.Chunks() {
		written := r.Written.Has(c)
		first, _, rows := r.Rows(c)
		reason := ""
		switch {
		// mutant: results that differ natively
		case !r.Stable(c) && (written || r.Class != digest.Output):
			reason = reasonUnstable
		case r.NotFinite.Has(c): // mutant: results that are no numbers
			reason = reasonNotFinite
		case g.Stepped && r.Eager.Has(c) && !written: // mutant: results of a step without a graph
			reason = reasonUnstepped
		case !g.Stepped && used && rows && !written && g.Batch > 0 && first < uint64(g.Batch): // mutant: rows of the batch
			reason = reasonMissing
		default:
			continue
		}
		offset, _ := r.Span(c)
		return &ResultError{g.Label, r.Class, r.Name, r.Alloc, offset, first, rows, reason}
	}
	return nil
}
