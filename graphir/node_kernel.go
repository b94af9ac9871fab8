package graphir

import (
	"bytes"
	"fmt"
	"slices"

	"medusa/graphir/graphpb"
)

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

var kernelNodes = nodeType{
	name: "kernel",
	has:  func(n *Node) bool { return n.Kernel != nil },
	size: extent{launches: 1},
	lay: func(n *Node, in *bodies, at *extent, s *shape) {
		k := &in.kernels[at.launches]
		n.Kernel = k
		k.Kernel, k.Attrs, k.Params, k.Relocations = s.kernel, s.attrs, nil, nil
		if size := s.paramsSize; size > 0 {
			k.Params = in.params[4*at.words:][:size:size]
		}
		if count := len(s.relocations); count > 0 {
			k.Relocations = in.relocations[at.relocations:][:count:count]
			copy(k.Relocations, s.relocations)
		}
	},
}

func (k *KernelNode) extent() extent {
	return extent{launches: 1, words: (len(k.Params) + 3) / 4, relocations: len(k.Relocations)}
}

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
	to = key(to, k.Kernel, uint32(len(k.Params)), e.attrSet(k.Attrs))
	for i := range k.Relocations {
		to = key(to, k.Relocations[i].Offset, uint32(k.Relocations[i].Pointer.Space), k.Relocations[i].TensorMap)
	}
	return to
}

func (k *KernelNode) encode(e *tables, pb *graphpb.Shape) {
	pb.Kernel, pb.ParamsSize, pb.AttrSet = k.Kernel, uint32(len(k.Params)), e.attrSet(k.Attrs)
	end := uint32(0)
	for _, f := range k.Relocations {
		pb.FixupGap = append(pb.FixupGap, f.Offset-end)
		end = f.Offset + f.Size()
	}
	pb.FixupSpace, pb.FixupMap = relocationKinds(k.Relocations)
}

func (k *KernelNode) collect(c *columns, at *extent) {
	copy(c.grid[perLaunch*at.launches:], k.Grid[:])
	copy(c.block[perLaunch*at.launches:], k.Block[:])
	c.shared[at.launches] = k.SharedBytes
	copy(bytesOf(c.words[at.words:]), k.Params)
	for f := range k.Relocations {
		c.fixupAlloc[at.relocations+f] = k.Relocations[f].Pointer.Index
		c.fixupOffset[at.relocations+f] = k.Relocations[f].Pointer.Offset
	}
}

func (k *KernelNode) cloned(n *Node) {
	out := *k
	out.Params, out.Relocations, out.Attrs = slices.Clone(k.Params), slices.Clone(k.Relocations), slices.Clone(k.Attrs)
	n.Kernel = &out
}

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
