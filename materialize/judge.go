package materialize

import (
	"fmt"
	"maps"
	"slices"

	"medusa/restore/digest"
)

// ResultError is a graph whose natively captured original leaves results that cannot verify a restored one: either no bytes
// could be compared, or they would be equal even if the graph were wrong.
type ResultError struct {
	Graph  string
	Class  digest.Class
	Name   string // of the tensor, if the engine named one
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
	reasonUnstable = "differs between two native replays on equal inputs: it depends on memory that the graph does not write, or on the order of work, or, if ranks are alone, on data that others sent before " +
		"(if the engine writes something before each replay, it has to offer BeforeReplay)"
	reasonMissing   = "is not written by the graph, though it belongs to its batch (if the engine writes something before each replay, it has to offer BeforeReplay)"
	reasonUnstepped = "is written by the engine's step without a graph, and not by the graph"
	reasonInputs    = "does not change with other inputs: a replay says nothing about what lies between"
	reasonKV        = "does not change with another KV cache, nor does any other: a replay says nothing about what lies between"
	reasonNotFinite = "holds NaN or Inf: results of other computations would be equal"
)

// NotCompared marks a verification in which no replay's results could be compared.
const NotCompared = "not checked (no output depends on inputs or KV cache)"

// judge demands that the native replays leave results to compare: each result that a graph writes is the same in both and consists
// of numbers, it writes each row that belongs to its batch, or that the engine's own step writes, and these change with inputs and
// KV cache. It returns whether results were compared: not on a simulated device, if no kernel writes any. Even there, results that vary are an error
// if strict: the rank was alone and has unstable contents, which may be data of other ranks.
func judge(native *digest.Digest, strict bool) (computes bool, err error) {
	if !native.Computes {
		if native.Device == simulated {
			// mutant: results that depend on peers' data in saved contents
			if strict {
				err = judgeStable(native)
			}
			return false, err
		}
		// mutant: results of copies
		if !changes(native) {
			return false, fmt.Errorf("verify: no graph wrote a result that changes with inputs or KV cache on %s", native.Device)
		}
	}
	for i := range native.Graphs {
		g := &native.Graphs[i]
		for k := range g.Ranges {
			if err := judgeRange(g, &g.Ranges[k]); err != nil {
				return true, err
			}
		}
		if err := judgeRows(g); err != nil {
			return true, err
		}
	}
	return true, nil
}

// simulated is the name of the device on which third parties' kernels have no effect.
const simulated = "Simulated GPU"

// changes reports whether some graph writes a result that changes with inputs or KV cache. A copy of a kernel's result counts, too.
func changes(d *digest.Digest) bool {
	for _, g := range d.Graphs {
		for _, r := range g.Ranges {
			if r.Class == digest.Output && len(r.Written) > 0 && (len(r.OtherInputs) > 0 || len(r.OtherKV) > 0) {
				return true
			}
		}
	}
	return false
}

// judgeRows demands that results depend on the inputs and the KV cache that the graph reads.
func judgeRows(g *digest.Graph) error {
	type row struct {
		at         *digest.Range
		chunk      int
		inputs, kv bool
	}
	rows := map[uint64]*row{}
	const whole = ^uint64(0) // of an output without rows
	for k := range g.Ranges {
		r := &g.Ranges[k]
		for c := range r.Chunks() {
			if r.Class != digest.Output || !r.Written.Has(c) || ofAnother(g, r) {
				continue
			}
			first, last, known := r.Rows(c)
			if !known {
				first, last = whole, whole
			}
			for n := first; ; n++ {
				if rows[n] == nil {
					rows[n] = &row{at: r, chunk: c}
				}
				rows[n].inputs = rows[n].inputs || r.OtherInputs.Has(c)
				rows[n].kv = rows[n].kv || r.OtherKV.Has(c)
				if n == last {
					break
				}
			}
		}
	}
	anyKV := false
	for _, n := range slices.Sorted(maps.Keys(rows)) {
		// mutant: results that change with inputs
		if g.ReadsInputs && !rows[n].inputs {
			return resultError(g, rows[n].at, rows[n].chunk, reasonInputs)
		}
		anyKV = anyKV || rows[n].kv
	}
	for _, n := range slices.Sorted(maps.Keys(rows)) {
		// mutant: results that change with the KV cache
		if g.ReadsKV && !anyKV {
			return resultError(g, rows[n].at, rows[n].chunk, reasonKV)
		}
	}
	return nil
}

// ofAnother reports whether a range is an output of another graph, and at most scratch of this one: those that lie in memory of
// the graphs' own have as many rows as their graph's batch.
func ofAnother(g *digest.Graph, r *digest.Range) bool {
	// mutant: outputs of other graphs
	return r.Pool && r.Row != 0 && g.Batch > 0 && r.Size/r.Row != uint64(g.Batch)
}

func resultError(g *digest.Graph, r *digest.Range, chunk int, reason string) error {
	first, _, rows := r.Rows(chunk)
	offset, _ := r.Span(chunk)
	return &ResultError{g.Label, r.Class, r.Name, r.Alloc, offset, first, rows, reason}
}

// judgeStable demands only that the results which a graph writes are the same in both replays.
func judgeStable(native *digest.Digest) error {
	for i := range native.Graphs {
		g := &native.Graphs[i]
		for k := range g.Ranges {
			err := judgeRange(g, &g.Ranges[k])
			if e, is := err.(*ResultError); is && e.Reason == reasonUnstable {
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
	if ofAnother(g, r) {
		return nil
	}
	used := len(r.Written) > 0
	for c := range r.Chunks() {
		written := r.Written.Has(c)
		first, _, rows := r.Rows(c)
		reason := ""
		switch {
		// mutant: results that differ natively
		case !r.Stable(c) && r.VaryingAt(c) == nil && (written || r.Class != digest.Output):
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
		return resultError(g, r, c, reason)
	}
	return nil
}
