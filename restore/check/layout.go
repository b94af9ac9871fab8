package check

import (
	"cmp"
	"slices"

	"medusa/graphir"
	"medusa/restore/digest"
)

// span is a piece of one allocation with one role in verification. The spans of an allocation do not overlap. They cover all of it
// except the memory of class left.
type span struct {
	alloc        uint32 // object (graphir.Spec.Object)
	offset, size uint64
	class        digest.Class
	tensor       int           // index of the named tensor, noTensor if there is none
	stride       uint64        // only every n-th chunk is looked at
	shift        uint64        // from an offset to one in the tensor
	handed       graphir.DType // floats that graphs hand on in memory of their own; 0: none
	chunk        uint64        // bytes that one hash covers
	row          uint64        // of the output that it belongs to; 0: unknown
	addresses    bool          // the tensor holds them
}

// poisoned reports whether the span is an output: a graph writes it, and does not read its earlier contents.
func (s *span) poisoned() bool {
	return s.class == digest.Output && s.handed == 0
}

const noTensor = -1

// spansOf divides the memory that verification looks at: every engine-owned allocation that is live at ready, and every referenced
// graph-owned allocation and module variable. Both verifying runs derive it from the artifact alone, so they agree.
//
// Page-locked and registered host memory belongs to it only if a graph refers to it: the engine reads results through it, and its
// other contents reach no graph.
func spansOf(spec *graphir.Spec) []span {
	used, kv, chains := spec.Referenced(), graphir.KVBytes(spec.Tensors), spec.Contiguous()
	var spans []span
	for i, a := range spec.Allocations {
		host := a.Kind == graphir.AllocPinned || a.Kind == graphir.AllocRegistered
		if !a.Live || a.Size == 0 || (!used[i] && (host || a.Owner == graphir.OwnerGraph)) {
			continue
		}
		if a.Suballocated {
			spans = append(spans, dividedSpans(spec, chains, uint32(i), kv)...)
			continue
		}
		spans = append(spans, divide(spec, chains, uint32(i), kv)...)
	}
	for i, g := range spec.Globals {
		if object := spec.Object(graphir.SpaceGlobal, uint32(i)); used[object] && g.Size > 0 {
			spans = append(spans, divide(spec, chains, object, kv)...)
		}
	}
	for i := range spans {
		spans[i].chunk = digest.ChunkBytes
		if s := &spans[i]; s.poisoned() {
			s.byRows(&spec.Tensors[s.tensor])
		}
	}
	return spans
}

// mostRows bounds the rows of an output that are hashed one by one.
const mostRows = 64 << 10

// byRows gives each row of an output its own hashes, so that rows that a graph writes can be told from rows that it does not write.
func (s *span) byRows(t *graphir.Tensor) {
	if len(t.Shape) == 0 || t.Shape[0] <= 0 || t.Shape[0] > mostRows || t.Size%uint64(t.Shape[0]) != 0 {
		return
	}
	row := t.Size / uint64(t.Shape[0])
	if row == 0 || (s.offset+s.shift)%row != 0 {
		return
	}
	// Words can be hashed on the device.
	for parts := (row + digest.ChunkBytes - 1) / digest.ChunkBytes; parts <= row/8; parts++ {
		if row%(8*parts) == 0 {
			s.chunk, s.row = row/parts, row
			return
		}
	}
	if row <= digest.ChunkBytes {
		s.chunk, s.row = row, row
	}
}

// dividedSpans covers an allocation that a framework's allocator divides: its tensors, each at its own place, and the rest
// if the blocks are known to be at their recorded places.
func dividedSpans(spec *graphir.Spec, chains graphir.Contiguous, alloc uint32, kv uint64) []span {
	var spans []span
	for i := range spec.Tensors {
		if t := &spec.Tensors[i]; t.At.Index == alloc && t.At.Space == graphir.SpaceAlloc {
			spans = append(spans, flatten(spec.Object(graphir.SpaceTensor, uint32(i)), tensorLayers(t, i, 0, 0, t.Size, kv))...)
		}
	}
	if len(spec.BlockMap) == 0 {
		return spans
	}
	for _, s := range divide(spec, chains, alloc, kv) {
		if s.tensor == noTensor {
			spans = append(spans, s)
		}
	}
	return spans
}

// layer gives a part of an allocation its role; later layers cover earlier ones.
type layer struct {
	from, to uint64
	role     role
}

type role struct {
	class  digest.Class
	tensor int
	stride uint64
	shift  uint64 // from an offset in the object to one in the tensor
	handed graphir.DType

	addresses bool
}

