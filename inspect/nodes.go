package inspect

import (
	"fmt"
	"slices"
	"strings"

	"medusa/graphir"
)

// nodeTypes describes the parameters of a node, by its type.
var nodeTypes = [...]func(s *graphir.Spec, n *graphir.Node, out *Node){
	graphir.NodeKernel:      describeKernel,
	graphir.NodeMemcpy:      describeMemcpy,
	graphir.NodeMemset:      describeMemset,
	graphir.NodeMemOps:      describeMemOps,
	graphir.NodeChild:       func(_ *graphir.Spec, n *graphir.Node, out *Node) { out.Target = fmt.Sprintf("child#%d", n.Target) },
	graphir.NodeEmpty:       func(*graphir.Spec, *graphir.Node, *Node) {},
	graphir.NodeEventWait:   describeEvent,
	graphir.NodeEventRecord: describeEvent,
	graphir.NodeCollective:  describeCollective,
}

func describeKernel(s *graphir.Spec, n *graphir.Node, out *Node) {
	k := n.Kernel()
	kernel := &s.Kernels[k.Kernel]
	out.Kernel, out.Module = kernel.Name, &kernel.Module
	out.Grid, out.Block, out.SharedBytes = slices.Clone(k.Grid[:]), slices.Clone(k.Block[:]), k.SharedBytes
	for _, a := range s.Arguments(k) {
		out.Arguments = append(out.Arguments, describeArgument(&a))
	}
	for _, a := range k.Attrs {
		attr := Attribute{ID: a.ID, Value: fmt.Sprintf("%x", strings.TrimRight(string(a.Value[:]), "\x00"))}
		if a.Base != nil {
			attr.Base = a.Base.String()
		}
		out.Attributes = append(out.Attributes, attr)
	}
}

func describeArgument(a *graphir.Argument) Argument {
	out := Argument{Offset: a.Offset, Size: a.Size, Gap: a.Gap, Value: a.String()}
	for _, p := range a.Pieces {
		if p.Relocation != nil {
			to := p.Relocation.Pointer
			out.Pointers = append(out.Pointers, Pointer{p.Offset, to.Space.String(), to.Index, to.Offset})
		}
	}
	return out
}

func describeMemset(_ *graphir.Spec, n *graphir.Node, out *Node) {
	m := n.Memset()
	out.Target = m.Dst.String()
	out.Detail = fmt.Sprintf("value=%#x element=%d width=%d height=%d pitch=%d", m.Value, m.ElemSize, m.Width, m.Height, m.Pitch)
}

func describeMemcpy(_ *graphir.Spec, n *graphir.Node, out *Node) {
	m := n.Memcpy()
	out.Source, out.Target = m.Src.Pointer.String(), m.Dst.Pointer.String()
	out.Detail = fmt.Sprintf("extent=%d,%d,%d", m.Width, m.Height, m.Depth)
	if m.Height > 1 || m.Depth > 1 {
		out.Detail += fmt.Sprintf(" source=%s target=%s", end(&m.Src), end(&m.Dst))
	}
}

func end(e *graphir.MemcpyEnd) string {
	return fmt.Sprintf("%d,%d,%d/pitch=%d/height=%d", e.X, e.Y, e.Z, e.Pitch, e.Height)
}

func describeEvent(_ *graphir.Spec, n *graphir.Node, out *Node) {
	out.Target = fmt.Sprintf("event#%d", n.Target)
}

func describeCollective(_ *graphir.Spec, n *graphir.Node, out *Node) {
	c := n.Collective().Call()
	out.Source, out.Target, out.Detail = c.Send.String(), c.Recv.String(), c.String()
}

func describeMemOps(_ *graphir.Spec, n *graphir.Node, out *Node) {
	var texts []string
	for _, op := range n.MemOps().Ops() {
		texts = append(texts, op.String())
	}
	out.Detail = strings.Join(texts, "; ")
}
