package compile

import (
	"fmt"

	"medusa/graphir"
	"medusa/interpose/trace"
)

var memsetNodes = nodeOf(nodeType[*trace.Memset]{
	makes:  []graphir.NodeType{graphir.NodeMemset},
	handle: func(v *trace.Memset) uint64 { return v.Node },
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
	out.Memset = &graphir.MemsetNode{
		Dst: dst, Pitch: na.Pitch, Value: na.Value, ElemSize: na.ElemSize, Width: na.Width, Height: na.Height,
	}
	return err
}

// compareMemset holds a fill of a third process against the artifact's.
func compareMemset(c *compared, n *trace.Memset) error {
	got := graphir.MemsetNode{Pitch: n.Pitch, Value: n.Value, ElemSize: n.ElemSize, Width: n.Width, Height: n.Height}
	plain := *c.want.Memset
	plain.Dst = graphir.Pointer{}
	if got != plain {
		return c.differ("its shape or value", got, plain)
	}
	if to := c.x.address(c.want.Memset.Dst); n.Dst != to {
		return c.differ("its destination", address(n.Dst), address(to))
	}
	return nil
}
