package main

import (
	"fmt"
	"math/big"

	"medusa/artifacts"
	"medusa/graphir"
)

// outOfBounds lists the copies and memsets of an artifact that leave the objects which they name. If a restore got ready with one,
// a graph would write or read memory outside of its objects. Numbers are of any size here, so none of them wraps.
func outOfBounds(path string) []string {
	art, err := artifacts.Read(path)
	if err != nil {
		return []string{fmt.Sprintf("restored, but reading it fails: %v", err)}
	}
	var found []string
	spec := art.Spec
	_ = spec.AllGraphs(func(g *graphir.Graph) {
		for i := range g.Nodes {
			switch n := &g.Nodes[i]; {
			case n.Memset() != nil:
				m := n.Memset()
				if e := end(0, 0, 0, m.Pitch, m.Height, product(m.Width, uint64(m.ElemSize)), m.Height, 1); leaves(spec, m.Dst, e) {
					found = append(found, fmt.Sprintf("memset of %v bytes at %v", e, m.Dst))
				}
			case n.Memcpy() != nil:
				m := n.Memcpy()
				for _, side := range []graphir.MemcpyEnd{m.Src, m.Dst} {
					e := end(side.X, side.Y, side.Z, side.Pitch, side.Height, new(big.Int).SetUint64(m.Width), m.Height, m.Depth)
					if leaves(spec, side.Pointer, e) {
						found = append(found, fmt.Sprintf("copy of %v bytes at %v", e, side.Pointer))
					}
				}
			}
		}
	})
	return found
}

func product(a, b uint64) *big.Int {
	return new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
}

// end is how many bytes behind an end's address the last byte of a copy of width x height x depth lies, plus 1; 0: none is touched.
func end(x, y, z, pitch, rows uint64, width *big.Int, height, depth uint64) *big.Int {
	if width.Sign() == 0 || height == 0 || depth == 0 {
		return new(big.Int)
	}
	row := new(big.Int).Add(new(big.Int).SetUint64(y), new(big.Int).SetUint64(height-1))
	plane := new(big.Int).Add(new(big.Int).SetUint64(z), new(big.Int).SetUint64(depth-1))
	e := new(big.Int).Mul(plane, product(pitch, rows))
	e.Add(e, row.Mul(row, new(big.Int).SetUint64(pitch)))
	e.Add(e, new(big.Int).SetUint64(x))
	return e.Add(e, width)
}

// leaves reports whether size bytes at p leave the object. Mappings that lie side by side count as one and are left out.
func leaves(spec *graphir.Spec, p graphir.Pointer, size *big.Int) bool {
	var whole uint64
	switch p.Space {
	case graphir.SpaceAlloc:
		whole = spec.Allocations[p.Index].Size
		for _, a := range spec.Allocations {
			if a.ContiguousTo == p.Index+1 {
				return false
			}
		}
	case graphir.SpaceGlobal:
		whole = spec.Globals[p.Index].Size
	case graphir.SpaceHost:
		whole = spec.HostBuffers[p.Index].Size
	default:
		whole = spec.Tensors[p.Index].Size
	}
	last := new(big.Int).Add(size, new(big.Int).SetUint64(p.Offset))
	return size.Sign() > 0 && last.Cmp(new(big.Int).SetUint64(whole)) > 0
}
