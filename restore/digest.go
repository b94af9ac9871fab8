package restore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/digest"
)

// hasher hashes spans of this process's memory so that equal contents hash equal in another process: words that hold an
// address are hashed as the (allocation, offset) they point to.
type hasher struct {
	spec  *graphir.Spec
	base  []uint64 // by object
	order []uint32 // existing objects by ascending base
	buf   []byte
}

func newHasher(m *memory) *hasher {
	h := &hasher{spec: m.spec, base: m.base, buf: make([]byte, 128*digest.ChunkBytes)}
	for i, base := range m.base {
		if base != 0 && addressable(m.spec, uint32(i)) {
			h.order = append(h.order, uint32(i))
		}
	}
	sort.Slice(h.order, func(i, j int) bool { return h.base[h.order[i]] < h.base[h.order[j]] })
	return h
}

// addressable reports whether an address counts as one inside of the object. In a divided allocation it counts by tensor,
// unless all blocks are known to be where they were.
func addressable(spec *graphir.Spec, object uint32) bool {
	byBlock := len(spec.BlockMap) > 0
	if spec.IsTensor(object) {
		return !byBlock && spec.Allocations[spec.Tensors[object-spec.Object(graphir.SpaceTensor, 0)].At.Alloc].Divided
	}
	return byBlock || int64(object) >= int64(len(spec.Allocations)) || !spec.Allocations[object].Divided
}

func total(spans []span, class digest.Class) uint64 {
	var n uint64
	for _, s := range spans {
		if s.class == class {
			n += s.size
		}
	}
	return n
}

// hash returns the span's range with First filled. known, which may be nil, is what the span was filled with.
func (h *hasher) hash(s span, known *known) (digest.Range, error) {
	r := digest.Range{Alloc: s.alloc, Offset: s.offset, Size: s.size, Class: s.class, Stride: s.stride}
	if s.tensor != noTensor {
		r.Name = h.spec.Tensors[s.tensor].Name
	}
	err := s.pieces(uint64(len(h.buf)), func(from, size uint64) error {
		buf := h.buf[:size]
		if err := cuda.CopyToHost(buf, cuda.DevicePtr(h.base[s.alloc]+s.offset+from)); err != nil {
			return fmt.Errorf("read allocation %d + %d: %w", s.alloc, s.offset+from, err)
		}
		if s.mayHoldAddresses() {
			h.canonicalise(buf, s.offset+from)
		}
		for at := from; len(buf) > 0; at += digest.ChunkBytes {
			chunk := buf[:min(digest.ChunkBytes, len(buf))]
			r.First = append(r.First, known.sum(at, chunk)...)
			buf = buf[len(chunk):]
		}
		return nil
	})
	return r, err
}

// pieces calls f for each contiguous piece of the span that is looked at, at most limit bytes at a time. limit is a
// multiple of a chunk.
func (s *span) pieces(limit uint64, f func(from, size uint64) error) error {
	step := limit
	if s.stride > 1 {
		limit, step = digest.ChunkBytes, s.stride*digest.ChunkBytes
	}
	for from := uint64(0); from < s.size; from += step {
		if err := f(from, min(limit, s.size-from)); err != nil {
			return err
		}
	}
	return nil
}

// mayHoldAddresses says where a word that looks like an address is one: in what kernels keep for themselves, not in
// tensors, whose numbers may look like anything.
func (s *span) mayHoldAddresses() bool {
	switch s.class {
	case digest.Permanent, digest.Other, digest.Temporary, digest.Unstable:
		return true
	}
	return false
}

// canonicalise replaces every aligned word that points into a live allocation. offset is the place of buf in its
// allocation, whose base is aligned.
func (h *hasher) canonicalise(buf []byte, offset uint64) {
	if len(h.order) == 0 {
		return
	}
	low := h.base[h.order[0]]
	last := h.order[len(h.order)-1]
	high := h.base[last] + h.spec.ObjectSize(last)
	for i := int(-offset & 7); i+8 <= len(buf); i += 8 {
		word := binary.LittleEndian.Uint64(buf[i:])
		if word < low || word > high {
			continue
		}
		if alloc, off, ok := h.find(word); ok {
			// No address of user space has its upper bits set: a canonical word equals no plain one.
			binary.LittleEndian.PutUint64(buf[i:], 1<<63|uint64(alloc)<<40|off&(1<<40-1))
		}
	}
}

// find returns the allocation that the address lies in. One past an end belongs to the allocation that begins there, if
// any.
func (h *hasher) find(addr uint64) (alloc uint32, offset uint64, ok bool) {
	n := sort.Search(len(h.order), func(i int) bool { return h.base[h.order[i]] > addr })
	if n == 0 {
		return 0, 0, false
	}
	alloc = h.order[n-1]
	offset = addr - h.base[alloc]
	return alloc, offset, offset <= h.spec.ObjectSize(alloc)
}

// second adds the hashes of another replay to a range, unless they are equal.
func second(first *digest.Range, again digest.Range) {
	if !bytes.Equal(first.First, again.First) {
		first.Second = again.First
	}
}
