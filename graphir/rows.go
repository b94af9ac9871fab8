package graphir

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sort"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// maxGroup is the most memory in bytes for the decoded graphs of a row group: about 38,000 nodes. A Spec that is made keeps a set
	// of graphs within this limit in memory.
	maxGroup = 16 << 20
	// fullGroup is the size at which the encoder begins the next group: decoding in memory that was used before is cheaper than in new
	// memory. An encoded set of graphs within this limit has no groups.
	fullGroup = 2 << 20
	// maxGroupEncoded bounds the encoded bytes of a row group. A writer begins the next group at a quarter of it.
	maxGroupEncoded = 4 << 20
)

// Rows are the nodes and edges of a set of graphs that is too large for memory. They are encoded in groups, and a Cursor decodes
// one group at a time on demand.
type Rows struct {
	plans    []*plan
	template []uint32 // of each graph
	groups   []rowGroup
	referred []uint32 // objects that nodes point to, ascending
	read     GroupSource
}

// GroupSource returns the encoded bytes of the i-th row group, in buffer if they fit. The caller checks them.
type GroupSource func(i int, buffer []byte) ([]byte, error)

// rowGroup is a run of graphs that are encoded together.
type rowGroup struct {
	first, count int
	size         int
	sha256       [32]byte
}

// Template numbers the part that a graph shares with others: node types, kernels, layouts, attributes and edges, but not values.
func (r *Rows) Template(graph int) int { return int(r.template[graph]) }

// Digests returns the SHA-256 of each row group, in order.
func (r *Rows) Digests() [][32]byte {
	if r == nil {
		return nil
	}
	out := make([][32]byte, len(r.groups))
	for i := range out {
		out[i] = r.groups[i].sha256
	}
	return out
}

// needs returns the most memory that decoding any one group takes.
func (r *Rows) needs() (narrow, wide, nodes int, body extent, err error) {
	for g := range r.groups {
		group := &r.groups[g]
		seen, sum, bytes := map[uint32]bool{}, extent{}, int64(0)
		for _, t := range r.template[group.first : group.first+group.count] {
			p := r.plans[t]
			// mutant: memory of a row group
			if bytes += p.bytes; bytes > maxGroup {
				return 0, 0, 0, body, fmt.Errorf("group %d takes more than %d bytes decoded", g, maxGroup)
			}
			if !seen[t] {
				seen[t] = true
				sum.add(p.size)
			}
			nodes = max(nodes, len(p.nodes))
			body.most(p.size)
		}
		narrow, wide = max(narrow, sum.words32()), max(wide, sum.words64())
	}
	return narrow, wide, nodes, body, nil
}

func (e *extent) most(d extent) {
	e.launches, e.words, e.relocations = max(e.launches, d.launches), max(e.words, d.words), max(e.relocations, d.relocations)
	for i := range e.values {
		e.values[i] = max(e.values[i], d.values[i])
	}
}

// Cursor reads a Spec's graphs in any order, and fastest in ascending order. It keeps one row group in memory.
type Cursor struct {
	spec  *Spec
	group int
	data  []byte
	rows  []row
	cols  map[uint32]*latest // by template, in the current group
	graph Graph
	*room
}

// latest is the last decoded graph of a template.
type latest struct {
	graph int // in its group
	*columns
}

// room is all memory that decoding needs. It is reused for every graph.
type room struct {
	narrow               []uint32
	wide                 []uint64
	usedNarrow, usedWide int
	bodies               *bodies
	referred             []bool
	reach                []uint64 // by object
	sound                []bool   // by template: the validator has seen a graph of it, and it is valid
	values               values
	chains               Contiguous
}

// NewCursor returns a cursor for one goroutine.
func (s *Spec) NewCursor() *Cursor { return &Cursor{spec: s, group: -1} }

// Graph returns a graph with its nodes and edges. They are valid until the next call and must not be changed. It fails if a row
// group is damaged (*FormatError) or cannot be read.
func (c *Cursor) Graph(i int) (*Graph, error) {
	if c.spec.Rows == nil {
		return &c.spec.Graphs[i], nil
	}
	if err := c.load(i); err != nil {
		var format *FormatError
		if errors.As(err, &format) {
			return nil, err
		}
		return nil, &FormatError{"graphs", i, err}
	}
	return &c.graph, nil
}

