package graphir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"medusa/graphir/graphpb"
)

// shape is a decoded Shape: a node type, and for kernel nodes all but the values.
type shape struct {
	node       NodeType
	kernel     uint32
	paramsSize int
	fixups     []Fixup // all but the pointers' index and offset
	src, dst   Space   // of memcpy and memset nodes
	target     uint32
	attrs      []NodeAttr
	size       extent
}

// maxParams is far above the driver's limit of 32 KiB for a kernel's parameters.
const maxParams = 1 << 20

func newShape(pb *graphpb.Shape, attrSets [][]NodeAttr) (*shape, error) {
	s := &shape{node: NodeType(pb.Type), kernel: pb.Kernel, paramsSize: int(pb.ParamsSize),
		src: Space(pb.SrcSpace), dst: Space(pb.DstSpace), target: pb.Target}
	if pb.Type > 0xff {
		return nil, fmt.Errorf("node type %d", pb.Type)
	}
	switch s.node {
	case NodeKernel:
		s.size.launches = 1
	case NodeMemset:
		s.size.memsets = 1
	case NodeMemcpy:
		s.size.memcpys = 1
	case NodeEmpty, NodeChild, NodeEventWait, NodeEventRecord:
	default:
		return nil, fmt.Errorf("node type %d", pb.Type)
	}
	if pb.SrcSpace|pb.DstSpace > uint32(SpaceGlobal|SpaceHost) {
		return nil, fmt.Errorf("spaces %d and %d", pb.SrcSpace, pb.DstSpace)
	}
	if err := kindColumns(len(pb.FixupGap), pb.FixupSpace, pb.FixupMap); err != nil {
		return nil, err
	}
	if s.node != NodeKernel && (pb.Kernel != 0 || pb.ParamsSize != 0 || len(pb.FixupGap) != 0 || pb.AttrSet != 0) {
		return nil, fmt.Errorf("node type %d with a kernel's fields", pb.Type)
	}
	if pb.ParamsSize > maxParams {
		return nil, fmt.Errorf("%d bytes of parameters (at most %d)", pb.ParamsSize, maxParams)
	}
	end := uint64(0)
	for i, gap := range pb.FixupGap {
		offset := end + uint64(gap)
		f := Fixup{Offset: uint32(offset)}
		if err := fixupKind(&f, i, pb.FixupSpace, pb.FixupMap); err != nil {
			return nil, err
		}
		end = offset + uint64(f.Size())
		if end > uint64(s.paramsSize) {
			return nil, fmt.Errorf("fixup at byte %d of %d", offset, s.paramsSize)
		}
		s.fixups = append(s.fixups, f)
	}
	if pb.AttrSet > 0 {
		if int64(pb.AttrSet) > int64(len(attrSets)) {
			return nil, fmt.Errorf("attr_set %d of %d", pb.AttrSet-1, len(attrSets))
		}
		s.attrs = attrSets[pb.AttrSet-1]
	}
	s.size.words = (s.paramsSize + 3) / 4
	s.size.fixups = len(s.fixups)
	return s, nil
}

// planned is one node of a template: its shape, where its values start in the columns, and the node before it of the
// same shape (-1 for the first of them).
type planned struct {
	shape *shape
	at    extent
	like  int
}

// plan is a decoded Template. The encoder builds the same from what it is about to write, so that both sides agree on
// the columns.
type plan struct {
	nodes []planned
	size  extent
	edges []Edge
	bytes int64 // that one graph of this template takes decoded, columns included
}

func newPlan(pb *graphpb.Template, shapes []*shape) (*plan, error) {
	p := &plan{nodes: make([]planned, len(pb.Nodes))}
	last := make(map[uint32]int)
	for i, id := range pb.Nodes {
		if int64(id) >= int64(len(shapes)) {
			return nil, fmt.Errorf("node %d: shape %d of %d", i, id, len(shapes))
		}
		like, seen := last[id]
		if !seen {
			like = -1
		}
		last[id] = i
		p.nodes[i] = planned{shape: shapes[id], at: p.size, like: like}
		p.size.add(shapes[id].size)
	}
	if err := p.readEdges(pb); err != nil {
		return nil, err
	}
	p.bytes = decodedBytes(len(p.nodes), len(p.edges), p.size)
	return p, nil
}

