package rebuild

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
)

func (b *builder) layKernel(t *template, i int, n *graphir.Node, first bool) error {
	params, err := b.kernelParams(n.Kernel())
	if err != nil {
		return err
	}
	node := &t.nodes[i]
	if !first {
		b.program.add(cuda.EntryGraphKernelNodeSetParams, i, slot(node), ptr(params))
		return nil
	}
	b.program.add(cuda.EntryGraphAddKernelNode, i, ptr(node), slot(t.graph), val(0), val(0), ptr(params))
	return b.layAttributes(i, node, n.Kernel().Attrs)
}

// kernelParams lays the launch out in the arena: the parameter buffer with its pointers patched in place, and the array
// of pointers into it that the driver reads.
func (b *builder) kernelParams(k *graphir.KernelNode) (*cuda.KernelNodeParams, error) {
	table := b.spec.Kernels[k.Kernel].Params
	if n := len(table); n > 0 && uint64(table[n-1].Offset) >= uint64(len(k.Params)) { // they stand by ascending offset
		return nil, fmt.Errorf("parameter %d at offset %d of %d bytes", n-1, table[n-1].Offset, len(k.Params))
	}
	pointersAt := (len(k.Params) + 7) &^ 7
	nodeAt := pointersAt + 8*len(table)
	room, err := b.arena.bytes(nodeAt + int(unsafe.Sizeof(cuda.KernelNodeParams{})))
	if err != nil {
		return nil, err
	}
	buffer := room[:len(k.Params)]
	copy(buffer, k.Params)
	if err := b.memory.Patch(buffer, k.Relocations); err != nil {
		return nil, fmt.Errorf("parameter %w", err)
	}
	start := uint64(uintptr(unsafe.Pointer(&room[0])))
	pointers := unsafe.Slice((*uint64)(unsafe.Pointer(&room[pointersAt])), len(table))
	for i := range pointers {
		pointers[i] = start + uint64(table[i].Offset)
	}
	node := (*cuda.KernelNodeParams)(unsafe.Pointer(&room[nodeAt]))
	*node = cuda.KernelNodeParams{
		// mutant: kernel of a template's member
		Func: b.functions[k.Kernel], Grid: k.Grid, Block: k.Block, SharedMemBytes: k.SharedBytes, Params: uintptr(start) + uintptr(pointersAt),
	}
	return node, nil
}

// layAttributes sets the recorded node attributes, cluster dimensions and priorities among them.
func (b *builder) layAttributes(i int, node *uint64, attrs []graphir.NodeAttr) error {
	values, err := place[cuda.LaunchAttributeValue](&b.arena, len(attrs))
	if err != nil {
		return err
	}
	for j, a := range attrs {
		values[j] = a.Value
		if a.Base != nil {
			base, err := b.memory.Address(*a.Base)
			if err != nil {
				return fmt.Errorf("attribute %d: %w", a.ID, err)
			}
			// mutant: base of an access-policy window
			binary.LittleEndian.PutUint64(values[j][:], base)
		}
		// mutant: attribute of a node
		b.program.add(cuda.EntryGraphKernelNodeSetAttribute, i, slot(node), val(uint64(a.ID)), ptr(&values[j]))
	}
	return nil
}
