package graphir

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"medusa/graphir/graphpb"
)

// NodeCollective is a hole: a call of the engine's communicator, which each start makes anew. The driver has no such type.
const NodeCollective NodeType = 15

// CollectiveNode describes the call. Params is a Collective as NewCollective lays it out. The bytes of both addresses are zero; a relocation
// for each replaces them.
type CollectiveNode struct {
	Params      []byte
	Relocations []Relocation
}

// Collective is a call of a communicator. Operation, DType, Reduce and Root are numbers of the engine's own.
type Collective struct {
	Number                         uint32 // in the graph, in the order of the calls
	Operation, DType, Reduce, Root uint32
	Count                          uint64
	Send, Recv                     Pointer
	SendBytes, RecvBytes           uint64
}

// CollectiveBytes is the size of a laid out call: operation, dtype, reduce and root at byte 0, count at 16, send and its size at 24 and 32,
// recv and its size at 40 and 48, the number at 56.
const CollectiveBytes = 60

const (
	collectiveSend = 24
	collectiveRecv = 40
)

var collectiveSize = extent{bytes: int64(unsafe.Sizeof(CollectiveNode{}))}

func init() {
	nodeTypes[NodeCollective] = nodeType{
		name:   "collective",
		has:    are[*CollectiveNode],
		size:   collectiveSize,
		buffer: true,
		lay: func(n *Node, in *bodies, at *extent, s *shape) {
			params, relocations := in.buffer(at, s)
			n.Params = &CollectiveNode{params, relocations}
		},
	}
}

// Collective returns the parameters of a hole, and nil for any other node.
func (n *Node) Collective() *CollectiveNode {
	m, _ := n.Params.(*CollectiveNode)
	return m
}

// NewCollective lays a call out.
func NewCollective(c Collective) *CollectiveNode {
	to := make([]byte, CollectiveBytes)
	for i, v := range []uint32{c.Operation, c.DType, c.Reduce, c.Root} {
		binary.LittleEndian.PutUint32(to[4*i:], v)
	}
	binary.LittleEndian.PutUint64(to[16:], c.Count)
	binary.LittleEndian.PutUint64(to[collectiveSend+8:], c.SendBytes)
	binary.LittleEndian.PutUint64(to[collectiveRecv+8:], c.RecvBytes)
	binary.LittleEndian.PutUint32(to[56:], c.Number)
	return &CollectiveNode{to, []Relocation{{Offset: collectiveSend, Pointer: c.Send}, {Offset: collectiveRecv, Pointer: c.Recv}}}
}

// Call returns the call. Params must have CollectiveBytes bytes.
func (m *CollectiveNode) Call() Collective {
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(m.Params[at:]) }
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(m.Params[at:]) }
	c := Collective{
		Number: u32(56), Operation: u32(0), DType: u32(4), Reduce: u32(8), Root: u32(12), Count: u64(16),
		SendBytes: u64(collectiveSend + 8), RecvBytes: u64(collectiveRecv + 8),
	}
	for _, f := range m.Relocations {
		if f.Offset == collectiveSend {
			c.Send = f.Pointer
		} else {
			c.Recv = f.Pointer
		}
	}
	return c
}

func (c Collective) String() string {
	return fmt.Sprintf("%d: operation=%d dtype=%d reduce=%d root=%d count=%d send=%s+%d recv=%s+%d", c.Number, c.Operation, c.DType, c.Reduce, c.Root, c.Count,
		c.Send, c.SendBytes, c.Recv, c.RecvBytes)
}

func (m *CollectiveNode) extent() extent { return collectiveSize.with(m.Params, m.Relocations) }

func (m *CollectiveNode) pointers(visit func(Pointer)) {
	for i := range m.Relocations {
		visit(m.Relocations[i].Pointer)
	}
}

func (m *CollectiveNode) key(_ *tables, to []byte) []byte {
	return bufferKey(to, m.Params, m.Relocations)
}

func (m *CollectiveNode) encode(_ *tables, pb *graphpb.Shape) {
	encodeBuffer(pb, m.Params, m.Relocations)
}

func (m *CollectiveNode) collect(c *columns, at *extent) { c.buffer(at, m.Params, m.Relocations) }

func (m *CollectiveNode) clone() Params {
	return &CollectiveNode{slices.Clone(m.Params), slices.Clone(m.Relocations)}
}

func (m *CollectiveNode) writes(visit func(Pointer, uint64)) {
	c := m.Call()
	visit(c.Recv, c.RecvBytes)
}

func (m *CollectiveNode) validate(v *validator, path func() string) {
	if len(m.Params) != CollectiveBytes || len(m.Relocations) != 2 {
		v.bad(path(), "%d bytes and %d relocations, for a collective call", len(m.Params), len(m.Relocations))
		return
	}
	v.relocations(m.Relocations, m.Params, path)
	for i, offset := range []uint32{collectiveSend, collectiveRecv} {
		if f := m.Relocations[i]; f.TensorMap != 0 || f.Offset != offset {
			v.bad(path(), "an address of the call has no relocation")
			return
		}
	}
	c := m.Call()
	if c.SendBytes == 0 || c.RecvBytes == 0 {
		v.bad(path(), "a collective call without memory")
		return
	}
	v.pointer(c.Send, c.SendBytes, path)
	v.pointer(c.Recv, c.RecvBytes, path)
}

// calls checks that the collective calls of a graph have an order. A start makes them in it.
func (v *validator) calls(g *Graph, path func() string) {
	var numbers []uint32
	for i := range g.Nodes {
		if m := g.Nodes[i].Collective(); m != nil && len(m.Params) == CollectiveBytes {
			numbers = append(numbers, m.Call().Number)
		}
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		// mutant: order of collective calls
		if int64(n) != int64(i) {
			v.bad(path(), "collective call %d of %d is missing", i, len(numbers))
			return
		}
	}
}

func (m *CollectiveNode) print(t *textWriter) { t.printf(" %s", m.Call()) }

// AnyCollectives reports whether any graph has collective calls.
func (s *Spec) AnyCollectives() bool {
	for i := range s.Graphs {
		if s.HasCollectives(i) {
			return true
		}
	}
	return false
}

// HasCollectives reports whether a graph has collective calls. It reads no row group.
func (s *Spec) HasCollectives(graph int) bool {
	if s.Rows == nil {
		return slices.ContainsFunc(s.Graphs[graph].Nodes, func(n Node) bool { return n.Type == NodeCollective })
	}
	return s.Rows.plans[s.Rows.template[graph]].hasCollectives()
}

func (p *plan) hasCollectives() bool {
	return slices.ContainsFunc(p.others, func(i int) bool { return p.nodes[i].shape.node == NodeCollective })
}
