package graphir

import (
	"fmt"
	"math"
)

// tables reads the tables of version 2.
func (d *decoder) tables() error {
	s := d.spec
	s.Globals = table[Global](len(d.pb.Globals))
	for i, pb := range d.pb.Globals {
		name, err := d.text(pb.Name)
		if err != nil {
			return &FormatError{"globals", i, err}
		}
		s.Globals = append(s.Globals, Global{Module: pb.Module, Name: name, Size: pb.Size})
	}
	s.HostBuffers = table[HostBuffer](len(d.pb.HostSize))
	for _, size := range d.pb.HostSize {
		s.HostBuffers = append(s.HostBuffers, HostBuffer{size})
	}
	if len(d.pb.EventFlags) != len(d.pb.EventStep) {
		return &FormatError{"events", -1, errColumns}
	}
	s.Events = table[Event](len(d.pb.EventFlags))
	for i, flags := range d.pb.EventFlags {
		s.Events = append(s.Events, Event{Flags: flags, Step: d.pb.EventStep[i]})
	}
	if n := len(d.pb.AllocThread); n != 0 && n != len(s.Allocations) {
		return &FormatError{"allocations", -1, errColumns}
	}
	for i, thread := range d.pb.AllocThread {
		s.Allocations[i].Thread = thread
	}
	if n := len(d.pb.AllocContiguousTo); n != 0 && n != len(s.Allocations) {
		return &FormatError{"allocations", -1, errColumns}
	}
	for i, to := range d.pb.AllocContiguousTo {
		s.Allocations[i].ContiguousTo = to
	}
	if len(d.pb.BlockMap) > 0 {
		s.BlockMap = d.pb.BlockMap
	}
	s.Vacant = table[Vacancy](len(d.pb.Vacant))
	for _, v := range d.pb.Vacant {
		s.Vacant = append(s.Vacant, Vacancy{Alloc: v.Alloc, Offset: v.Offset, Size: v.Size, Taken: v.Taken})
	}
	s.TensorMaps = table[TensorMap](len(d.pb.TensorMaps))
	for _, pb := range d.pb.TensorMaps {
		s.TensorMaps = append(s.TensorMaps, TensorMap{DataType: pb.DataType, Interleave: pb.Interleave, Swizzle: pb.Swizzle,
			L2Promotion: pb.L2Promotion, OOBFill: pb.OobFill, GlobalDim: pb.GlobalDim, GlobalStrides: pb.GlobalStrides,
			BoxDim: pb.BoxDim, ElementStrides: pb.ElementStrides})
	}
	return nil
}

// relocationKind is the inverse of relocationKinds for one relocation.
func relocationKind(f *Relocation, i int, spaces, maps []uint32) error {
	if len(spaces) > 0 {
		if spaces[i] > math.MaxUint8 {
			return fmt.Errorf("relocation %d: space %d", i, spaces[i])
		}
		f.Pointer.Space = Space(spaces[i])
	}
	if len(maps) > 0 {
		f.TensorMap = maps[i]
	}
	return nil
}

// kindColumns checks that each column of relocationKinds is empty or has an entry for every relocation.
func kindColumns(relocations int, spaces, maps []uint32) error {
	if len(spaces) != 0 && len(spaces) != relocations || len(maps) != 0 && len(maps) != relocations {
		return errColumns
	}
	return nil
}
