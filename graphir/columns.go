package graphir

import (
	"errors"
	"fmt"
	"math"

	"medusa/graphir/graphpb"
)

// columns are the values of one graph that its template leaves open, one slice per column of the format.
type columns struct {
	grid, block, shared []uint32
	words               []uint32 // parameter buffers, each padded to whole words
	fixupAlloc          []uint32
	fixupOffset         []uint64
	memset, memcpy      []uint64
}

// Values per node of a type in its column.
const (
	perLaunch = 3  // grid, block
	perMemset = 7  // alloc, offset, pitch, value, elem_size, width, height
	perMemcpy = 17 // two ends of alloc, offset, x, y, z, pitch, height; then width, height, depth
)

// extent counts what nodes take up in the columns: of one node, or of all nodes before one.
type extent struct{ launches, words, fixups, memsets, memcpys int }

func (e *extent) add(d extent) {
	e.launches += d.launches
	e.words += d.words
	e.fixups += d.fixups
	e.memsets += d.memsets
	e.memcpys += d.memcpys
}

func newColumns(e extent) *columns {
	return &columns{
		grid: make([]uint32, perLaunch*e.launches), block: make([]uint32, perLaunch*e.launches),
		shared: make([]uint32, e.launches), words: make([]uint32, e.words),
		fixupAlloc: make([]uint32, e.fixups), fixupOffset: make([]uint64, e.fixups),
		memset: make([]uint64, perMemset*e.memsets), memcpy: make([]uint64, perMemcpy*e.memcpys),
	}
}

func (c *columns) copyFrom(base *columns) {
	copy(c.grid, base.grid)
	copy(c.block, base.block)
	copy(c.shared, base.shared)
	copy(c.words, base.words)
	copy(c.fixupAlloc, base.fixupAlloc)
	copy(c.fixupOffset, base.fixupOffset)
	copy(c.memset, base.memset)
	copy(c.memcpy, base.memcpy)
}

// accumulate adds, node by node, the values of the previous node of the same shape: the prediction of a graph without
// a base. Layers repeat, so most of what is left after it is zero.
func (c *columns) accumulate(p *plan) {
	c.perPair(p, func(col []uint32, from, to, n int) {
		for i := range n {
			col[to+i] += col[from+i]
		}
	}, func(col []uint64, from, to, n int) {
		for i := range n {
			col[to+i] += col[from+i]
		}
	}, false)
}

// reduce undoes accumulate, from the last node to the first.
func (c *columns) reduce(p *plan) {
	c.perPair(p, func(col []uint32, from, to, n int) {
		for i := range n {
			col[to+i] -= col[from+i]
		}
	}, func(col []uint64, from, to, n int) {
		for i := range n {
			col[to+i] -= col[from+i]
		}
	}, true)
}

// perPair hands each node's span in each column, with that of the node before it in shape, to one of two functions.
func (c *columns) perPair(p *plan, f32 func(col []uint32, from, to, n int), f64 func(col []uint64, from, to, n int),
	backward bool) {
	for k := range p.nodes {
		if backward {
			k = len(p.nodes) - 1 - k
		}
		to := &p.nodes[k]
		if to.like < 0 {
			continue
		}
		from, size := &p.nodes[to.like], &to.shape.size
		if size.launches > 0 {
			f32(c.grid, perLaunch*from.at.launches, perLaunch*to.at.launches, perLaunch)
			f32(c.block, perLaunch*from.at.launches, perLaunch*to.at.launches, perLaunch)
			f32(c.shared, from.at.launches, to.at.launches, 1)
			f32(c.words, from.at.words, to.at.words, size.words)
			f32(c.fixupAlloc, from.at.fixups, to.at.fixups, size.fixups)
			f64(c.fixupOffset, from.at.fixups, to.at.fixups, size.fixups)
		}
		f64(c.memset, perMemset*from.at.memsets, perMemset*to.at.memsets, perMemset*size.memsets)
		f64(c.memcpy, perMemcpy*from.at.memcpys, perMemcpy*to.at.memcpys, perMemcpy*size.memcpys)
	}
}

