package graphir

import (
	"unsafe"

	"medusa/graphir/graphpb"
)

// NodeMemcpy copies memory.
const NodeMemcpy NodeType = 1

// MemcpyNode mirrors CUDA_MEMCPY3D between two addresses that the device can access. The source may be a HostBuffer.
type MemcpyNode struct {
	Src, Dst             MemcpyEnd
	Width, Height, Depth uint64
}

// MemcpyEnd is one side of a copy.
type MemcpyEnd struct {
	Pointer       Pointer
	X, Y, Z       uint64
	Pitch, Height uint64
}

// perMemcpy is the number of values of a node in its column: two ends of alloc, offset, x, y, z, pitch, height; then width, height,
// depth.
const perMemcpy = 17

var memcpySize = extent{bytes: int64(unsafe.Sizeof(MemcpyNode{})), values: [valueColumns]int{memcpyColumn: 1}}

func init() {
	nodeTypes[NodeMemcpy] = nodeType{
		name: "memcpy",
		has:  are[*MemcpyNode],
		size: memcpySize,
		lay: func(n *Node, in *bodies, at *extent, s *shape) {
			m := &in.values[memcpyColumn].([]MemcpyNode)[at.values[memcpyColumn]]
			n.Params, m.Src.Pointer.Space, m.Dst.Pointer.Space = m, s.src, s.dst
		},
	}
}

// Memcpy returns the parameters of a memcpy node, and nil for any other.
func (n *Node) Memcpy() *MemcpyNode {
	m, _ := n.Params.(*MemcpyNode)
	return m
}

var memcpyValues = valuesOf[MemcpyNode]("memcpy", perMemcpy, func(g *graphpb.Graph) **graphpb.Changes { return &g.Memcpy })

func (m *MemcpyNode) extent() extent { return memcpySize }

func (m *MemcpyNode) pointers(visit func(Pointer)) {
	visit(m.Src.Pointer)
	visit(m.Dst.Pointer)
}

func (m *MemcpyNode) key(_ *tables, to []byte) []byte {
	return key(to, uint32(m.Src.Pointer.Space), uint32(m.Dst.Pointer.Space))
}

func (m *MemcpyNode) encode(_ *tables, pb *graphpb.Shape) {
	pb.SrcSpace, pb.DstSpace = uint32(m.Src.Pointer.Space), uint32(m.Dst.Pointer.Space)
}

func (m *MemcpyNode) collect(c *columns, at *extent) {
	values := m.values()
	copy(c.values[memcpyColumn][perMemcpy*at.values[memcpyColumn]:], values[:])
}

func (m *MemcpyNode) clone() Params {
	out := *m
	return &out
}

func (m *MemcpyNode) writes(visit func(Pointer, uint64)) {
	to, d := m.Dst.Pointer, &m.Dst
	to.Offset += d.X + d.Y*d.Pitch + d.Z*d.Pitch*d.Height
	visit(to, m.Width+d.Pitch*max(1, m.Height)*max(1, m.Depth*max(1, d.Height)))
}

func (m *MemcpyNode) values() [perMemcpy]uint64 {
	s, d := &m.Src, &m.Dst
	return [...]uint64{uint64(s.Pointer.Index), s.Pointer.Offset, s.X, s.Y, s.Z, s.Pitch, s.Height,
		uint64(d.Pointer.Index), d.Pointer.Offset, d.X, d.Y, d.Z, d.Pitch, d.Height, m.Width, m.Height, m.Depth}
}

func (m *MemcpyNode) read(v []uint64) bool {
	end := func(space Space, v []uint64) MemcpyEnd {
		return MemcpyEnd{Pointer: Pointer{Index: uint32(v[0]), Offset: v[1], Space: space}, X: v[2], Y: v[3], Z: v[4], Pitch: v[5], Height: v[6]}
	}
	*m = MemcpyNode{Src: end(m.Src.Pointer.Space, v[:7]), Dst: end(m.Dst.Pointer.Space, v[7:14]), Width: v[14], Height: v[15], Depth: v[16]}
	return m.values() == [perMemcpy]uint64(v)
}

// reach returns the number of bytes that a copy spans at one of its ends, from its pointer on. ok is false if rows or slices
// overlap or span more than 64 bits.
func (m *MemcpyNode) reach(e *MemcpyEnd) (size uint64, ok bool) {
	if m.Width == 0 || m.Height == 0 || m.Depth == 0 {
		return 0, true
	}
	row, ok := mulAdd(1, e.X, m.Width)
	lastRow, rowOK := mulAdd(1, e.Y, m.Height-1)
	lastSlice, sliceOK := mulAdd(1, e.Z, m.Depth-1)
	if ok = ok && rowOK && sliceOK; !ok || lastRow == 0 && lastSlice == 0 {
		return row, ok
	}
	rows := lastRow
	if lastSlice > 0 {
		if rows, ok = mulAdd(lastSlice, e.Height, lastRow); !ok || e.Height <= lastRow {
			return 0, false
		}
	}
	size, ok = mulAdd(rows, e.Pitch, row)
	return size, ok && e.Pitch >= row
}

func (m *MemcpyNode) validate(v *validator, path func() string) {
	m.validateEnd(v, &m.Src, func() string { return path() + ".src" })
	m.validateEnd(v, &m.Dst, func() string { return path() + ".dst" })
}

func (m *MemcpyNode) validateEnd(v *validator, e *MemcpyEnd, path func() string) {
	size, ok := m.reach(e)
	if !ok {
		v.bad(path(), "%dx%dx%d bytes from (%d, %d, %d) at a pitch of %d and a height of %d overlap, or span more than 64 bits",
			m.Width, m.Height, m.Depth, e.X, e.Y, e.Z, e.Pitch, e.Height)
	}
	// mutant: extent of a copy
	v.pointer(e.Pointer, size, path)
}

func (m *MemcpyNode) print(t *textWriter) {
	m.Src.print(t, "src")
	m.Dst.print(t, "dst")
	t.printf(" extent=%d,%d,%d", m.Width, m.Height, m.Depth)
}

func (e *MemcpyEnd) print(t *textWriter, which string) {
	t.printf(" %s=%s at=%d,%d,%d pitch=%d height=%d", which, e.Pointer, e.X, e.Y, e.Z, e.Pitch, e.Height)
}
