package graphir

import (
	"errors"
	"fmt"
	"unsafe"

	"medusa/graphir/graphpb"
)

// shape is a decoded Shape: a node type and everything of its parameters but the values.
type shape struct {
	node        NodeType
	kernel      uint32
	paramsSize  int
	relocations []Relocation // without index and offset of the pointers
	src, dst    Space        // of memcpy and memset nodes
	target      uint32
	attrs       []NodeAttr
	size        extent
}

// maxParams is far above the driver's limit of 32 KiB for a kernel's parameters.
const maxParams = 1 << 20

func newShape(pb *graphpb.Shape, attrSets [][]NodeAttr) (*shape, error) {
	s := &shape{node: NodeType(pb.Type), kernel: pb.Kernel, paramsSize: int(pb.ParamsSize),
		src: Space(pb.SrcSpace), dst: Space(pb.DstSpace), target: pb.Target}
	if pb.Type > 0xff {
		return nil, fmt.Errorf("node type %d", pb.Type)
	}
	if !s.node.known() {
		return nil, fmt.Errorf("node type %d", pb.Type)
	}
	s.size = nodeTypes[s.node].size
	if pb.SrcSpace|pb.DstSpace > uint32(SpaceGlobal|SpaceHost) {
		return nil, fmt.Errorf("spaces %d and %d", pb.SrcSpace, pb.DstSpace)
	}
	if err := kindColumns(len(pb.RelocationGap), pb.RelocationSpace, pb.RelocationMap); err != nil {
		return nil, err
	}
	if s.node != NodeKernel && (pb.Kernel != 0 || pb.AttrSet != 0) || !nodeTypes[s.node].buffer && (pb.ParamsSize != 0 || len(pb.RelocationGap) != 0) {
		return nil, fmt.Errorf("node type %d with a kernel's fields", pb.Type)
	}
	if pb.ParamsSize > maxParams {
		return nil, fmt.Errorf("%d bytes of parameters (at most %d)", pb.ParamsSize, maxParams)
	}
	end := uint64(0)
	for i, gap := range pb.RelocationGap {
		offset := end + uint64(gap)
		f := Relocation{Offset: uint32(offset)}
		if err := relocationKind(&f, i, pb.RelocationSpace, pb.RelocationMap); err != nil {
			return nil, err
		}
		end = offset + uint64(f.Size())
		if end > uint64(s.paramsSize) {
			return nil, fmt.Errorf("relocation at byte %d of %d", offset, s.paramsSize)
		}
		s.relocations = append(s.relocations, f)
	}
	if pb.AttrSet > 0 {
		if int64(pb.AttrSet) > int64(len(attrSets)) {
			return nil, fmt.Errorf("attr_set %d of %d", pb.AttrSet-1, len(attrSets))
		}
		s.attrs = attrSets[pb.AttrSet-1]
	}
	s.size.words = (s.paramsSize + 3) / 4
	s.size.relocations = len(s.relocations)
	return s, nil
}

// planned is one node of a template: its shape, and the start of its values in the columns.
type planned struct {
	shape *shape
	at    extent
}

// run is the nodes to, to+1, up to end: the previous node with the shape of the first is from, that of the second from+1, and so on.
type run struct{ from, to, end int32 }

// plan is a decoded Template. The encoder builds the same plan from its tables, so that both sides agree on the columns.
type plan struct {
	nodes []planned
	runs  []run
	size  extent
	edges []Edge
	// partial lists the nodes whose parameters end inside a word.
	partial []int
	others  []int // nodes that launch no kernel
	bytes   int64 // memory of one decoded graph of this template, with its columns
}

func newPlan(pb *graphpb.Template, shapes []*shape) (*plan, error) {
	p := &plan{nodes: make([]planned, len(pb.Nodes))}
	last := make([]int, len(shapes)) // index of the latest node of each shape, plus 1
	distance := 0                    // from a node of the current run to the one before it with its shape; 0: there is none
	for i, id := range pb.Nodes {
		if int64(id) >= int64(len(shapes)) {
			return nil, fmt.Errorf("node %d: shape %d of %d", i, id, len(shapes))
		}
		p.nodes[i] = planned{shapes[id], p.size}
		before := distance
		if distance = 0; last[id] > 0 {
			distance = i + 1 - last[id]
		}
		if distance > 0 && distance != before {
			p.runs = append(p.runs, run{from: int32(i - distance), to: int32(i)})
		}
		last[id] = i + 1
		if shapes[id].paramsSize%4 != 0 {
			p.partial = append(p.partial, i)
		}
		if shapes[id].node != NodeKernel {
			p.others = append(p.others, i)
		}
		p.size.add(shapes[id].size)
		if distance > 0 {
			p.runs[len(p.runs)-1].end = int32(i + 1)
		}
	}
	if err := p.readEdges(pb); err != nil {
		return nil, err
	}
	p.bytes = decodedBytes(len(p.nodes), len(p.edges), p.size)
	return p, nil
}

