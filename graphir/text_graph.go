package graphir

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// laterTables writes what version 2 added.
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
	fixups, end := k.Fixups, uint32(0)
	for i, p := range kernel.Params {
		if p.Offset > end {
			fixups = t.gap(k, fixups, end, p.Offset)
		}
		t.printf("%s", space(i))
		fixups = t.param(k, fixups, p.Offset, p.Offset+p.Size)
		end = p.Offset + p.Size
	}
	t.gap(k, fixups, end, uint32(len(k.Params)))
	t.printf("]")
	for _, a := range k.Attrs {
		t.printf(" attr%d=%x", a.ID, bytes.TrimRight(a.Value[:], "\x00"))
		if a.Base != nil {
			t.printf("@%s", a.Base)
		}
	}
}

// gap writes bytes that belong to no parameter, where there is anything in them: nothing may go missing from the dump.
func (t *textWriter) gap(k *KernelNode, fixups []Fixup, start, end uint32) []Fixup {
	plain := len(fixups) == 0 || fixups[0].Offset >= end
	for _, b := range k.Params[start:end] {
		plain = plain && b == 0
	}
	if plain {
		return fixups
	}
	t.printf(" gap:")
	return t.param(k, fixups, start, end)
}

// param writes one parameter: a pointer, a number, or the pieces of a struct passed by value. It returns the fixups
// behind it.
func (t *textWriter) param(k *KernelNode, fixups []Fixup, start, end uint32) []Fixup {
	inside := 0
	for inside < len(fixups) && fixups[inside].Offset < end {
		inside++
	}
	if inside == 0 {
		t.printf("%s", constant(k.Params[start:end]))
		return fixups
	}
	if inside == 1 && fixups[0].Offset == start && end-start == fixups[0].Size() {
		t.printf("%s", fixups[0].String())
		return fixups[1:]
	}
	var pieces []string
	at := start
	for _, f := range fixups[:inside] {
		if f.Offset > at {
			pieces = append(pieces, fmt.Sprintf("%x", k.Params[at:f.Offset]))
		}
		pieces = append(pieces, f.String())
		at = f.Offset + f.Size()
	}
	if at < end {
		pieces = append(pieces, fmt.Sprintf("%x", k.Params[at:end]))
	}
	t.printf("{%s}", strings.Join(pieces, " "))
	return fixups[inside:]
}

// constant writes little-endian numbers of the usual sizes as such, anything else as bytes.
func constant(b []byte) string {
	switch len(b) {
	case 1:
		return fmt.Sprintf("0x%02x", b[0])
	case 2:
		return fmt.Sprintf("0x%04x", binary.LittleEndian.Uint16(b))
	case 4:
		return fmt.Sprintf("0x%08x", binary.LittleEndian.Uint32(b))
	case 8:
		return fmt.Sprintf("0x%016x", binary.LittleEndian.Uint64(b))
	default:
		return fmt.Sprintf("{%x}", b)
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
