package graphir

import (
	"bytes"
	"fmt"
	"slices"
	"unsafe"

	"medusa/graphir/graphpb"
)

// NodeKernel launches a kernel.
const NodeKernel NodeType = 0

// KernelNode is a kernel launch. Params is the parameter buffer in one piece. The bytes at each relocation's offset are zero; the
// relocation's pointer replaces them.
type KernelNode struct {
	Kernel      uint32
	Grid, Block [3]uint32
	SharedBytes uint32
	Params      []byte
	Relocations []Relocation // by ascending offset
	Attrs       []NodeAttr
}

// NodeAttr is a CUlaunchAttributeID and the 64 bytes of its value. If Base is set, the first eight bytes are zero and Base
// replaces them: it is the base of an access-policy window.
type NodeAttr struct {
	ID    uint32
	Value [64]byte
	Base  *Pointer
}

var kernelSize = extent{bytes: int64(unsafe.Sizeof(KernelNode{})), launches: 1}

func init() {
	nodeTypes[NodeKernel] = nodeType{
		name:   "kernel",
		has:    are[*KernelNode],
		size:   kernelSize,
		buffer: true,
		lay: func(n *Node, in *bodies, at *extent, s *shape) {
			k := &in.kernels[at.launches]
			n.Params, k.Kernel, k.Attrs = k, s.kernel, s.attrs
			k.Params, k.Relocations = in.buffer(at, s)
		},
	}
}

// Kernel returns the parameters of a kernel node, and nil for any other.
func (n *Node) Kernel() *KernelNode {
	k, _ := n.Params.(*KernelNode)
	return k
}

func (k *KernelNode) extent() extent { return kernelSize.with(k.Params, k.Relocations) }

func (k *KernelNode) pointers(visit func(Pointer)) {
	for i := range k.Relocations {
		visit(k.Relocations[i].Pointer)
	}
	for i := range k.Attrs {
		if base := k.Attrs[i].Base; base != nil {
			visit(*base)
		}
	}
}

func (k *KernelNode) key(e *tables, to []byte) []byte {
	return bufferKey(key(to, k.Kernel, e.attrSet(k.Attrs)), k.Params, k.Relocations)
}

func (k *KernelNode) encode(e *tables, pb *graphpb.Shape) {
	pb.Kernel, pb.AttrSet = k.Kernel, e.attrSet(k.Attrs)
	encodeBuffer(pb, k.Params, k.Relocations)
}

func (k *KernelNode) collect(c *columns, at *extent) {
	copy(c.grid[perLaunch*at.launches:], k.Grid[:])
	copy(c.block[perLaunch*at.launches:], k.Block[:])
	c.shared[at.launches] = k.SharedBytes
	c.buffer(at, k.Params, k.Relocations)
}

func (k *KernelNode) clone() Params {
	out := *k
	out.Params, out.Relocations, out.Attrs = slices.Clone(k.Params), slices.Clone(k.Relocations), slices.Clone(k.Attrs)
	return &out
}

func (k *KernelNode) writes(func(Pointer, uint64)) {}

func (k *KernelNode) validate(v *validator, path func() string) {
	if int64(k.Kernel) >= int64(len(v.spec.Kernels)) {
		v.bad(path()+".kernel", "kernel %d of %d", k.Kernel, len(v.spec.Kernels))
	} else if params := v.spec.Kernels[k.Kernel].Params; len(params) > 0 {
		last := params[len(params)-1]
		if end := uint64(last.Offset) + uint64(last.Size); end > uint64(len(k.Params)) {
			v.bad(path()+".params", "%d bytes, kernel %d takes %d", len(k.Params), k.Kernel, end)
		}
	}
	for i := range 3 {
		if k.Grid[i] == 0 || k.Block[i] == 0 {
			v.bad(path(), "empty launch of grid %v, block %v", k.Grid, k.Block)
			break
		}
	}
	v.relocations(k.Relocations, k.Params, path)
	for i := range k.Attrs {
		if base := k.Attrs[i].Base; base != nil {
			at := func() string { return fmt.Sprintf("%s.attrs[%d]", path(), i) }
			v.pointer(*base, 0, at)
			if [8]byte(k.Attrs[i].Value[:8]) != [8]byte{} {
				v.bad(at(), "the bytes that its base stands for are not zero")
			}
		}
	}
}

func (k *KernelNode) print(t *textWriter) {
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
