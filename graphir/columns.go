package graphir

import "medusa/graphir/graphpb"

// columns are the values of one graph that its template does not fix. There is one slice per column of the format.
type columns struct {
	grid, block, shared []uint32
	words               []uint32 // parameter buffers, each padded to whole words
	relocationAlloc     []uint32
	relocationOffset    []uint64
	values              [valueColumns][]uint64

	allNarrow []uint32 // backing memory of the 32-bit columns, one after another
	allWide   []uint64
}

// perLaunch is the number of values of a node in the columns grid and block.
const perLaunch = 3

// extent counts the column entries of one node, or of all nodes before one.
type extent struct {
	bytes                        int64 // of the decoded parameters, but for words and relocations
	launches, words, relocations int
	values                       [valueColumns]int // nodes with values in each such column
}

func (e *extent) add(d extent) {
	e.bytes += d.bytes
	e.launches += d.launches
	e.words += d.words
	e.relocations += d.relocations
	for i := range e.values {
		e.values[i] += d.values[i]
	}
}

// words32 and words64 are the sizes of the 32-bit and the 64-bit columns together.
func (e extent) words32() int { return (2*perLaunch+1)*e.launches + e.words + e.relocations }
func (e extent) words64() int {
	n := e.relocations
	for i := range e.values {
		n += valueTable[i].per * e.values[i]
	}
	return n
}

func newColumns(e extent) *columns {
	return columnsIn(e, make([]uint32, e.words32()), make([]uint64, e.words64()))
}

// columnsIn divides the memory among the columns.
func columnsIn(e extent, narrow []uint32, wide []uint64) *columns {
	c := &columns{allNarrow: narrow[:e.words32()], allWide: wide[:e.words64()]}
	narrow, wide = c.allNarrow, c.allWide
	take := func(n int) []uint32 {
		out := narrow[:n:n]
		narrow = narrow[n:]
		return out
	}
	take64 := func(n int) []uint64 {
		out := wide[:n:n]
		wide = wide[n:]
		return out
	}
	c.grid, c.block, c.shared = take(perLaunch*e.launches), take(perLaunch*e.launches), take(e.launches)
	c.words, c.relocationAlloc = take(e.words), take(e.relocations)
	c.relocationOffset = take64(e.relocations)
	for i := range c.values {
		c.values[i] = take64(valueTable[i].per * e.values[i])
	}
	return c
}

func (c *columns) copyFrom(base *columns) {
	copy(c.allNarrow, base.allNarrow)
	copy(c.allWide, base.allWide)
}

func (c *columns) clear() {
	clear(c.allNarrow)
	clear(c.allWide)
}

// accumulate adds to each node's values those of the previous node with the same shape. This is the prediction for a graph
// without a base. Layers repeat, so most differences are zero.
func (c *columns) accumulate(p *plan) {
	c.perPair(p, plus[uint32], plus[uint64], false)
}

// reduce undoes accumulate, from the last node to the first.
func (c *columns) reduce(p *plan) {
	c.perPair(p, minus[uint32], minus[uint64], true)
}

func plus[T uint32 | uint64](col []T, from, to, n int) {
	before, sum := col[from:from+n], col[to:to+n]
	for i, value := range before {
		sum[i] += value
	}
}

func minus[T uint32 | uint64](col []T, from, to, n int) {
	before, rest := col[from:from+n], col[to:to+n]
	for i, value := range before {
		rest[i] -= value
	}
}

// perPair calls one of two functions for each node's span in each column, together with the span of the previous node of that
// shape.
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
		}
		if size.words > 0 {
			f32(c.words, from.at.words, to.at.words, size.words)
		}
		if size.relocations > 0 {
			f32(c.relocationAlloc, from.at.relocations, to.at.relocations, size.relocations)
			f64(c.relocationOffset, from.at.relocations, to.at.relocations, size.relocations)
		}
		for i, n := range size.values {
			if per := valueTable[i].per; n > 0 {
				f64(c.values[i], per*from.at.values[i], per*to.at.values[i], per*n)
			}
		}
	}
}

// alone encodes the columns of a graph without a base.
func (c *columns) alone(p *plan, g *graphpb.Graph) {
	reduced := newColumns(p.size)
	reduced.copyFrom(c)
	reduced.reduce(p)
	reduced.changesAgainst(nil, g)
}

// changesAgainst encodes a graph's columns as changes against base. If base is nil, c was reduced before.
func (c *columns) changesAgainst(base *columns, g *graphpb.Graph) {
	if base == nil {
		base = &columns{}
	}
	g.Grid = changesOf(c.grid, base.grid)
	g.Block = changesOf(c.block, base.block)
	g.Shared = changesOf(c.shared, base.shared)
	g.Words = changesOf(c.words, base.words)
	g.RelocationAlloc = changesOf(c.relocationAlloc, base.relocationAlloc)
	g.RelocationOffset = changesOf(c.relocationOffset, base.relocationOffset)
	for i := range c.values {
		*valueTable[i].wire(g) = changesOf(c.values[i], base.values[i])
	}
}
