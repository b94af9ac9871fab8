package compile

import (
	"fmt"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// nodeType describes one type of node record.
type nodeType[R trace.Record] struct {
	makes []graphir.NodeType
	// kind sums up the properties of the node that are the same in every run.
	kind func(*shape, R) (uint64, error)
	// words are those that can be addresses, and the constants among them; nil: there are none.
	words func(R) []uint64
	// compile makes the node, number i, from those of both runs.
	compile func(c *graphCompiler, i int, a, b R, out *graphir.Node) error
	// compare compares a node of a third process, of the right type, with the artifact's.
	compare func(c *compared, rec R) error
	// becomes is the type of the node; nil: the only one that the record makes.
	becomes func(R) graphir.NodeType
}

// nodeTypes has a row for each record of a node. It is filled by init, since the row of a child graph node refers to it.
var nodeTypes []nodeType[trace.Record]

func init() {
	nodeTypes = []nodeType[trace.Record]{
		trace.TypeKernel:     kernelNodes,
		trace.TypeMemset:     memsetNodes,
		trace.TypeMemcpy:     memcpyNodes,
		trace.TypeMemOps:     memOpsNodes,
		trace.TypeEmpty:      emptyNodes,
		trace.TypeEventNode:  eventNodes,
		trace.TypeChild:      childNodes,
		trace.TypeOpaque:     opaqueNodes,
		trace.TypeCollective: collectiveNodes,
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

var memsetNodes = nodeOf(nodeType[*trace.Memset]{
	makes: []graphir.NodeType{graphir.NodeMemset},
	kind: func(_ *shape, v *trace.Memset) (uint64, error) {
		return mix(2, uint64(v.Value), uint64(v.ElemSize), v.Width, v.Height), nil
	},
	words:   func(v *trace.Memset) []uint64 { return []uint64{v.Dst, v.Pitch} },
	compile: (*graphCompiler).memset,
	compare: compareMemset,
})

var memOpsNodes = nodeOf(nodeType[*trace.MemOps]{
	makes: []graphir.NodeType{graphir.NodeMemOps},
	kind: func(_ *shape, v *trace.MemOps) (uint64, error) {
		h := mix(8, uint64(v.Flags))
		for _, op := range v.Ops {
			h = mix(h, uint64(op.Operation), op.Value, uint64(op.Flags))
		}
		return h, nil
	},
	words: func(v *trace.MemOps) (words []uint64) {
		for _, op := range v.Ops {
			words = append(words, op.Addr)
		}
		return words
	},
	compile: (*graphCompiler).memOps,
	compare: compareMemOps,
})

var emptyNodes = nodeOf(nodeType[*trace.Empty]{
	makes: []graphir.NodeType{graphir.NodeEmpty},
	kind:  func(*shape, *trace.Empty) (uint64, error) { return mix(4), nil },
	compile: func(_ *graphCompiler, _ int, _, _ *trace.Empty, out *graphir.Node) error {
		out.Type = graphir.NodeEmpty
		return nil
	},
	compare: func(*compared, *trace.Empty) error { return nil },
})

// nodeHandle returns the node's handle in the recorded process.
func nodeHandle(rec trace.Record) uint64 {
	_, node := rec.(trace.NodeRecord).Place()
	return node
}

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

// compareMemset compares a fill of a third process with the artifact's.
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

func (c *graphCompiler) memOps(i int, na, nb *trace.MemOps, out *graphir.Node) error {
	refuse := func(why string) error {
		return &RefusedError{c.label, i, nodeTypeName(uint32(graphir.NodeMemOps)), why}
	}
	if na.Flags != 0 {
		return refuse(fmt.Sprintf("it has the unknown flags %#x", na.Flags))
	}
	ops := make([]graphir.MemOp, len(na.Ops))
	for k, op := range na.Ops {
		ops[k] = graphir.MemOp{Operation: op.Operation, Value: op.Value, Flags: op.Flags}
	}
	if len(na.Ops) != len(nb.Ops) || na.Flags != nb.Flags {
		return fmt.Errorf("compile graph %q: node %d (memory operations): it differs between the runs", c.label, i)
	}
	for k, a := range na.Ops {
		b := nb.Ops[k]
		if a.Operation != b.Operation || a.Value != b.Value || a.Flags != b.Flags {
			return fmt.Errorf("compile graph %q: node %d (memory operations): operation %d differs between the runs", c.label, i, k)
		}
		// Unknown types may have no address, so they are refused first.
		if why := ops[k].Unknown(); why != "" {
			return refuse(fmt.Sprintf("operation %d %s", k, why))
		}
		var err error
		if ops[k].At, err = c.pointer(i, "memory operation", fmt.Sprintf("address %d", k), a.Addr, b.Addr); err != nil {
			return err
		}
	}
	node := graphir.NewMemOps(ops)
	if why := node.Obstacle(); why != "" {
		return refuse(why)
	}
	out.Type, out.Params = graphir.NodeMemOps, node
	return nil
}

// compareMemOps compares memory operations of a third process with the artifact's.
func compareMemOps(c *compared, n *trace.MemOps) error {
	want := c.want.MemOps().Ops()
	if len(n.Ops) != len(want) {
		return c.differ("the number of its operations", len(n.Ops), len(want))
	}
	for i, w := range want {
		g := n.Ops[i]
		if g.Operation != w.Operation || g.Value != w.Value || g.Flags != w.Flags {
			return c.differ(fmt.Sprintf("operation %d", i), g, w)
		}
		if to := c.x.address(w.At); g.Addr != to {
			return c.differ(fmt.Sprintf("the address of operation %d", i), address(g.Addr), address(to))
		}
	}
	return nil
}
