package compile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// memoryHost is CU_MEMORYTYPE_HOST.
const memoryHost = 1

var memcpyNodes = nodeOf(nodeType[*trace.Memcpy]{
	makes: []graphir.NodeType{graphir.NodeMemcpy},
	kind:  func(_ *shape, v *trace.Memcpy) (uint64, error) { return mix(3, v.Width, v.Height, v.Depth), nil },
	words: func(v *trace.Memcpy) []uint64 {
		return []uint64{v.Src, v.SrcX, v.SrcY, v.SrcZ, v.SrcPitch, v.SrcHeight, v.Dst, v.DstX, v.DstY, v.DstZ, v.DstPitch, v.DstHeight}
	},
	compile: (*graphCompiler).memcpy,
	compare: compareMemcpy,
})

func (c *graphCompiler) memcpy(i int, na, nb *trace.Memcpy, out *graphir.Node) (err error) {
	out.Type = graphir.NodeMemcpy
	out.Params, err = c.memcpyNode(i, na, nb)
	return err
}

func (c *graphCompiler) memcpyNode(i int, na, nb *trace.Memcpy) (*graphir.MemcpyNode, error) {
	x, y := *na, *nb
	x.Head, x.Graph, x.Node, x.Src, x.Dst = y.Head, y.Graph, y.Node, y.Src, y.Dst
	if x != y {
		return nil, fmt.Errorf("compile graph %q: node %d (memcpy): it differs between the runs", c.label, i)
	}
	out := &graphir.MemcpyNode{
		Src:   graphir.MemcpyEnd{X: na.SrcX, Y: na.SrcY, Z: na.SrcZ, Pitch: na.SrcPitch, Height: na.SrcHeight},
		Dst:   graphir.MemcpyEnd{X: na.DstX, Y: na.DstY, Z: na.DstZ, Pitch: na.DstPitch, Height: na.DstHeight},
		Width: na.Width, Height: na.Height, Depth: na.Depth,
	}
	var err error
	ha, hb := c.ga.Host[na.Node], c.gb.Host[nb.Node]
	if (ha == nil) != (hb == nil) {
		return nil, fmt.Errorf("compile graph %q: node %d (memcpy): it reads other memory in the other run", c.label, i)
	}
	if c.ga.Changed[na.Node] {
		return nil, &RefusedError{c.label, i, "memcpy", "the host memory that it reads changed after the graph was made"}
	}
	if ha != nil {
		out.Src.Pointer, err = c.hostBuffer(i, ha, hb)
		out.Src = graphir.MemcpyEnd{Pointer: out.Src.Pointer, Pitch: na.Width, Height: na.Height}
	} else {
		out.Src.Pointer, err = c.copyEnd(i, "src", na.SrcType, na.Src, nb.Src)
	}
	if err == nil {
		out.Dst.Pointer, err = c.copyEnd(i, "dst", na.DstType, na.Dst, nb.Dst)
	}
	return out, err
}

// hostBuffer saves the pageable host memory that a copy reads, as it was when the graph was walked.
func (c *graphCompiler) hostBuffer(i int, a, b []byte) (graphir.Pointer, error) {
	ptr := graphir.Pointer{Index: uint32(len(c.spec.HostBuffers)), Space: graphir.SpaceHost}
	if len(a) != len(b) {
		return ptr, fmt.Errorf("compile graph %q: node %d (memcpy): %d bytes of host memory in record-a, %d in record-b", c.label, i, len(a), len(b))
	}
	p, err := c.proverOf(i)
	if err != nil {
		return ptr, err
	}
	saved, err := p.content(&piece{alloc: ptr.Index, space: ptr.Space}, bytes.Clone(a), b)
	if err != nil {
		return ptr, err
	}
	for _, content := range saved {
		if len(content.Unstable) > 0 {
			return ptr, &RefusedError{c.label, i, "memcpy", fmt.Sprintf("the host memory that it reads differs between the runs from byte %d on", content.Offset+content.Unstable[0].Offset)}
		}
		for _, f := range content.Relocations {
			if err := c.outlives(i, "memcpy", f.Pointer); err != nil {
				return ptr, err
			}
		}
	}
	c.spec.HostBuffers = append(c.spec.HostBuffers, graphir.HostBuffer{Size: uint64(len(a))})
	c.spec.Contents = append(c.spec.Contents, saved...)
	return ptr, nil
}

// compareMemcpy compares a copy of a third process with the artifact's.
func compareMemcpy(c *compared, n *trace.Memcpy) error {
	x, w, host := c.x, c.want.Memcpy(), c.graph.Host[n.Node]
	got := graphir.MemcpyNode{
		Src:   graphir.MemcpyEnd{X: n.SrcX, Y: n.SrcY, Z: n.SrcZ, Pitch: n.SrcPitch, Height: n.SrcHeight},
		Dst:   graphir.MemcpyEnd{X: n.DstX, Y: n.DstY, Z: n.DstZ, Pitch: n.DstPitch, Height: n.DstHeight},
		Width: n.Width, Height: n.Height, Depth: n.Depth,
	}
	if host != nil {
		got.Src = graphir.MemcpyEnd{Pitch: n.Width, Height: n.Height}
	}
	plain := *w
	plain.Src.Pointer, plain.Dst.Pointer = graphir.Pointer{}, graphir.Pointer{}
	if got != plain {
		return c.differ("its shape", got, plain)
	}
	if to := x.address(w.Dst.Pointer); n.Dst != to {
		return c.differ("its destination", address(n.Dst), address(to))
	}
	if w.Src.Pointer.Space != graphir.SpaceHost {
		if from := x.address(w.Src.Pointer); n.Src != from || host != nil {
			return c.differ("its source", address(n.Src), address(from))
		}
		return nil
	}
	want := make([]byte, x.spec.HostBuffers[w.Src.Pointer.Index].Size)
	for _, saved := range x.host[w.Src.Pointer.Index] {
		copy(want[saved.Offset:], saved.Data)
		for _, f := range saved.Relocations {
			binary.LittleEndian.PutUint64(want[saved.Offset+uint64(f.Offset):], x.address(f.Pointer))
		}
	}
	if !bytes.Equal(host, want) {
		return c.differ("the host memory that it reads", fmt.Sprintf("%x", host), fmt.Sprintf("%x", want))
	}
	return nil
}

// copyEnd finds the memory at one end of a copy.
func (c *graphCompiler) copyEnd(i int, field string, memory uint32, a, b uint64) (graphir.Pointer, error) {
	ptr, err := c.pointer(i, "memcpy", field, a, b)
	var word *WordError
	if memory == memoryHost && errors.As(err, &word) && !word.Retry {
		return ptr, &RefusedError{c.label, i, "memcpy", field + " is pageable host memory: online there is nothing at its address"}
	}
	return ptr, err
}
