package restore

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/devicehash"
	"medusa/restore/digest"
)

// hasher hashes spans of this process's memory so that equal contents hash equal in another process: words that hold an
// address are hashed as the (allocation, offset) they point to.
type hasher struct {
	spec    *graphir.Spec
	base    []uint64           // by object
	objects digest.Objects     // those that addresses may point to
	device  *devicehash.Hasher // nil: all is hashed on the host
	buf     []byte
}

func newHasher(m *memory) *hasher {
	h := &hasher{spec: m.spec, base: m.base, buf: make([]byte, 128*digest.ChunkBytes)}
	for i, base := range m.base {
		if base != 0 && addressable(m.spec, uint32(i)) {
			h.objects = append(h.objects, digest.Object{Base: base, Size: m.spec.ObjectSize(uint32(i)), ID: uint64(i)})
		}
	}
	slices.SortFunc(h.objects, func(x, y digest.Object) int { return cmp.Compare(x.Base, y.Base) })
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

// useDevice loads the kernel for hashing on the device, with room for all chunks of the spans.
func (h *hasher) useDevice(spans []span) error {
	var chunks uint64
	for i := range spans {
		chunks += digest.Chunks(spans[i].size, spans[i].stride)
	}
	return inTrigger(func() (err error) {
		h.device, err = devicehash.New(h.objects, chunks)
		return err
	})
}

// close gives back what useDevice took.
func (h *hasher) close() error {
	if h.device == nil {
		return nil
	}
	return inTrigger(h.device.Close)
}

// readable reports whether a kernel can read the span word by word.
func (h *hasher) readable(s *span) bool {
	if i := int(s.alloc); i < len(h.spec.Allocations) {
		if kind := h.spec.Allocations[i].Kind; kind == graphir.AllocPinned || kind == graphir.AllocRegistered {
			return false
		}
	}
	return (h.base[s.alloc]|s.offset)%8 == 0
}

// hash returns the spans' ranges with First filled. known holds, for each span, what it was filled with, or nil.
func (h *hasher) hash(spans []span, known []*known) ([]digest.Range, error) {
	ranges := make([]digest.Range, len(spans))
	var onDevice []devicehash.Range
	var which []int
	for i, s := range spans {
		ranges[i] = digest.Range{Alloc: s.alloc, Offset: s.offset, Size: s.size, Class: s.class, Stride: s.stride}
		if s.tensor != noTensor {
			ranges[i].Name = h.spec.Tensors[s.tensor].Name
		}
		if h.device != nil && h.readable(&s) {
			onDevice = append(onDevice, devicehash.Range{Addr: h.base[s.alloc] + s.offset, Size: s.size, Stride: s.stride, Pointers: s.mayHoldAddresses()})
			which = append(which, i)
			continue
		}
		var err error
		if ranges[i].First, err = h.hashOnHost(&s, known[i]); err != nil {
			return nil, err
		}
	}
	if len(onDevice) == 0 {
		return ranges, nil
	}
	sums, err := h.device.Hash(onDevice)
	for i := range sums {
		ranges[which[i]].First = sums[i]
		known[which[i]].compare(&spans[which[i]], sums[i])
	}
	return ranges, err
}

func (h *hasher) hashOnHost(s *span, known *known) ([]byte, error) {
	var sums []byte
	err := s.pieces(uint64(len(h.buf)), func(from, size uint64) error {
		buf := h.buf[:size]
		if err := cuda.CopyToHost(buf, cuda.DevicePtr(h.base[s.alloc]+s.offset+from)); err != nil {
			return fmt.Errorf("read allocation %d + %d: %w", s.alloc, s.offset+from, err)
		}
		if s.mayHoldAddresses() {
			h.objects.Canonicalise(buf, s.offset+from)
		}
		for at := from; len(buf) > 0; at += digest.ChunkBytes {
			chunk := buf[:min(digest.ChunkBytes, len(buf))]
			sums = append(sums, known.sum(at, chunk)...)
			buf = buf[len(chunk):]
		}
		return nil
	})
	return sums, err
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

// second adds the hashes of another replay to a range, unless they are equal.
func second(first *digest.Range, again digest.Range) {
	if !bytes.Equal(first.First, again.First) {
		first.Second = again.First
	}
}
