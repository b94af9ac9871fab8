package restore

import (
	"slices"

	"medusa/graphir"
	"medusa/restore/digest"
)

// span is a piece of one allocation with one part to play in verification. Spans of an allocation do not overlap and
// cover all of it.
type span struct {
	alloc        uint32
	offset, size uint64
	class        digest.Class
	name         string
}

// spansOf divides the memory that verification looks at: every engine-owned allocation that is live at ready, and every
// graph-owned one that something refers to. Both verifying runs derive it from the artifact alone, so they agree.
//
// Page-locked and registered host memory belongs to it only where a graph refers to it: the engine reads results through
// it, and what it holds beyond that reaches no graph.
func spansOf(spec *graphir.Spec) []span {
	used := referenced(spec)
	var spans []span
	for i, a := range spec.Allocations {
		host := a.Kind == graphir.AllocPinned || a.Kind == graphir.AllocRegistered
		if !a.Live || a.Size == 0 || (!used[i] && (host || a.Owner == graphir.OwnerGraph)) {
			continue
		}
		spans = append(spans, divide(spec, uint32(i))...)
	}
	return spans
}

// layer gives a part of an allocation a class; later layers cover earlier ones.
type layer struct {
	from, to uint64
	class    digest.Class
	name     string
}

// divide cuts one allocation into spans: what the engine named comes before what was saved, and that before the default.
func divide(spec *graphir.Spec, alloc uint32) []span {
	a := spec.Allocations[alloc]
	layers := []layer{{0, a.Size, digest.Other, ""}}
	if a.Owner == graphir.OwnerGraph {
		layers[0].class = digest.Temporary
	}
	for _, c := range spec.Contents {
		if c.Alloc != alloc {
			continue
		}
		layers = append(layers, layer{c.Offset, c.Offset + uint64(len(c.Data)), digest.Permanent, ""})
		for _, u := range c.Unstable {
			layers = append(layers, layer{c.Offset + u.Offset, c.Offset + u.Offset + u.Size, digest.Unstable, ""})
		}
	}
	for _, t := range spec.Tensors {
		if t.At.Alloc == alloc {
			layers = append(layers, layer{t.At.Offset, t.At.Offset + t.Size, classOf(t.Role), t.Name})
		}
	}
	return flatten(alloc, layers)
}

func flatten(alloc uint32, layers []layer) []span {
	var cuts []uint64
	for _, l := range layers {
		cuts = append(cuts, l.from, l.to)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var spans []span
	for i := 1; i < len(cuts); i++ {
		var top layer
		for _, l := range layers {
			if l.from <= cuts[i-1] && cuts[i] <= l.to {
				top = l
			}
		}
		next := span{alloc, cuts[i-1], cuts[i] - cuts[i-1], top.class, top.name}
		if n := len(spans); n > 0 && spans[n-1].class == next.class && spans[n-1].name == next.name {
			spans[n-1].size += next.size
			continue
		}
		spans = append(spans, next)
	}
	return spans
}

func classOf(r graphir.Role) digest.Class {
	switch r {
	case graphir.RoleWeight:
		return digest.Weight
	case graphir.RoleKV:
		return digest.KV
	case graphir.RoleInput:
		return digest.Input
	}
	return digest.Output
}