// divide cuts one allocation into spans: tensors that the engine named come before saved contents, and these before the default.
func divide(spec *graphir.Spec, chains graphir.Contiguous, alloc uint32, kv uint64) []span {
	size := spec.ObjectSize(alloc)
	unnamed := func(from, size uint64, class digest.Class) layer {
		return layer{from, from + size, role{class: class, tensor: noTensor, stride: 1}}
	}
	layers := []layer{unnamed(0, size, digest.Other)}
	for _, v := range vacantIn(spec, alloc) {
		// mutant: memory that nobody owns at ready
		class := digest.Temporary
		// mutant: memory of the capture phase in the engine's segments
		if v.Taken {
			class = left
		}
		layers = append(layers, unnamed(v.Offset, v.Size, class))
	}
	graphs := int(alloc) < len(spec.Allocations) && spec.Allocations[alloc].Owner == graphir.OwnerGraph
	if graphs {
		layers[0].role.class = digest.Temporary
	}
	for _, c := range spec.Contents {
		if spec.Object(c.Space, c.Alloc) != alloc {
			continue
		}
		layers = append(layers, unnamed(c.Offset, uint64(len(c.Data)), digest.Permanent))
		for _, u := range c.Unstable {
			layers = append(layers, unnamed(c.Offset+u.Offset, u.Size, digest.Unstable))
		}
	}
	for i := range spec.Tensors {
		t := &spec.Tensors[i]
		if t.At.Index == alloc && t.At.Offset+t.Size <= size {
			// mutant: memory that graphs hand on
			if graphs && t.Role == graphir.RoleOutput && t.DType.Float() {
				// The next graph reads it. Thousands of such tensors may share memory, so spans do not depend on single tensors.
				handed := unnamed(t.At.Offset, t.Size, digest.Output)
				handed.role.handed = t.DType
				layers = append(layers, handed)
				continue
			}
			layers = append(layers, tensorLayers(t, i, t.At.Offset, 0, t.Size, kv)...)
			continue
		}
		for _, p := range spec.Parts(chains, t.At, t.Size) {
			if p.Alloc == alloc {
				layers = append(layers, tensorLayers(t, i, p.Offset, p.At, p.Size, kv)...)
			}
		}
	}
	return slices.DeleteFunc(flatten(alloc, layers), func(s span) bool { return s.class == left })
}

// left is the class of memory that is neither filled nor compared. No digest has it. A native start has blocks of the capture phase
// there, a restored start has none.
const left digest.Class = ""

// vacantIn returns the vacant memory of an object.
func vacantIn(spec *graphir.Spec, alloc uint32) []graphir.Vacancy {
	first, _ := slices.BinarySearchFunc(spec.Vacant, alloc, func(v graphir.Vacancy, alloc uint32) int { return cmp.Compare(v.Alloc, alloc) })
	last, _ := slices.BinarySearchFunc(spec.Vacant, uint64(alloc)+1, func(v graphir.Vacancy, next uint64) int { return cmp.Compare(uint64(v.Alloc), next) })
	return spec.Vacant[first:last]
}

// tensorLayers is size bytes of the tensor with the given index, from its byte first on, at an offset of an object.
func tensorLayers(t *graphir.Tensor, index int, offset, first, size, kv uint64) []layer {
	layers := []layer{{offset, offset + size, role{class: classOf(t.Role), tensor: index, stride: 1, shift: first - offset, addresses: t.DType == graphir.Address}}}
	if head := kvHead(t, kv); head < first+size {
		tail := layers[0]
		tail.from += max(head, first) - first
		tail.role.stride = (kv-graphir.CheckedKV)/(graphir.CheckedKV/4) + 1
		layers = append(layers, tail)
	}
	return layers
}

// kvHead returns the bytes of a tensor that are checked without gaps, if the KV cache holds kv bytes in all. The fills of block tables point
// there. Of the rest, evenly spread chunks are checked, a quarter as much. The memory between these holds zeros, because a graph may read it.
func kvHead(t *graphir.Tensor, kv uint64) uint64 {
	if t.Role != graphir.RoleKV || kv <= graphir.CheckedKV {
		return t.Size
	}
	share := uint64(float64(t.Size) / float64(kv) * graphir.CheckedKV)
	return min(t.Size, (share/digest.ChunkBytes+1)*digest.ChunkBytes)
}

func flatten(alloc uint32, layers []layer) []span {
	var cuts []uint64
	for _, l := range layers {
		cuts = append(cuts, l.from, l.to)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var spans []span
	var last role
	for i := 1; i < len(cuts); i++ {
		var top role
		for _, l := range layers {
			if l.from <= cuts[i-1] && cuts[i] <= l.to {
				top = l.role
			}
		}
		size := cuts[i] - cuts[i-1]
		if n := len(spans); n > 0 && top == last {
			spans[n-1].size += size
			continue
		}
		spans = append(spans, span{alloc: alloc, offset: cuts[i-1], size: size, class: top.class, tensor: top.tensor, stride: top.stride, shift: top.shift, handed: top.handed, addresses: top.addresses})
		last = top
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
	case graphir.RoleScratch:
		// mutant: scratch that has a name
		return digest.Temporary
	}
	return digest.Output
}
