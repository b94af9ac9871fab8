package compile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"medusa/graphir"
	"medusa/interpose/trace"
)

var kernelNodes = nodeOf(nodeType[*trace.Kernel]{
	makes: []graphir.NodeType{graphir.NodeKernel},
	kind: func(s *shape, v *trace.Kernel) (uint64, error) {
		f := s.r.Functions[v.Function]
		h := mix(1, maphash.String(nameSeed, f.Name), maphash.String(nameSeed, s.r.Modules[f.Module].IdentityKey()), uint64(v.Shared), uint64(len(v.Params)), uint64(len(v.Attrs)))
		for _, dims := range [][]uint32{v.Grid, v.Block} {
			for _, d := range dims {
				h = mix(h, uint64(d))
			}
		}
		for _, a := range v.Attrs {
			h = mix(h, uint64(a.ID))
		}
		return h, nil
	},
	words: func(v *trace.Kernel) []uint64 {
		var words []uint64
		for o := 0; o+8 <= len(v.Params); o += 8 {
			words = append(words, binary.LittleEndian.Uint64(v.Params[o:]))
		}
		for o := len(v.Params) &^ 7; o < len(v.Params); o++ {
			words = append(words, uint64(v.Params[o]))
		}
		return words
	},
	compile: (*graphCompiler).kernel,
	compare: func(c *compared, n *trace.Kernel) error {
		return c.x.kernel(c.want.Kernel(), n, c.label, c.at, c.differ)
	},
})

func (c *graphCompiler) kernel(i int, na, nb *trace.Kernel, out *graphir.Node) (err error) {
	out.Type = graphir.NodeKernel
	out.Params, err = c.kernelNode(i, na, nb)
	return err
}

func (c *graphCompiler) kernelNode(i int, na, nb *trace.Kernel) (*graphir.KernelNode, error) {
	k, err := c.kernels.kernel(na.Function, nb.Function)
	if err != nil {
		return nil, fmt.Errorf("compile graph %q: node %d: %w", c.label, i, err)
	}
	name := c.spec.Kernels[k].Name
	if !slices.Equal(na.Grid, nb.Grid) || !slices.Equal(na.Block, nb.Block) || na.Shared != nb.Shared ||
		len(na.Params) != len(nb.Params) || len(na.Grid) != 3 || len(na.Block) != 3 {
		return nil, fmt.Errorf("compile graph %q: node %d (%s): launch shape differs between the runs", c.label, i, name)
	}
	node := c.room.kernels.One()
	*node = graphir.KernelNode{
		Kernel: k, Grid: [3]uint32(na.Grid), Block: [3]uint32(na.Block),
		SharedBytes: na.Shared, Params: c.room.bytes.Clone(na.Params),
	}
	if node.Attrs, err = c.nodeAttrs(i, na, nb); err != nil {
		return nil, fmt.Errorf("compile graph %q: node %d (%s): %w", c.label, i, name, err)
	}
	p, err := c.proverOf(i)
	if err != nil {
		return nil, err
	}
	known, relocations := uint32(0), c.found[:0]
	for n, param := range c.spec.Kernels[k].Params {
		if uint64(param.Offset)+uint64(param.Size) > uint64(len(na.Params)) {
			return nil, fmt.Errorf("compile graph %q: node %d (%s): parameter %d lies outside %d recorded bytes",
				c.label, i, name, n, len(na.Params))
		}
		if param.Offset >= known+8 {
			if err := c.outside(i, name, p, na.Params, nb.Params, known, param.Offset); err != nil {
				return nil, err
			}
		}
		known = param.Offset + param.Size
		var werr *WordError
		where := func() string { return fmt.Sprintf("graph %q node %d kernel %s parameter %d", c.label, i, name, n) }
		pad := func(p Padding) {
			p.Spec, p.embedded, p.graph, p.node, p.Cause.Where = c.spec, c.embedded, c.index, i, where()
			c.padding = c.padding.add(p)
		}
		if relocations, werr = p.param(node.Params, na.Params, nb.Params, param.Offset, param.Size, relocations, pad); werr != nil {
			werr.Where = where()
			return nil, werr
		}
	}
	if err := c.outside(i, name, p, na.Params, nb.Params, known, uint32(len(na.Params))); err != nil {
		return nil, err
	}
	c.found, node.Relocations = relocations, c.room.relocations.Clone(relocations)
	for _, f := range node.Relocations {
		if err := c.outlives(i, name, f.Pointer); err != nil {
			return nil, err
		}
	}
	return node, nil
}

func (c *graphCompiler) nodeAttrs(node int, na, nb *trace.Kernel) ([]graphir.NodeAttr, error) {
	if len(na.Attrs) != len(nb.Attrs) {
		return nil, errors.New("node attributes differ between the runs")
	}
	var out []graphir.NodeAttr
	for i, at := range na.Attrs {
		va, vb := at.Value, nb.Attrs[i].Value
		v := graphir.NodeAttr{ID: at.ID}
		if at.ID == attrAccessPolicyWindow && len(va) >= 8 && len(vb) >= 8 {
			base, err := c.pointer(node, "access policy window", "base", binary.LittleEndian.Uint64(va), binary.LittleEndian.Uint64(vb))
			if err != nil {
				return nil, err
			}
			v.Base = &base
			va, vb = append(make([]byte, 8), va[8:]...), append(make([]byte, 8), vb[8:]...)
		}
		if at.ID != nb.Attrs[i].ID || !bytes.Equal(va, vb) || len(va) > len(v.Value) {
			return nil, fmt.Errorf("node attribute %d differs between the runs", at.ID)
		}
		copy(v.Value[:], va)
		out = append(out, v)
	}
	return out, nil
}

// outside refuses words that belong to no parameter of the layout. Proven constants are allowed, and stay as they are.
func (c *graphCompiler) outside(i int, kernel string, p *prover, a, b []byte, from, to uint32) error {
	// mutant: words beside a layout are compared
	for o := (from + 7) &^ 7; o+8 <= to; o += 8 {
		// mutant: words outside of a kernel's layout
		if _, isPointer, err := p.word(binary.LittleEndian.Uint64(a[o:]), binary.LittleEndian.Uint64(b[o:])); err != nil || isPointer {
			return &RefusedError{c.label, i, "kernel " + kernel, fmt.Sprintf(
				"bytes %d to %d of its %d belong to no parameter of the recorded layout, and are no proven constant: an address there would stay as it was",
				o, o+8, len(a))}
		}
	}
	return nil
}

// attrAccessPolicyWindow is CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW; its value begins with an address.
const attrAccessPolicyWindow = 1
