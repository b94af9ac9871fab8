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
	room, err := b.kernelParams(k, table)
	if err != nil {
		return err
	}
	set := launch{k.Kernel, uint32(len(k.Params)), room.buffer, uintptr(unsafe.Pointer(node))}
	if !first && b.program.repeats(set) {
		return nil
	}
	pointers, start := room.pointers[:len(table)], uint64(room.buffer)
	for p := range table {
		pointers[p] = start + uint64(table[p].Offset)
	}
	// mutant: kernel of a template's member
	room.params.Func = b.functions[k.Kernel]
	room.params.Params, room.params.Extra = uintptr(unsafe.Pointer(unsafe.SliceData(room.pointers))), 0
	room.params.Kern, room.params.Ctx = 0, 0
	if !first {
		b.program.add(cuda.EntryGraphKernelNodeSetParams, i, slot(node), ptr(room.params))
		b.program.steps[len(b.program.steps)-1].launch = set
		return nil
	}
	b.program.add(cuda.EntryGraphAddKernelNode, i, ptr(node), slot(t.graph), val(0), val(0), ptr(room.params))
	return b.layAttributes(i, node, k.Attrs)
}

// kernelRoom is the part of the arena that a launch takes: the parameter buffer, the array of pointers into it that the driver reads,
// and the node's parameters.
type kernelRoom struct {
	buffer   uintptr
	pointers []uint64
	params   *cuda.KernelNodeParams
}

// kernelParams lays the values of a launch out in the arena: the parameter buffer with its pointers patched in place, and the dimensions.
// Everything else in the room is as it was.
func (b *builder) kernelParams(k *graphir.KernelNode, table []graphir.Param) (room kernelRoom, err error) {
	if n := len(table); n > 0 && uint64(table[n-1].Offset) >= uint64(len(k.Params)) { // they stand by ascending offset
		return room, fmt.Errorf("parameter %d at offset %d of %d bytes", n-1, table[n-1].Offset, len(k.Params))
	}
	pointersAt := (len(k.Params) + 7) &^ 7
	paramsAt := pointersAt + 8*len(table)
	bytes, err := b.arena.bytes(paramsAt + int(unsafe.Sizeof(cuda.KernelNodeParams{})))
	if err != nil {
		return room, err
	}
	buffer := bytes[:len(k.Params)]
	copy(buffer, k.Params)
	if err := b.memory.Patch(buffer, k.Relocations); err != nil {
		return room, fmt.Errorf("parameter %w", err)
	}
	room.buffer = uintptr(unsafe.Pointer(&bytes[0]))
	room.pointers = unsafe.Slice((*uint64)(unsafe.Pointer(&bytes[pointersAt])), len(table))
	// Field by field: a literal is made on the stack, and copying it waits for its parts to be stored.
	room.params = (*cuda.KernelNodeParams)(unsafe.Pointer(&bytes[paramsAt]))
	room.params.Grid, room.params.Block, room.params.SharedMemBytes = k.Grid, k.Block, k.SharedBytes
	return room, nil
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