// start returns the place of a node's first values in the columns.
func (p *plan) start(node int32) *extent {
	if int(node) == len(p.nodes) {
		return &p.size
	}
	return &p.nodes[node].at
}

// nodeBytes is the size that counts for a decoded Node. A Node takes less, but row groups end at places that depend on this number.
const nodeBytes = 40

// decodedBytes is the memory that a decoded graph takes, with its columns.
func decodedBytes(nodes, edges int, e extent) int64 {
	values := int64(0)
	for i, n := range e.values {
		values += int64(n) * 8 * int64(valueTable[i].per)
	}
	return e.bytes + values + int64(nodes)*nodeBytes + int64(edges)*int64(unsafe.Sizeof(Edge{})) +
		int64(e.launches)*4*(2*perLaunch+1) + int64(e.words)*8 + int64(e.relocations)*int64(unsafe.Sizeof(Relocation{})+12)
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

// bodies is memory for the nodes of a graph.
type bodies struct {
	plan        *plan // the plan for which it is laid out
	nodes       []Node
	kernels     []KernelNode
	values      [valueColumns]any // a slice of each type with values
	params      []byte
	relocations []Relocation
}

func newBodies(nodes int, e extent) *bodies {
	b := &bodies{nodes: make([]Node, nodes), kernels: make([]KernelNode, e.launches), params: make([]byte, 4*e.words), relocations: make([]Relocation, e.relocations)}
	for i, n := range e.values {
		b.values[i] = valueTable[i].make(n)
	}
	return b
}

// build makes a graph's nodes from its columns. All kernel nodes, parameter buffers and relocations of a graph lie side by side in
// memory, each with its capacity clipped. Decoding then needs few allocations, and all values of a kind are copied at once.
func (p *plan) build(c *columns, in *bodies) ([]Node, error) {
	if len(p.nodes) == 0 {
		return nil, nil
	}
	// mutant: memory that was laid out for another template
	if in.plan != p {
		p.lay(in)
	}
	if i := p.padded(c.words); i >= 0 {
		return nil, fmt.Errorf("node %d: %w", i, errPadding)
	}
	copy(in.params, bytesOf(c.words))
	grid, block := c.grid, c.block
	for i, shared := range c.shared {
		k := &in.kernels[i]
		k.Grid, k.Block, k.SharedBytes = [3]uint32(grid), [3]uint32(block), shared
		grid, block = grid[perLaunch:], block[perLaunch:]
	}
	relocations, offsets := in.relocations[:len(c.relocationAlloc)], c.relocationOffset[:len(c.relocationAlloc)]
	for i, alloc := range c.relocationAlloc {
		relocations[i].Pointer.Index, relocations[i].Pointer.Offset = alloc, offsets[i]
	}
	if i := p.readValues(c, in.nodes); i >= 0 {
		return nil, fmt.Errorf("node %d: %w", i, errWide)
	}
	return in.nodes[:len(p.nodes)], nil
}

// lay fills bodies with everything that graphs of one plan share.
func (p *plan) lay(in *bodies) {
	in.plan = p
	for i := range p.nodes {
		planned, n := &p.nodes[i], &in.nodes[i]
		at, shape := &planned.at, planned.shape
		n.Type, n.Target, n.Params = shape.node, shape.target, nil
		if lay := nodeTypes[shape.node].lay; lay != nil {
			lay(n, in, at, shape)
		}
	}
}

// padded returns the first node with non-zero bytes after its parameters, in their last word, or -1.
func (p *plan) padded(words []uint32) int {
	for _, i := range p.partial {
		s, at := p.nodes[i].shape, p.nodes[i].at.words
		if last := words[at+s.size.words-1]; last>>(8*(s.paramsSize%4)) != 0 {
			return i
		}
	}
	return -1
}

// bytesOf returns the memory of words. They are little-endian on every machine with a GPU, so this memory is the parameter
// buffer.
func bytesOf(words []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}

// readValues fills in the nodes that have a column of values. It returns the first node with a value too large for its field, or -1.
func (p *plan) readValues(c *columns, nodes []Node) int {
	for _, i := range p.others {
		for column, n := range p.nodes[i].shape.size.values {
			if n == 0 {
				continue
			}
			per := valueTable[column].per
			if !nodes[i].Params.(valued).read(c.values[column][per*p.nodes[i].at.values[column]:][:per]) {
				return i
			}
		}
	}
	return -1
}

// collect is the inverse of build. The bytes behind parameters that end inside a word are zero in c, and stay so.
func (p *plan) collect(nodes []Node, c *columns) {
	for i := range p.nodes {
		if params := nodes[i].Params; params != nil {
			params.collect(c, &p.nodes[i].at)
		}
	}
}
