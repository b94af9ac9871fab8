package graphir

import "medusa/graphir/graphpb"

// rowEncoder encodes the graphs of a group as rows. Its memory serves one group after the other.
type rowEncoder struct {
	latest map[uint32]prediction // by template
	blank  blanks
	gaps   []uint32 // of one row
	deltas []int64
}

// prediction is the latest graph of a template in a group.
type prediction struct {
	index int
	cols  *columns
	spare *columns // of the one before
}

// begin begins another group.
func (e *rowEncoder) begin() {
	e.blank = e.blank[:0]
	for _, p := range e.latest {
		e.blank = append(e.blank, p.cols, p.spare)
	}
	clear(e.latest)
}

// encode encodes the index-th graph of a group against the previous graph of the same template. If there is none, that graph's
// own nodes predict each other. The row is valid until the next call.
func (e *rowEncoder) encode(p *plan, g *Graph, template uint32, index int) *graphpb.Graph {
	row, base := &graphpb.Graph{}, e.latest[template]
	cols := base.spare
	if cols == nil {
		cols = e.zeros(p)
	}
	p.collect(g.Nodes, cols)
	if base.cols != nil {
		row.Base = uint32(base.index) + 1
	} else {
		base.cols = e.zeros(p)
		base.cols.predict(p, cols)
	}
	e.changes(cols, base.cols, row)
	e.latest[template] = prediction{index, cols, base.cols}
	return row
}

func (e *rowEncoder) zeros(p *plan) *columns {
	c := e.blank.take(p)
	// mutant: columns that another group was encoded in
	c.clear()
	return c
}

// changes encodes columns as changes against their prediction.
func (e *rowEncoder) changes(c, prediction *columns, row *graphpb.Graph) {
	e.gaps, e.deltas = e.gaps[:0], e.deltas[:0]
	row.Grid = changesOf(e, c.grid, prediction.grid)
	row.Block = changesOf(e, c.block, prediction.block)
	row.Shared = changesOf(e, c.shared, prediction.shared)
	row.Words = changesOf(e, c.words, prediction.words)
	row.RelocationAlloc = changesOf(e, c.relocationAlloc, prediction.relocationAlloc)
	row.RelocationOffset = changesOf(e, c.relocationOffset, prediction.relocationOffset)
	for i := range c.values {
		*valueTable[i].wire(row) = changesOf(e, c.values[i], prediction.values[i])
	}
}

// changesOf lists the differences between col and its prediction. A difference is signed, with the column's width.
func changesOf[T uint32 | uint64](e *rowEncoder, col, prediction []T) *graphpb.Changes {
	first, gap := len(e.gaps), uint32(0)
	for i, value := range col {
		if value == prediction[i] {
			gap++
			continue
		}
		delta := int64(value - prediction[i])
		if narrow[T]() {
			delta = int64(int32(delta))
		}
		e.gaps, e.deltas = append(e.gaps, gap), append(e.deltas, delta)
		gap = 0
	}
	if first == len(e.gaps) {
		return nil
	}
	return &graphpb.Changes{Gap: e.gaps[first:], Delta: e.deltas[first:]}
}