// decodedBytes is what a graph takes in memory, columns included.
func decodedBytes(nodes, edges int, e extent) int64 {
	return int64(nodes)*int64(unsafe.Sizeof(Node{})) + int64(edges)*int64(unsafe.Sizeof(Edge{})) +
		int64(e.launches)*int64(unsafe.Sizeof(KernelNode{})+28) + int64(e.words)*8 +
		int64(e.fixups)*int64(unsafe.Sizeof(Fixup{})+12) +
		int64(e.memsets)*int64(unsafe.Sizeof(MemsetNode{})+8*perMemset) +
		int64(e.memcpys)*int64(unsafe.Sizeof(MemcpyNode{})+8*perMemcpy)
}

func (p *plan) readEdges(pb *graphpb.Template) error {
	if len(pb.EdgeFrom) != len(pb.EdgeTo) || len(pb.EdgeData) != 0 && len(pb.EdgeData) != len(pb.EdgeTo) {
		return errColumns
	}
	if len(pb.EdgeTo) == 0 {
		return nil
	}
	p.edges = make([]Edge, len(pb.EdgeTo))
	from := uint32(0)
	for i := range p.edges {
		from += uint32(pb.EdgeFrom[i])
		p.edges[i] = Edge{From: from, To: from + uint32(pb.EdgeTo[i])}
		if len(pb.EdgeData) > 0 {
			data := pb.EdgeData[i]
			if data > 0xffffff {
				return fmt.Errorf("edge %d: data %#x", i, data)
			}
			p.edges[i].FromPort, p.edges[i].ToPort, p.edges[i].Type = uint8(data), uint8(data>>8), uint8(data>>16)
		}
	}
	return nil
}

var (
	errPadding = errors.New("padding of a parameter buffer is not zero")
	errWide    = errors.New("value beyond 32 bits")
)

// bodies is memory for a graph's nodes.
type bodies struct {
	nodes   []Node
	kernels []KernelNode
	memsets []MemsetNode
	memcpys []MemcpyNode
	params  []byte
	fixups  []Fixup
}

func newBodies(nodes int, e extent) *bodies {
	return &bodies{make([]Node, nodes), make([]KernelNode, e.launches), make([]MemsetNode, e.memsets), make([]MemcpyNode, e.memcpys),
		make([]byte, 4*e.words), make([]Fixup, e.fixups)}
}

// build makes a graph's nodes from its columns. All kernel nodes, parameter buffers and fixups of a graph lie side by
// side in memory, each with its capacity clipped, so that decoding costs few allocations.
func (p *plan) build(c *columns, in *bodies) ([]Node, error) {
	if len(p.nodes) == 0 {
		return nil, nil
	}
	nodes, kernels, memsets, memcpys, params, fixups := in.nodes[:len(p.nodes)], in.kernels, in.memsets, in.memcpys, in.params, in.fixups
	for i, word := range c.words {
		binary.LittleEndian.PutUint32(params[4*i:], word)
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		nodes[i] = Node{Type: n.shape.node, Target: n.shape.target}
		switch n.shape.node {
		case NodeKernel:
			k := &kernels[n.at.launches]
			nodes[i].Kernel = k
			*k = KernelNode{Kernel: n.shape.kernel}
			k.Grid = [3]uint32(c.grid[perLaunch*n.at.launches:])
			k.Block = [3]uint32(c.block[perLaunch*n.at.launches:])
			k.SharedBytes = c.shared[n.at.launches]
			k.Attrs = n.shape.attrs
			if size := n.shape.paramsSize; size > 0 {
				start := 4 * n.at.words
				k.Params = params[start : start+size : start+size]
				for _, b := range params[start+size : start+4*n.shape.size.words] {
					if b != 0 {
						return nil, fmt.Errorf("node %d: %w", i, errPadding)
					}
				}
			}
			if count := len(n.shape.fixups); count > 0 {
				k.Fixups = fixups[n.at.fixups : n.at.fixups+count : n.at.fixups+count]
				allocs, offsets := c.fixupAlloc[n.at.fixups:][:count], c.fixupOffset[n.at.fixups:][:count]
				for f := range n.shape.fixups {
					k.Fixups[f] = n.shape.fixups[f]
					k.Fixups[f].Pointer.Alloc, k.Fixups[f].Pointer.Offset = allocs[f], offsets[f]
				}
			}
		case NodeMemset:
			nodes[i].Memset = &memsets[n.at.memsets]
			if !nodes[i].Memset.read([perMemset]uint64(c.memset[perMemset*n.at.memsets:])) {
				return nil, fmt.Errorf("node %d: %w", i, errWide)
			}
			nodes[i].Memset.Dst.Space = n.shape.dst
		case NodeMemcpy:
			nodes[i].Memcpy = &memcpys[n.at.memcpys]
			if !nodes[i].Memcpy.read([perMemcpy]uint64(c.memcpy[perMemcpy*n.at.memcpys:])) {
				return nil, fmt.Errorf("node %d: %w", i, errWide)
			}
			nodes[i].Memcpy.Src.Pointer.Space, nodes[i].Memcpy.Dst.Pointer.Space = n.shape.src, n.shape.dst
		}
	}
	return nodes, nil
}

