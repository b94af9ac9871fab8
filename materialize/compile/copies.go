package compile

import (
	"bytes"
	"errors"
	"fmt"

	"medusa/graphir"
	"medusa/interpose/trace"
)

func (c *graphCompiler) memset(i int, na, nb *trace.Memset) (*graphir.MemsetNode, error) {
	if na.Pitch != nb.Pitch || na.Value != nb.Value || na.ElemSize != nb.ElemSize || na.Width != nb.Width || na.Height != nb.Height {
		return nil, fmt.Errorf("compile graph %q: node %d (memset): it differs between the runs", c.label, i)
	}
	dst, err := c.pointer(i, "memset", "dst", na.Dst, nb.Dst)
	return &graphir.MemsetNode{
		Dst: dst, Pitch: na.Pitch, Value: na.Value, ElemSize: na.ElemSize, Width: na.Width, Height: na.Height,
	}, err
}

// memoryHost is CU_MEMORYTYPE_HOST.
const memoryHost = 1

func (c *graphCompiler) memcpy(i int, na, nb *trace.Memcpy) (*graphir.MemcpyNode, error) {
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
	ha, hb := c.ga.Parts.Host[na.Node], c.gb.Parts.Host[nb.Node]
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

// copyEnd finds the memory at one end of a copy.
func (c *graphCompiler) copyEnd(i int, field string, memory uint32, a, b uint64) (graphir.Pointer, error) {
	ptr, err := c.pointer(i, "memcpy", field, a, b)
	var word *WordError
	if memory == memoryHost && errors.As(err, &word) && !word.Retry {
		return ptr, &RefusedError{c.label, i, "memcpy", field + " is pageable host memory: online there is nothing at its address"}
	}
	return ptr, err
}

// hostBuffer saves the pageable host memory that a copy reads, as it was when the graph was walked.
func (c *graphCompiler) hostBuffer(i int, a, b []byte) (graphir.Pointer, error) {
	spec := c.table.spec
	ptr := graphir.Pointer{Alloc: uint32(len(spec.HostBuffers)), Space: graphir.SpaceHost}
	if len(a) != len(b) {
		return ptr, fmt.Errorf("compile graph %q: node %d (memcpy): %d bytes of host memory in run A, %d in run B", c.label, i, len(a), len(b))
	}
	p, err := c.prover(i)
	if err != nil {
		return ptr, err
	}
	saved, err := p.content(&piece{alloc: ptr.Alloc, space: ptr.Space}, bytes.Clone(a), b)
	if err != nil {
		return ptr, err
	}
	for _, content := range saved {
		if len(content.Unstable) > 0 {
			return ptr, &RefusedError{c.label, i, "memcpy", fmt.Sprintf("the host memory that it reads differs between the runs from byte %d on", content.Offset+content.Unstable[0].Offset)}
		}
		for _, f := range content.Fixups {
			if err := c.outlives(i, "memcpy", f.Pointer); err != nil {
				return ptr, err
			}
		}
	}
	spec.HostBuffers = append(spec.HostBuffers, graphir.HostBuffer{Size: uint64(len(a))})
	spec.Contents = append(spec.Contents, saved...)
	return ptr, nil
}
