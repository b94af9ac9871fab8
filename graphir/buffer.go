package graphir

import "medusa/graphir/graphpb"

// Parameters of some types are a buffer: bytes as the driver reads them, with relocations where pointers belong. The columns words,
// relocation_alloc and relocation_offset hold buffers of all types.

// with adds the column entries of a buffer to those that each node of a type takes.
func (e extent) with(params []byte, relocations []Relocation) extent {
	e.words, e.relocations = (len(params)+3)/4, len(relocations)
	return e
}

// bufferKey appends the parts of a buffer that a shape shares.
func bufferKey(to []byte, params []byte, relocations []Relocation) []byte {
	to = key(to, uint32(len(params)))
	for i := range relocations {
		to = key(to, relocations[i].Offset, uint32(relocations[i].Pointer.Space), relocations[i].TensorMap)
	}
	return to
}

func encodeBuffer(pb *graphpb.Shape, params []byte, relocations []Relocation) {
	pb.ParamsSize = uint32(len(params))
	end := uint32(0)
	for _, f := range relocations {
		pb.RelocationGap = append(pb.RelocationGap, f.Offset-end)
		end = f.Offset + f.Size()
	}
	pb.RelocationSpace, pb.RelocationMap = relocationKinds(relocations)
}

// buffer writes a buffer into the columns.
func (c *columns) buffer(at *extent, params []byte, relocations []Relocation) {
	copy(bytesOf(c.words[at.words:]), params)
	for f := range relocations {
		c.relocationAlloc[at.relocations+f] = relocations[f].Pointer.Index
		c.relocationOffset[at.relocations+f] = relocations[f].Pointer.Offset
	}
}

// buffer returns the memory of a decoded buffer, with the facts about relocations that its shape holds.
func (b *bodies) buffer(at *extent, s *shape) (params []byte, relocations []Relocation) {
	if size := s.paramsSize; size > 0 {
		params = b.params[4*at.words:][:size:size]
	}
	if count := len(s.relocations); count > 0 {
		relocations = b.relocations[at.relocations:][:count:count]
		copy(relocations, s.relocations)
	}
	return params, relocations
}
