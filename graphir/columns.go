package graphir

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
	bytes                        int64 // of the decoded parameters, except words and relocations
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

// blanks are columns that no graph needs any more.
type blanks []*columns

// take returns columns for a plan, with arbitrary contents.
func (b *blanks) take(p *plan) *columns {
	if last := len(*b) - 1; last >= 0 {
		c := (*b)[last]
		if *b = (*b)[:last]; cap(c.allNarrow) >= p.size.words32() && cap(c.allWide) >= p.size.words64() {
			return columnsIn(p.size, c.allNarrow, c.allWide)
		}
	}
	return newColumns(p.size)
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
	c.perRun(p, c, plus[uint32], plus[uint64])
}

// plus goes forward: a run that is longer than the distance to the nodes that it repeats adds values that it has summed before.
func plus[T uint32 | uint64](sum, before []T) {
	before = before[:len(sum)]
	for i := range sum {
		sum[i] += before[i]
	}
}

// predict sets blank columns to the values that accumulate adds to the columns of a graph.
func (c *columns) predict(p *plan, g *columns) {
	c.perRun(p, g, set[uint32], set[uint64])
}

func set[T uint32 | uint64](to, before []T) { copy(to, before) }

// perRun calls one of two functions for each run's span in each column, together with the column of before from the first node on that
// the run repeats.
func (c *columns) perRun(p *plan, before *columns, f32 func(to, from []uint32), f64 func(to, from []uint64)) {
	for _, r := range p.runs {
		from, to, end := p.start(r.from), p.start(r.to), p.start(r.end)
		f32(c.grid[perLaunch*to.launches:perLaunch*end.launches], before.grid[perLaunch*from.launches:])
		f32(c.block[perLaunch*to.launches:perLaunch*end.launches], before.block[perLaunch*from.launches:])
		f32(c.shared[to.launches:end.launches], before.shared[from.launches:])
		f32(c.words[to.words:end.words], before.words[from.words:])
		f32(c.relocationAlloc[to.relocations:end.relocations], before.relocationAlloc[from.relocations:])
		f64(c.relocationOffset[to.relocations:end.relocations], before.relocationOffset[from.relocations:])
		for i := range c.values {
			per := valueTable[i].per
			f64(c.values[i][per*to.values[i]:per*end.values[i]], before.values[i][per*from.values[i]:])
		}
	}
}