// Outline returns the facts that a graph's template fixes: node types, kernels, attributes, targets and edges. Other values are
// arbitrary, and it makes no check against the tables. It reads no row group. The result is valid until the next call.
func (c *Cursor) Outline(i int) (*Graph, error) {
	r := c.spec.Rows
	if r == nil {
		return &c.spec.Graphs[i], nil
	}
	if err := c.makeRoom(); err != nil {
		return nil, &FormatError{"graphs", i, err}
	}
	p := r.plans[r.template[i]]
	if c.bodies.plan != p {
		p.lay(c.bodies)
	}
	c.graph = c.spec.Graphs[i]
	c.graph.Nodes, c.graph.Edges = c.bodies.nodes[:len(p.nodes)], p.edges
	return &c.graph, nil
}

func (c *Cursor) makeRoom() error {
	if c.room != nil {
		return nil
	}
	narrow, wide, nodes, body, err := c.spec.Rows.needs()
	if err != nil {
		return err
	}
	c.room = &room{narrow: make([]uint32, narrow), wide: make([]uint64, wide), bodies: newBodies(nodes, body), referred: c.spec.Referred(),
		sound: make([]bool, len(c.spec.Rows.plans)), chains: c.spec.Contiguous()}
	c.reach = c.spec.reach(c.referred, c.chains)
	return nil
}

func (c *Cursor) load(i int) error {
	r := c.spec.Rows
	if err := c.makeRoom(); err != nil {
		return err
	}
	if g := sort.Search(len(r.groups), func(g int) bool { return r.groups[g].first > i }) - 1; g != c.group {
		if err := c.open(g); err != nil {
			c.group = -1
			return err
		}
	}
	group := &r.groups[c.group]
	k, p := i-group.first, r.plans[r.template[i]]
	cols, err := c.columns(k, p)
	if err != nil {
		return err
	}
	nodes, err := p.build(cols, c.bodies)
	if err != nil {
		return err
	}
	c.graph = c.spec.Graphs[i]
	c.graph.Nodes, c.graph.Edges = nodes, p.edges
	if sound := &c.sound[r.template[i]]; !*sound || !c.fits(p, cols) {
		err := c.check(i)
		*sound = err == nil
		return err
	}
	return nil
}

// open reads and checks a group.
func (c *Cursor) open(g int) (err error) {
	group := &c.spec.Rows.groups[g]
	if c.data, err = c.spec.Rows.read(g, c.data[:0]); err != nil {
		return err
	}
	// mutant: digest of a row group
	if len(c.data) != group.size || sha256.Sum256(c.data) != group.sha256 {
		return &FormatError{"groups", g, errors.New("it does not match its digest")}
	}
	c.rows = c.rows[:0]
	err = eachField(c.data, func(field protowire.Number, kind protowire.Type, _ uint64, body []byte) error {
		if field != 1 || kind != protowire.BytesType {
			return nil
		}
		if len(c.rows) == group.count {
			return errColumns
		}
		r, err := readRow(body)
		c.rows = append(c.rows, r)
		return err
	})
	if err == nil && len(c.rows) != group.count {
		err = errColumns
	}
	if err != nil {
		return &FormatError{"groups", g, err}
	}
	c.group, c.cols, c.usedNarrow, c.usedWide = g, map[uint32]*latest{}, 0, 0
	return nil
}

var errBase = errors.New("base is not the graph of its template before it")

// columns returns the values of the k-th graph of the group. On the way it decodes earlier graphs of the same template that it
// has not decoded yet.
func (c *Cursor) columns(k int, p *plan) (*columns, error) {
	group := &c.spec.Rows.groups[c.group]
	templates := c.spec.Rows.template[group.first : group.first+group.count]
	have := c.cols[templates[k]]
	if have == nil {
		n, w := p.size.words32(), p.size.words64()
		have = &latest{-1, columnsIn(p.size, c.narrow[c.usedNarrow:], c.wide[c.usedWide:])}
		c.usedNarrow, c.usedWide = c.usedNarrow+n, c.usedWide+w
		c.cols[templates[k]] = have
	}
	// mutant: row groups out of order
	if have.graph > k {
		have.graph = -1
	}
	for at := have.graph + 1; at <= k; at++ {
		if templates[at] != templates[k] {
			continue
		}
		base := int(c.rows[at].base) - 1
		// mutant: base of a row
		if base >= 0 && base != have.graph {
			return nil, errBase
		}
		if base < 0 {
			have.clear()
		}
		have.graph = -1 // if applyAll fails, these columns predict no other graph
		if err := have.applyAll(&c.rows[at]); err != nil {
			return nil, err
		}
		if base < 0 {
			have.accumulate(p)
		}
		have.graph = at
	}
	return have.columns, nil
}

// EachGraph visits every graph that can be launched, with its nodes and edges. They are valid during the visit only.
func (s *Spec) EachGraph(visit func(i int, g *Graph) error) error {
	c := s.NewCursor()
	for i := range s.Graphs {
		g, err := c.Graph(i)
		if err == nil {
			err = visit(i, g)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
