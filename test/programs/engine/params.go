package main

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/test/programs"
)

const (
	mapBytes   = cuda.TensorMapBytes
	typeUint32 = 2 // CU_TENSOR_MAP_DATA_TYPE_UINT32
	typeFloat  = 7 // CU_TENSOR_MAP_DATA_TYPE_FLOAT32, which alone may be filled with NaN outside
)

// tensorMap encodes a map of a plan.
func (p *program) tensorMap(m *programs.Map) ([]byte, error) {
	out, err := p.e.room.bytes(mapBytes)
	if err != nil {
		return nil, err
	}
	fill := uint32(p.plan.Seed % 2)
	t := cuda.TiledTensorMap{DataType: []uint32{typeUint32, typeFloat}[fill], GlobalDim: []uint64{programs.Words, 4, 4, 4, 4}[:m.Rank], Address: cuda.DevicePtr(p.addr[m.Over]),
		Swizzle: uint32(p.plan.Seed % 4), L2Promotion: uint32(p.plan.Seed % 3), OOBFill: fill}
	for i := range t.GlobalDim {
		t.GlobalStrides = append(t.GlobalStrides, 4*programs.Words<<(2*i))
		t.BoxDim, t.ElementStrides = append(t.BoxDim, uint32(max(4, 1+i))), append(t.ElementStrides, 1) // the innermost has 16 bytes
	}
	if m.Moved {
		t.Address = cuda.DevicePtr(p.home)
	}
	if err := t.Encode(out); err != nil || !m.Moved {
		return out, err
	}
	return out, cuda.TensorMapReplaceAddress(out, cuda.DevicePtr(p.addr[m.Over]))
}

// buffer is a launch's parameters as the driver takes them.
type buffer struct {
	data    []byte
	offsets []int
}

func (b *buffer) align(n int) {
	for len(b.data)%n != 0 {
		b.data = append(b.data, 0)
	}
}

func (p *program) params(args []programs.Arg) (*buffer, error) {
	b := &buffer{}
	for i := range args {
		a := &args[i]
		switch {
		case a.Map != 0:
			b.align(64)
		case a.Size == 4:
			b.align(4)
		default:
			b.align(8)
		}
		b.offsets = append(b.offsets, len(b.data))
		if err := p.append(b, a); err != nil {
			return nil, err
		}
	}
	room, err := p.e.room.bytes(max(len(b.data), 8))
	if err != nil {
		return nil, err
	}
	copy(room, b.data)
	b.data = room[:len(b.data)]
	return b, nil
}

func (p *program) append(b *buffer, a *programs.Arg) error {
	switch {
	case a.Pointer != nil:
		b.data = binary.LittleEndian.AppendUint64(b.data, p.at(*a.Pointer))
	case a.Struct != nil:
		for i := range a.Struct {
			if err := p.append(b, &a.Struct[i]); err != nil {
				return err
			}
		}
	case a.Map != 0:
		m, err := p.tensorMap(&p.plan.Maps[a.Map-1])
		if err != nil {
			return fmt.Errorf("tensor map: %w", err)
		}
		b.data = append(b.data, m[:mapBytes]...)
	case a.Padding > 0:
		b.data = append(b.data, make([]byte, a.Padding)...)
		if _, err := rand.Read(b.data[len(b.data)-a.Padding:]); err != nil {
			return err
		}
	case a.Host:
		room, err := p.e.room.bytes(8)
		if err != nil {
			return err
		}
		b.data = binary.LittleEndian.AppendUint64(b.data, addr(room))
	case a.Size == 1:
		b.data = append(b.data, byte(a.Number))
	case a.Size == 4:
		b.data = binary.LittleEndian.AppendUint32(b.data, uint32(a.Number))
	default:
		b.data = binary.LittleEndian.AppendUint64(b.data, a.Number)
	}
	return nil
}

// lists returns the two forms in which parameters are handed over; one of them is 0.
func (p *program) lists(op *programs.Op) (params, extra uint64, err error) {
	b, err := p.params(op.Args)
	if err != nil {
		return 0, 0, err
	}
	list, err := p.e.room.bytes(8 * (len(b.offsets) + 8))
	if err != nil {
		return 0, 0, err
	}
	if op.Extra {
		size, err := alloc[uint64](&p.e.room)
		if err != nil {
			return 0, 0, err
		}
		*size = uint64(len(b.data))
		for i, v := range []uint64{1, addr(b.data), 2, uint64(uintptr(unsafe.Pointer(size))), 0} {
			binary.LittleEndian.PutUint64(list[8*i:], v)
		}
		return 0, addr(list), nil
	}
	for i, o := range b.offsets {
		binary.LittleEndian.PutUint64(list[8*i:], addr(b.data)+uint64(o))
	}
	return addr(list), 0, nil
}

// attributesOf are the attributes of a launch. The unused bytes of the union are random, so they differ from process to process.
func (p *program) attributesOf(op *programs.Op) []cuda.LaunchAttribute {
	var out []cuda.LaunchAttribute
	for _, a := range op.Attrs {
		v := cuda.LaunchAttribute{ID: cuda.LaunchAttributeID(a.ID)}
		_, _ = rand.Read(v.Value[:])
		for i, w := range a.Words {
			binary.LittleEndian.PutUint32(v.Value[4*i:], w)
		}
		if a.Base != nil { // CUaccessPolicyWindow: base, bytes, ratio 0.5, persisting, streaming
			binary.LittleEndian.PutUint64(v.Value[0:], p.at(*a.Base))
			binary.LittleEndian.PutUint64(v.Value[8:], uint64(a.Words[0]))
			binary.LittleEndian.PutUint32(v.Value[16:], 0x3f000000)
			binary.LittleEndian.PutUint32(v.Value[20:], 2)
			binary.LittleEndian.PutUint32(v.Value[24:], 1)
		}
		out = append(out, v)
	}
	return out
}
