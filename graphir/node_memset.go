package graphir

import (
	"unsafe"

	"medusa/graphir/graphpb"
)

// NodeMemset fills memory.
const NodeMemset NodeType = 2

// MemsetNode mirrors CUDA_MEMSET_NODE_PARAMS. Width counts elements of ElemSize bytes.
type MemsetNode struct {
	Dst           Pointer
	Pitch         uint64
	Value         uint32
	ElemSize      uint32
	Width, Height uint64
}

// perMemset is the number of values of a node in its column: alloc, offset, pitch, value, elem_size, width, height.
const perMemset = 7

var memsetSize = extent{bytes: int64(unsafe.Sizeof(MemsetNode{})), values: [valueColumns]int{memsetColumn: 1}}

func init() {
	nodeTypes[NodeMemset] = nodeType{
		name: "memset",
		has:  are[*MemsetNode],
		size: memsetSize,
		lay: func(n *Node, in *bodies, at *extent, s *shape) {
			m := &in.values[memsetColumn].([]MemsetNode)[at.values[memsetColumn]]
			n.Params, m.Dst.Space = m, s.dst
		},
	}
}

// Memset returns the parameters of a memset node, and nil for any other.
func (n *Node) Memset() *MemsetNode {
	m, _ := n.Params.(*MemsetNode)
	return m
}

var memsetValues = valuesOf[MemsetNode]("memset", perMemset, func(g *graphpb.Graph) **graphpb.Changes { return &g.Memset })

func (m *MemsetNode) extent() extent { return memsetSize }

func (m *MemsetNode) pointers(visit func(Pointer)) { visit(m.Dst) }

func (m *MemsetNode) key(_ *tables, to []byte) []byte { return key(to, uint32(m.Dst.Space)) }

func (m *MemsetNode) encode(_ *tables, pb *graphpb.Shape) { pb.DstSpace = uint32(m.Dst.Space) }

func (m *MemsetNode) collect(c *columns, at *extent) {
	values := m.values()
	copy(c.values[memsetColumn][perMemset*at.values[memsetColumn]:], values[:])
}

func (m *MemsetNode) clone() Params {
	out := *m
	return &out
}

func (m *MemsetNode) writes(visit func(Pointer, uint64)) {
	visit(m.Dst, m.Width*uint64(m.ElemSize)+m.Pitch*max(1, m.Height))
}

func (m *MemsetNode) values() [perMemset]uint64 {
	return [...]uint64{uint64(m.Dst.Index), m.Dst.Offset, m.Pitch, uint64(m.Value), uint64(m.ElemSize), m.Width, m.Height}
}

func (m *MemsetNode) read(v []uint64) bool {
	*m = MemsetNode{Dst: Pointer{Index: uint32(v[0]), Offset: v[1], Space: m.Dst.Space}, Pitch: v[2], Value: uint32(v[3]), ElemSize: uint32(v[4]),
		Width: v[5], Height: v[6]}
	return m.values() == [perMemset]uint64(v)
}

// reach returns the number of bytes that a memset spans from its destination on. ok is false if its rows overlap or span more
// than 64 bits.
func (m *MemsetNode) reach() (size uint64, ok bool) {
	if m.Width == 0 || m.Height == 0 {
		return 0, true
	}
	row, ok := mulAdd(m.Width, uint64(m.ElemSize), 0)
	if m.Height == 1 || !ok {
		return row, ok
	}
	size, ok = mulAdd(m.Height-1, m.Pitch, row)
	return size, ok && m.Pitch >= row
}

func (m *MemsetNode) validate(v *validator, path func() string) {
	dst := func() string { return path() + ".dst" }
	size, ok := m.reach()
	if !ok {
		v.bad(dst(), "%d rows of %d elements of %d bytes at a pitch of %d overlap, or span more than 64 bits", m.Height, m.Width, m.ElemSize, m.Pitch)
	}
	// mutant: extent of a fill
	v.pointer(m.Dst, size, dst)
	if e := m.ElemSize; e != 1 && e != 2 && e != 4 {
		v.bad(path()+".elem_size", "%d is not 1, 2 or 4", e)
	}
}

func (m *MemsetNode) print(t *textWriter) {
	t.printf(" dst=%s pitch=%d value=%#x elem=%d width=%d height=%d", m.Dst, m.Pitch, m.Value, m.ElemSize, m.Width, m.Height)
}
