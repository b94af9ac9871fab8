package rebuild

import (
	"medusa/graphir"
	"medusa/internal/cuda"
)

func (b *builder) layMemset(t *template, i int, n *graphir.Node, first bool) error {
	params, err := b.memsetParams(n.Memset())
	if err != nil {
		return err
	}
	if !first {
		b.program.add(cuda.EntryGraphMemsetNodeSetParams, i, slot(&t.nodes[i]), ptr(params))
		return nil
	}
	b.program.add(cuda.EntryGraphAddMemsetNode, i, ptr(&t.nodes[i]), slot(t.graph), val(0), val(0), ptr(params), val(uint64(b.context)))
	return nil
}

func (b *builder) memsetParams(m *graphir.MemsetNode) (*cuda.MemsetNodeParams, error) {
	dst, err := b.memory.Address(m.Dst)
	if err != nil {
		return nil, err
	}
	params, err := place[cuda.MemsetNodeParams](&b.arena, 1)
	if err != nil {
		return nil, err
	}
	// mutant: values and rows of a memset
	params[0] = cuda.MemsetNodeParams{Dst: cuda.DevicePtr(dst), Pitch: m.Pitch, Value: m.Value, ElementSize: m.ElemSize, Width: m.Width, Height: m.Height}
	return &params[0], nil
}

func (b *builder) layMemcpy(t *template, i int, n *graphir.Node, first bool) error {
	params, err := b.memcpyParams(n.Memcpy())
	if err != nil {
		return err
	}
	if !first {
		b.program.add(cuda.EntryGraphMemcpyNodeSetParams, i, slot(&t.nodes[i]), ptr(params))
		return nil
	}
	b.program.add(cuda.EntryGraphAddMemcpyNode, i, ptr(&t.nodes[i]), slot(t.graph), val(0), val(0), ptr(params), val(uint64(b.context)))
	return nil
}

func (b *builder) memcpyParams(m *graphir.MemcpyNode) (*cuda.Memcpy3D, error) {
	src, err := b.memory.Address(m.Src.Pointer)
	if err != nil {
		return nil, err
	}
	dst, err := b.memory.Address(m.Dst.Pointer)
	if err != nil {
		return nil, err
	}
	params, err := place[cuda.Memcpy3D](&b.arena, 1)
	if err != nil {
		return nil, err
	}
	// mutant: height and depth of a copy
	params[0] = cuda.Memcpy3D{
		SrcMemoryType: memoryType(b.spec, m.Src.Pointer), SrcHost: uintptr(src), SrcDevice: cuda.DevicePtr(src), SrcXInBytes: m.Src.X, SrcY: m.Src.Y, SrcZ: m.Src.Z,
		SrcPitch: m.Src.Pitch, SrcHeight: m.Src.Height,
		DstMemoryType: memoryType(b.spec, m.Dst.Pointer), DstHost: uintptr(dst), DstDevice: cuda.DevicePtr(dst), DstXInBytes: m.Dst.X, DstY: m.Dst.Y, DstZ: m.Dst.Z,
		DstPitch: m.Dst.Pitch, DstHeight: m.Dst.Height,
		// mutant: memcpy nodes
		WidthInBytes: m.Width, Height: m.Height, Depth: m.Depth,
	}
	return &params[0], nil
}

// memoryType is the CUmemorytype of a copy's source or destination. The driver looks at the host or at the device address of an
// end, as the type says.
func memoryType(spec *graphir.Spec, p graphir.Pointer) uint32 {
	if p.Space == graphir.SpaceHost {
		return memoryTypeHost
	}
	if p.Space == graphir.SpaceAlloc {
		if kind := spec.Allocations[p.Index].Kind; kind == graphir.AllocPinned || kind == graphir.AllocRegistered {
			return memoryTypeHost
		}
	}
	return cuda.MemoryTypeDevice
}

// memoryTypeHost is CU_MEMORYTYPE_HOST.
const memoryTypeHost = 1