// changes32 lists where col differs from prediction (nil: all zero), changes64 the same for 64-bit columns.
func changes32(col, prediction []uint32) *graphpb.Changes {
	var out *graphpb.Changes
	gap := uint32(0)
	for i, value := range col {
		if prediction != nil {
			value -= prediction[i]
		}
		if value == 0 {
			gap++
			continue
		}
		out = appendChange(out, gap, int64(int32(value)))
		gap = 0
	}
	return out
}

func changes64(col, prediction []uint64) *graphpb.Changes {
	var out *graphpb.Changes
	gap := uint32(0)
	for i, value := range col {
		if prediction != nil {
			value -= prediction[i]
		}
		if value == 0 {
			gap++
			continue
		}
		out = appendChange(out, gap, int64(value))
		gap = 0
	}
	return out
}

func appendChange(out *graphpb.Changes, gap uint32, delta int64) *graphpb.Changes {
	if out == nil {
		out = &graphpb.Changes{}
	}
	out.Gap = append(out.Gap, gap)
	out.Delta = append(out.Delta, delta)
	return out
}

var (
	errColumns = errors.New("columns of unequal length")
	errDelta   = errors.New("delta beyond 32 bits")
)

// apply32 adds changes to a column that holds its prediction, apply64 the same for 64-bit columns.
func apply32(changes *graphpb.Changes, col []uint32) error {
	gaps, deltas := changes.GetGap(), changes.GetDelta()
	if len(gaps) != len(deltas) {
		return errColumns
	}
	at := uint64(0)
	for k, delta := range deltas {
		at += uint64(gaps[k])
		if at >= uint64(len(col)) {
			return fmt.Errorf("change %d at entry %d of %d", k, at, len(col))
		}
		if delta < math.MinInt32 || delta > math.MaxInt32 {
			return errDelta
		}
		col[at] += uint32(delta)
		at++
	}
	return nil
}

func apply64(changes *graphpb.Changes, col []uint64) error {
	gaps, deltas := changes.GetGap(), changes.GetDelta()
	if len(gaps) != len(deltas) {
		return errColumns
	}
	at := uint64(0)
	for k, delta := range deltas {
		at += uint64(gaps[k])
		if at >= uint64(len(col)) {
			return fmt.Errorf("change %d at entry %d of %d", k, at, len(col))
		}
		col[at] += uint64(delta)
		at++
	}
	return nil
}

func (c *columns) applyAll(g *graphpb.Graph) error {
	for _, col := range []struct {
		name    string
		changes *graphpb.Changes
		col     []uint32
	}{
		{"grid", g.Grid, c.grid}, {"block", g.Block, c.block}, {"shared", g.Shared, c.shared},
		{"words", g.Words, c.words}, {"fixup_alloc", g.FixupAlloc, c.fixupAlloc},
	} {
		if err := apply32(col.changes, col.col); err != nil {
			return fmt.Errorf("%s: %w", col.name, err)
		}
	}
	for _, col := range []struct {
		name    string
		changes *graphpb.Changes
		col     []uint64
	}{{"fixup_offset", g.FixupOffset, c.fixupOffset}, {"memset", g.Memset, c.memset}, {"memcpy", g.Memcpy, c.memcpy}} {
		if err := apply64(col.changes, col.col); err != nil {
			return fmt.Errorf("%s: %w", col.name, err)
		}
	}
	return nil
}

// alone fills the columns of a graph without a base.
func (c *columns) alone(p *plan, g *graphpb.Graph) {
	reduced := newColumns(p.size)
	reduced.copyFrom(c)
	reduced.reduce(p)
	reduced.changesAgainst(nil, g)
}

// changesAgainst fills a graph's columns; base nil means that c was reduced.
func (c *columns) changesAgainst(base *columns, g *graphpb.Graph) {
	if base == nil {
		base = &columns{}
	}
	g.Grid = changes32(c.grid, base.grid)
	g.Block = changes32(c.block, base.block)
	g.Shared = changes32(c.shared, base.shared)
	g.Words = changes32(c.words, base.words)
	g.FixupAlloc = changes32(c.fixupAlloc, base.fixupAlloc)
	g.FixupOffset = changes64(c.fixupOffset, base.fixupOffset)
	g.Memset = changes64(c.memset, base.memset)
	g.Memcpy = changes64(c.memcpy, base.memcpy)
}
