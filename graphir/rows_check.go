package graphir

import (
	"encoding/binary"
	"fmt"
)

// A Cursor checks every graph that it reads. Most of a graph is fixed by its template, so the validator sees the first graph of each
// template, and of every other one that is not plainly valid. The values of the rest are checked column by column.

// reach returns for each object how far pointers of row groups may lead: 1 + the largest offset, or 0 if none may lead there.
func (s *Spec) reach(referred []bool, chains Contiguous) []uint64 {
	out := make([]uint64, len(referred))
	for object := range out {
		if !referred[object] {
			continue
		}
		whole := s.ObjectSize(uint32(object))
		switch {
		case object < len(s.Allocations):
			for _, next := range chains.Following(uint32(object)) {
				whole += s.Allocations[next].Size
			}
		case s.IsTensor(uint32(object)):
			at := s.Tensors[object-int(s.Object(SpaceTensor, 0))].At.Index
			// mutant: tensors that have a place of their own
			if int64(at) < int64(len(s.Allocations)) && !s.Allocations[at].Suballocated {
				continue
			}
		}
		out[object] = whole + 1
	}
	return out
}

// values has the places of those values of a template's graphs that have rules.
type values struct {
	plan  *plan
	holes []uint32 // in the parameters of all nodes: each eight bytes for which a relocation stands
}

func (v *values) of(p *plan) {
	if v.plan == p {
		return
	}
	v.plan, v.holes = p, v.holes[:0]
	for i := range p.nodes {
		s, at := p.nodes[i].shape, uint32(4*p.nodes[i].at.words)
		for f := range s.relocations {
			hole := &s.relocations[f]
			for from := hole.Offset; from < hole.Offset+hole.Size(); from += 8 {
				v.holes = append(v.holes, at+from)
			}
		}
	}
}

// fits reports whether the values of the cursor's graph are plainly valid. The validator has seen a graph of the same template.
func (c *Cursor) fits(p *plan, cols *columns) bool {
	block := cols.block[:len(cols.grid)]
	for i, n := range cols.grid {
		// mutant: empty launch in a row group
		if n == 0 || block[i] == 0 {
			return false
		}
	}
	allocations, relocations := c.reach[:len(c.spec.Allocations)], c.bodies.relocations[:len(cols.relocationAlloc)]
	for i := range relocations {
		to, reach := &relocations[i].Pointer, uint64(0)
		switch {
		case to.Space != SpaceAlloc:
			if int64(to.Index) < int64(c.spec.spaceSize(to.Space)) {
				reach = c.reach[c.spec.Target(*to)]
			}
		case int(to.Index) < len(allocations):
			reach = allocations[to.Index]
		}
		// mutant: extent of a pointer in a row group
		if to.Offset >= reach {
			return false
		}
	}
	c.values.of(p)
	params := c.bodies.params
	for _, at := range c.values.holes {
		// mutant: bytes under a pointer in a row group
		if binary.LittleEndian.Uint64(params[at:]) != 0 {
			return false
		}
	}
	return len(p.others) == 0 || c.othersFit(p)
}

// othersFit checks the nodes that are no kernel launches.
func (c *Cursor) othersFit(p *plan) bool {
	v := &validator{spec: c.spec, chains: c.chains}
	path := func() string { return "" }
	known := true
	for _, n := range p.others {
		v.node(&c.graph.Nodes[n], path, uint32(len(c.spec.Children)))
		if v.total > 0 {
			return false
		}
		// mutant: pointers of copies in a row group
		c.graph.Nodes[n].Pointers(func(to Pointer) { known = known && c.referred[c.spec.Target(to)] })
	}
	if p.hasCollectives() {
		v.calls(&c.graph, path)
	}
	return known && v.total == 0
}

// check validates the graph against the tables.
func (c *Cursor) check(i int) error {
	v := &validator{spec: c.spec, chains: c.chains}
	v.graph(&c.graph, func() string { return fmt.Sprintf("graphs[%d]", i) }, uint32(len(c.spec.Children)))
	// mutant: graphs of row groups are checked
	if v.total > 0 {
		return &FormatError{"spec", -1, &ValidationError{Problems: v.problems, Total: v.total}}
	}
	var err error
	for n := range c.graph.Nodes {
		node := &c.graph.Nodes[n]
		if relocations, all := node.relocations(); all && c.allReferred(relocations) {
			continue
		}
		node.Pointers(func(p Pointer) {
			// mutant: row groups point to known objects only
			if !c.referred[c.spec.Target(p)] {
				err = fmt.Errorf("node %d: %s is not among the objects referred to", n, p)
			}
		})
	}
	return err
}

func (c *Cursor) allReferred(relocations []Relocation) bool {
	for i := range relocations {
		if !c.referred[c.spec.Target(relocations[i].Pointer)] {
			return false
		}
	}
	return true
}
