package graphir

import (
	"bytes"
	"fmt"
)

// laterTables writes the tables of version 2.
func (t *textWriter) laterTables() {
	for i, g := range t.spec.Globals {
		t.printf("global %d: %q module=%d size=%d\n", i, g.Name, g.Module, g.Size)
	}
	for i, h := range t.spec.HostBuffers {
		t.printf("host %d: size=%d\n", i, h.Size)
	}
	for i, e := range t.spec.Events {
		t.printf("event %d: flags=%d step=%d\n", i, e.Flags, e.Step)
	}
	for i := range t.spec.TensorMaps {
		m := &t.spec.TensorMaps[i]
		t.printf("tensormap %d: type=%d dim=%d strides=%d box=%d steps=%d interleave=%d swizzle=%d l2=%d fill=%d\n", i, m.DataType,
			m.GlobalDim, m.GlobalStrides, m.BoxDim, m.ElementStrides, m.Interleave, m.Swizzle, m.L2Promotion, m.OOBFill)
	}
}

func (t *textWriter) graph(what string, index int, g *Graph) {
	t.printf(what+" %d: %q batch=%d flags=%#x nodes=%d edges=%d\n", index, g.Label, g.Batch, g.InstantiateFlags,
		len(g.Nodes), len(g.Edges))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		t.printf("  node %d: %s", i, n.Type)
		switch n.Type {
		case NodeKernel:
			t.kernelNode(n.Kernel)
		case NodeMemset:
			m := n.Memset
			t.printf(" dst=%s pitch=%d value=%#x elem=%d width=%d height=%d", m.Dst, m.Pitch, m.Value, m.ElemSize, m.Width, m.Height)
		case NodeMemcpy:
			m := n.Memcpy
			t.memcpyEnd("src", &m.Src)
			t.memcpyEnd("dst", &m.Dst)
			t.printf(" extent=%d,%d,%d", m.Width, m.Height, m.Depth)
		case NodeChild, NodeEventWait, NodeEventRecord:
			t.printf(" %d", n.Target)
		}
		t.printf("\n")
	}
	if len(g.Edges) == 0 {
		return
	}
	t.printf("  edges:")
	for _, e := range g.Edges {
		t.printf(" %d>%d", e.From, e.To)
		if e.FromPort != 0 || e.ToPort != 0 || e.Type != 0 {
			t.printf("(%d,%d,%d)", e.FromPort, e.ToPort, e.Type)
		}
	}
	t.printf("\n")
}

func (t *textWriter) memcpyEnd(which string, e *MemcpyEnd) {
	t.printf(" %s=%s at=%d,%d,%d pitch=%d height=%d", which, e.Pointer, e.X, e.Y, e.Z, e.Pitch, e.Height)
}

func (t *textWriter) kernelNode(k *KernelNode) {
	kernel := &t.spec.Kernels[k.Kernel]
	t.printf(" %d %q grid=%d,%d,%d block=%d,%d,%d shared=%d params=%d[", k.Kernel, kernel.Name,
		k.Grid[0], k.Grid[1], k.Grid[2], k.Block[0], k.Block[1], k.Block[2], k.SharedBytes, len(k.Params))
	for i, a := range t.spec.Arguments(k) {
		if a.Gap {
			t.printf(" gap:%s", a.String())
		} else {
			t.printf("%s%s", space(i), a.String())
		}
	}
	t.printf("]")
	for _, a := range k.Attrs {
		t.printf(" attr%d=%x", a.ID, bytes.TrimRight(a.Value[:], "\x00"))
		if a.Base != nil {
			t.printf("@%s", a.Base)
		}
	}
}

func (n NodeType) String() string {
	switch n {
	case NodeKernel:
		return "kernel"
	case NodeMemcpy:
		return "memcpy"
	case NodeMemset:
		return "memset"
	case NodeChild:
		return "child"
	case NodeEmpty:
		return "empty"
	case NodeEventWait:
		return "event_wait"
	case NodeEventRecord:
		return "event_record"
	default:
		return fmt.Sprintf("unknown(%d)", uint8(n))
	}
}
