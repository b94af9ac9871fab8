package graphir

import (
	"slices"

	"medusa/graphir/graphpb"
)

// versionOf returns the oldest format version that can express a Spec. rows: its graphs are in row groups.
func versionOf(s *Spec, rows bool) uint32 {
	if rows {
		return 3
	}
	later := len(s.Children)+len(s.Globals)+len(s.HostBuffers)+len(s.Events)+len(s.TensorMaps)+len(s.BlockMap) > 0
	for _, a := range s.Allocations {
		later = later || a.Kind > AllocPitch || a.Suballocated || a.Thread != 0 || a.ContiguousTo != 0
	}
	for i := range s.Graphs {
		later = later || hasBases(&s.Graphs[i])
	}
	if later {
		return 2
	}
	return 1
}

// hasBases reports whether a node of the graph has an attribute that begins with a pointer.
func hasBases(g *Graph) bool {
	for i := range g.Nodes {
		if k := g.Nodes[i].Kernel(); k != nil && slices.ContainsFunc(k.Attrs, func(a NodeAttr) bool { return a.Base != nil }) {
			return true
		}
	}
	return false
}

// grouped reports whether the Spec is encoded with row groups.
func (s *Spec) grouped() bool {
	bytes := int64(0)
	for i := range s.Graphs {
		bytes += s.Graphs[i].bytes()
	}
	return s.Rows != nil || bytes > fullGroup
}

// tables writes the tables of version 2.
func (e *encoder) tables(s *Spec) {
	e.pb.BlockMap = s.BlockMap
	for _, v := range s.Vacant {
		e.pb.Vacant = append(e.pb.Vacant, &graphpb.Vacancy{Alloc: v.Alloc, Offset: v.Offset, Size: v.Size, Taken: v.Taken})
	}
	if s.Threaded() {
		for _, a := range s.Allocations {
			e.pb.AllocThread = append(e.pb.AllocThread, a.Thread)
		}
	}
	if slices.ContainsFunc(s.Allocations, func(a Allocation) bool { return a.ContiguousTo != 0 }) {
		for _, a := range s.Allocations {
			e.pb.AllocContiguousTo = append(e.pb.AllocContiguousTo, a.ContiguousTo)
		}
	}
	for _, g := range s.Globals {
		e.pb.Globals = append(e.pb.Globals, &graphpb.Global{Module: g.Module, Name: e.text(g.Name), Size: g.Size})
	}
	for _, h := range s.HostBuffers {
		e.pb.HostSize = append(e.pb.HostSize, h.Size)
	}
	for _, v := range s.Events {
		e.pb.EventFlags = append(e.pb.EventFlags, v.Flags)
		e.pb.EventStep = append(e.pb.EventStep, v.Step)
	}
	for i := range s.TensorMaps {
		m := &s.TensorMaps[i]
		e.pb.TensorMaps = append(e.pb.TensorMaps, &graphpb.TensorMap{DataType: m.DataType, Interleave: m.Interleave,
			Swizzle: m.Swizzle, L2Promotion: m.L2Promotion, OobFill: m.OOBFill, GlobalDim: m.GlobalDim,
			GlobalStrides: m.GlobalStrides, BoxDim: m.BoxDim, ElementStrides: m.ElementStrides})
	}
}

// relocationKinds returns the kinds of relocations other than plain pointers into allocations, or nil if all are plain.
func relocationKinds(relocations []Relocation) (spaces, maps []uint32) {
	for i := range relocations {
		if relocations[i].Pointer.Space != 0 {
			spaces = make([]uint32, len(relocations))
		}
		if relocations[i].TensorMap != 0 {
			maps = make([]uint32, len(relocations))
		}
	}
	for i := range relocations {
		if spaces != nil {
			spaces[i] = uint32(relocations[i].Pointer.Space)
		}
		if maps != nil {
			maps[i] = relocations[i].TensorMap
		}
	}
	return spaces, maps
}
