package compile

import (
	"fmt"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// nodeType is what compiling knows of one record of a node.
type nodeType[R trace.Record] struct {
	makes []graphir.NodeType
	// kind sums up the properties of the node that are the same in every run.
	kind func(*shape, R) (uint64, error)
	// words are those that can be addresses, and the constants among them; nil: there are none.
	words func(R) []uint64
	// compile makes the node, number i, from those of both runs.
	compile func(c *graphCompiler, i int, a, b R, out *graphir.Node) error
	// compare holds a node of a third process, of the right type, against the artifact's.
	compare func(c *compared, rec R) error
	// becomes is the type of the node; nil: the only one that the record makes.
	becomes func(R) graphir.NodeType
}

// nodeTypes has a row for each record of a node. It is filled by init, since the row of a child graph node refers to it.
var nodeTypes []nodeType[trace.Record]

func init() {
	nodeTypes = []nodeType[trace.Record]{
		trace.TypeKernel:    kernelNodes,
		trace.TypeMemset:    memsetNodes,
		trace.TypeMemcpy:    memcpyNodes,
		trace.TypeEmpty:     emptyNodes,
		trace.TypeEventNode: eventNodes,
		trace.TypeChild:     childNodes,
		trace.TypeOpaque:    opaqueNodes,
	}
}

// nodeOf makes a row of the table.
func nodeOf[R trace.Record](n nodeType[R]) nodeType[trace.Record] {
	out := nodeType[trace.Record]{
		makes: n.makes,
		kind:  func(s *shape, v trace.Record) (uint64, error) { return n.kind(s, v.(R)) },
		words: func(trace.Record) []uint64 { return nil },
		compile: func(c *graphCompiler, i int, a, b trace.Record, out *graphir.Node) error {
			return n.compile(c, i, a.(R), b.(R), out)
		},
	}
	if n.compare != nil {
		out.compare = func(c *compared, v trace.Record) error { return n.compare(c, v.(R)) }
	}
	if n.becomes != nil {
		out.becomes = func(v trace.Record) graphir.NodeType { return n.becomes(v.(R)) }
	} else {
		out.becomes = func(trace.Record) graphir.NodeType { return n.makes[0] }
	}
	if n.words != nil {
		out.words = func(v trace.Record) []uint64 { return n.words(v.(R)) }
	}
	return out
}

// nodeHandle returns the node's handle in the recorded process.
func nodeHandle(rec trace.Record) uint64 {
	_, node := rec.(trace.NodeRecord).Place()
	return node
}

var emptyNodes = nodeOf(nodeType[*trace.Empty]{
	makes: []graphir.NodeType{graphir.NodeEmpty},
	kind:  func(*shape, *trace.Empty) (uint64, error) { return mix(4), nil },
	compile: func(_ *graphCompiler, _ int, _, _ *trace.Empty, out *graphir.Node) error {
		out.Type = graphir.NodeEmpty
		return nil
	},
	compare: func(*compared, *trace.Empty) error { return nil },
})

var memsetNodes = nodeOf(nodeType[*trace.Memset]{
	makes: []graphir.NodeType{graphir.NodeMemset},
	kind: func(_ *shape, v *trace.Memset) (uint64, error) {
		return mix(2, uint64(v.Value), uint64(v.ElemSize), v.Width, v.Height), nil
	},
	words:   func(v *trace.Memset) []uint64 { return []uint64{v.Dst, v.Pitch} },
	compile: (*graphCompiler).memset,
	compare: compareMemset,
})

func (c *graphCompiler) memset(i int, na, nb *trace.Memset, out *graphir.Node) error {
	if na.Pitch != nb.Pitch || na.Value != nb.Value || na.ElemSize != nb.ElemSize || na.Width != nb.Width || na.Height != nb.Height {
		return fmt.Errorf("compile graph %q: node %d (memset): it differs between the runs", c.label, i)
	}
	dst, err := c.pointer(i, "memset", "dst", na.Dst, nb.Dst)
	out.Type = graphir.NodeMemset
	out.Params = &graphir.MemsetNode{
		Dst: dst, Pitch: na.Pitch, Value: na.Value, ElemSize: na.ElemSize, Width: na.Width, Height: na.Height,
	}
	return err
}

// compareMemset holds a fill of a third process against the artifact's.
func compareMemset(c *compared, n *trace.Memset) error {
	got := graphir.MemsetNode{Pitch: n.Pitch, Value: n.Value, ElemSize: n.ElemSize, Width: n.Width, Height: n.Height}
	plain := *c.want.Memset()
	plain.Dst = graphir.Pointer{}
	if got != plain {
		return c.differ("its shape or value", got, plain)
	}
	if to := c.x.address(c.want.Memset().Dst); n.Dst != to {
		return c.differ("its destination", address(n.Dst), address(to))
	}
	return nil
}
