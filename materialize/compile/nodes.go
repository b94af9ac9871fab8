package compile

import (
	"medusa/graphir"
	"medusa/interpose/trace"
)

// nodeType is what compiling knows of one record of a node.
type nodeType[R trace.Record] struct {
	makes  []graphir.NodeType
	handle func(R) uint64 // in the recorded process
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
		makes:  n.makes,
		handle: func(v trace.Record) uint64 { return n.handle(v.(R)) },
		kind:   func(s *shape, v trace.Record) (uint64, error) { return n.kind(s, v.(R)) },
		words:  func(trace.Record) []uint64 { return nil },
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
func nodeHandle(rec trace.Record) uint64 { return nodeTypes[rec.RecordType()].handle(rec) }

var emptyNodes = nodeOf(nodeType[*trace.Empty]{
	makes:  []graphir.NodeType{graphir.NodeEmpty},
	handle: func(v *trace.Empty) uint64 { return v.Node },
	kind:   func(*shape, *trace.Empty) (uint64, error) { return mix(4), nil },
	compile: func(_ *graphCompiler, _ int, _, _ *trace.Empty, out *graphir.Node) error {
		out.Type = graphir.NodeEmpty
		return nil
	},
	compare: func(*compared, *trace.Empty) error { return nil },
})
