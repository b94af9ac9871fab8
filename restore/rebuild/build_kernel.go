package rebuild

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"medusa/graphir"
	"medusa/internal/cuda"
)

func (b *builder) layKernel(t *template, i int, n *graphir.Node, first bool) error {
	k, node := n.Kernel(), &t.nodes[i]
	table := b.spec.Kernels[k.Kernel].Params
	buffer, pointers, params, err := b.kernelParams(k, table)
	if err != nil {
		return err
	}
	set := launch{k.Kernel, uint32(len(k.Params)), buffer, uintptr(unsafe.Pointer(node))}
	if !first && b.program.repeats(&set) {
		return nil
	}
	for p := range table {
		pointers[p] = uint64(buffer) + uint64(table[p].Offset)
	}
	// mutant: kernel of a template's member
	params.Func = b.functions[k.Kernel]
	params.Params, params.Extra, params.Kern, params.Ctx = uintptr(unsafe.Pointer(unsafe.SliceData(pointers))), 0, 0, 0
	if !first {
		b.program.add(cuda.EntryGraphKernelNodeSetParams, i, slot(node), ptr(params))
		b.program.steps[len(b.program.steps)-1].launch = set
		return nil
	}
	b.program.add(cuda.EntryGraphAddKernelNode, i, ptr(node), slot(t.graph), val(0), val(0), ptr(params))
	return b.layAttributes(i, node, k.Attrs)
}

// kernelParams lays the values of a launch out in the arena: the parameter buffer with its pointers patched in place, and the
// dimensions among the node's parameters. It also makes room for the rest of the node's parameters, and for the array of pointers into
// the buffer that the driver reads. That room keeps its earlier contents. No struct here goes from the stack to memory: such a copy
// waits for the stores of its parts.
func (b *builder) kernelParams(k *graphir.KernelNode, table []graphir.Param) (buffer uintptr, pointers []uint64, params *cuda.KernelNodeParams, err error) {
	if n := len(table); n > 0 && uint64(table[n-1].Offset) >= uint64(len(k.Params)) { // they stand by ascending offset
		return 0, nil, nil, fmt.Errorf("parameter %d at offset %d of %d bytes", n-1, table[n-1].Offset, len(k.Params))
	}
	pointersAt := (len(k.Params) + 7) &^ 7
	paramsAt := pointersAt + 8*len(table)
	room, err := b.arena.bytes(paramsAt + int(unsafe.Sizeof(cuda.KernelNodeParams{})))
	if err != nil {
		return 0, nil, nil, err
	}
	copy(room, k.Params)
	if err := b.memory.Patch(room[:len(k.Params)], k.Relocations); err != nil {
		return 0, nil, nil, fmt.Errorf("parameter %w", err)
	}
	params = (*cuda.KernelNodeParams)(unsafe.Pointer(&room[paramsAt]))
	params.Grid, params.Block, params.SharedMemBytes = k.Grid, k.Block, k.SharedBytes
	pointers = unsafe.Slice((*uint64)(unsafe.Pointer(&room[pointersAt])), len(table))
	return uintptr(unsafe.Pointer(&room[0])), pointers, params, nil
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
