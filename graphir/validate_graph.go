package graphir

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// graph checks one graph, which may embed the first children entries of Children.
func (v *validator) graph(g *Graph, path func() string, children uint32) {
	v.text(g.Label, func() string { return path() + ".label" })
	at := 0
	node := func() string { return fmt.Sprintf("%s.nodes[%d]", path(), at) }
	for at = range g.Nodes {
		v.node(&g.Nodes[at], node, children)
	}
	v.calls(g, path)
	inRange := true
	for i, e := range g.Edges {
		if nodes := int64(len(g.Nodes)); int64(e.From) >= nodes || int64(e.To) >= nodes {
			v.bad(fmt.Sprintf("%s.edges[%d]", path(), i), "%d to %d of %d nodes", e.From, e.To, nodes)
			inRange = false
		}
	}
	if inRange && cyclic(g) {
		v.bad(path()+".edges", "they form a cycle")
	}
}

// tables checks globals and tensor maps. The other tables of version 2 have no invalid values.
func (v *validator) tables() {
	for i := range v.spec.Globals {
		g := &v.spec.Globals[i]
		v.text(g.Name, func() string { return fmt.Sprintf("globals[%d].name", i) })
		if int64(g.Module) >= int64(len(v.spec.Modules)) {
			v.bad(fmt.Sprintf("globals[%d]", i), "module %d of %d", g.Module, len(v.spec.Modules))
		}
	}
	for i := range v.spec.TensorMaps {
		m := &v.spec.TensorMaps[i]
		if rank := len(m.GlobalDim); rank == 0 || rank > 5 || len(m.GlobalStrides) != rank-1 || len(m.BoxDim) != rank || len(m.ElementStrides) != rank {
			v.bad(fmt.Sprintf("tensor_maps[%d]", i), "ranks %d, %d, %d, %d", rank, len(m.GlobalStrides), len(m.BoxDim), len(m.ElementStrides))
		}
	}
}

func allZero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// relocations checks the order of relocations, their pointers, and that the bytes they cover are zero in data.
func (v *validator) relocations(relocations []Relocation, data []byte, path func() string) {
	end := uint64(0)
	for i := range relocations {
		f := &relocations[i]
		from := uint64(f.Offset)
		plain := f.TensorMap == 0 && from >= end && len(data) >= 8 && from <= uint64(len(data)-8) && binary.LittleEndian.Uint64(data[from:]) == 0
		if !plain || !v.inside(f.Pointer, 0) { // rare
			v.relocation(f, end, data, func() string { return fmt.Sprintf("%s.relocations[%d]", path(), i) })
		}
		end = max(end, min(from, uint64(len(data)))+uint64(f.Size()))
	}
}

// relocation checks one relocation; the relocations before it end at byte end of data.
func (v *validator) relocation(f *Relocation, end uint64, data []byte, at func() string) {
	offset, size := uint64(f.Offset), uint64(f.Size())
	switch {
	case int64(f.TensorMap) > int64(len(v.spec.TensorMaps)):
		v.bad(at(), "tensor map %d of %d", f.TensorMap-1, len(v.spec.TensorMaps))
	case offset < end:
		v.bad(at(), "offset %d overlaps the relocation before it, which ends at %d", offset, end)
	case offset > uint64(len(data)) || size > uint64(len(data))-offset:
		v.bad(at(), "bytes %d to %d of %d", offset, offset+size, len(data))
	case !allZero(data[offset : offset+size]):
		v.bad(at(), "the bytes that it stands for are not zero")
	}
	v.pointer(f.Pointer, 0, at)
}

// cyclic needs no search in the common case that every edge leads to a later node.
func cyclic(g *Graph) bool {
	forward := true
	for _, e := range g.Edges {
		if e.From >= e.To {
			forward = false
			break
		}
	}
	if forward {
		return false
	}
	waits := make([]int, len(g.Nodes))
	next := make([][]uint32, len(g.Nodes))
	for _, e := range g.Edges {
		waits[e.To]++
		next[e.From] = append(next[e.From], e.To)
	}
	var ready []uint32
	for i, n := range waits {
		if n == 0 {
			ready = append(ready, uint32(i))
		}
	}
	done := 0
	for ; len(ready) > 0; done++ {
		node := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, to := range next[node] {
			if waits[to]--; waits[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	return done < len(g.Nodes)
}

func (v *validator) contents() {
	for i := range v.spec.Contents {
		c := &v.spec.Contents[i]
		path := func() string { return fmt.Sprintf("contents[%d]", i) }
		v.place(c, path)
		v.relocations(c.Relocations, c.Data, path)
		end := uint64(0)
		for k, r := range c.Unstable {
			at := func() string { return fmt.Sprintf("contents[%d].unstable[%d]", i, k) }
			if r.Offset < end || r.Offset > uint64(len(c.Data)) || r.Size > uint64(len(c.Data))-r.Offset {
				v.bad(at(), "bytes %d+%d of %d, behind %d", r.Offset, r.Size, len(c.Data), end)
				continue
			}
			end = r.Offset + r.Size
			if !allZero(c.Data[r.Offset:end]) {
				v.bad(at(), "its bytes are not zero")
			}
		}
	}
	v.contentsApart()
}

// place checks that a content is inside one object that a restored process may write: memory that the restorer allocates, or a
// variable, which can be set back. The engine itself fills the memory that it allocates.
func (v *validator) place(c *Content, path func() string) {
	entries := v.spec.spaceSize(c.Space)
	if int64(c.Alloc) >= int64(entries) {
		v.bad(path(), "%s %d of %d", c.Space, c.Alloc, entries)
		return
	}
	// mutant: contents in the engine's memory
	if c.Space == SpaceTensor || c.Space == SpaceAlloc && v.spec.Allocations[c.Alloc].Owner == OwnerEngine {
		v.bad(path(), "%s %d is the engine's to fill", c.Space, c.Alloc)
	}
	size := uint64(len(c.Data))
	if whole := v.spec.ObjectSize(v.spec.Object(c.Space, c.Alloc)); c.Offset > whole || size > whole-c.Offset {
		v.bad(path(), "bytes %d+%d of %s %d, which has %d", c.Offset, size, c.Space, c.Alloc, whole)
	}
}

// contentsApart refuses overlapping contents, because the result would depend on the order of filling.
func (v *validator) contentsApart() {
	order := make([]int, len(v.spec.Contents))
	for i := range order {
		order[i] = i
	}
	at := func(i int) *Content { return &v.spec.Contents[i] }
	slices.SortStableFunc(order, func(a, b int) int {
		if at(a).Space != at(b).Space {
			return int(at(a).Space) - int(at(b).Space)
		}
		if at(a).Alloc != at(b).Alloc {
			return int(int64(at(a).Alloc) - int64(at(b).Alloc))
		}
		if at(a).Offset < at(b).Offset {
			return -1
		}
		return int(min(at(a).Offset-at(b).Offset, 1))
	})
	for k := 1; k < len(order); k++ {
		a, b := at(order[k-1]), at(order[k])
		if a.Space == b.Space && a.Alloc == b.Alloc && b.Offset-a.Offset < uint64(len(a.Data)) {
			v.bad(fmt.Sprintf("contents[%d]", order[k]), "overlaps contents[%d]", order[k-1])
		}
	}
}