// collect is the inverse of build.
func (p *plan) collect(nodes []Node) *columns {
	c := newColumns(p.size)
	for i := range p.nodes {
		n := &p.nodes[i]
		switch n.shape.node {
		case NodeKernel:
			k := nodes[i].Kernel
			copy(c.grid[perLaunch*n.at.launches:], k.Grid[:])
			copy(c.block[perLaunch*n.at.launches:], k.Block[:])
			c.shared[n.at.launches] = k.SharedBytes
			for b, value := range k.Params {
				c.words[n.at.words+b/4] |= uint32(value) << (8 * (b % 4))
			}
			for f := range k.Fixups {
				c.fixupAlloc[n.at.fixups+f] = k.Fixups[f].Pointer.Alloc
				c.fixupOffset[n.at.fixups+f] = k.Fixups[f].Pointer.Offset
			}
		case NodeMemset:
			values := nodes[i].Memset.values()
			copy(c.memset[perMemset*n.at.memsets:], values[:])
		case NodeMemcpy:
			values := nodes[i].Memcpy.values()
			copy(c.memcpy[perMemcpy*n.at.memcpys:], values[:])
		}
	}
	return c
}

func (m *MemsetNode) values() [perMemset]uint64 {
	return [...]uint64{uint64(m.Dst.Alloc), m.Dst.Offset, m.Pitch, uint64(m.Value), uint64(m.ElemSize), m.Width, m.Height}
}

func (m *MemsetNode) read(v [perMemset]uint64) bool {
	*m = MemsetNode{Dst: Pointer{Alloc: uint32(v[0]), Offset: v[1]}, Pitch: v[2], Value: uint32(v[3]), ElemSize: uint32(v[4]),
		Width: v[5], Height: v[6]}
	return m.values() == v
}

func (m *MemcpyNode) values() [perMemcpy]uint64 {
	s, d := &m.Src, &m.Dst
	return [...]uint64{uint64(s.Pointer.Alloc), s.Pointer.Offset, s.X, s.Y, s.Z, s.Pitch, s.Height,
		uint64(d.Pointer.Alloc), d.Pointer.Offset, d.X, d.Y, d.Z, d.Pitch, d.Height, m.Width, m.Height, m.Depth}
}

func (m *MemcpyNode) read(v [perMemcpy]uint64) bool {
	end := func(v []uint64) MemcpyEnd {
		return MemcpyEnd{Pointer: Pointer{Alloc: uint32(v[0]), Offset: v[1]}, X: v[2], Y: v[3], Z: v[4], Pitch: v[5], Height: v[6]}
	}
	*m = MemcpyNode{Src: end(v[:7]), Dst: end(v[7:14]), Width: v[14], Height: v[15], Depth: v[16]}
	return m.values() == v
}
