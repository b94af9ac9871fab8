package check

import (
	"bytes"
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/devicehash"
	"medusa/restore/digest"
	"medusa/restore/live"
	"medusa/restore/memory"
)

// hasher hashes spans of this process's memory so that equal contents hash equal in another process: words that hold an
// address are hashed as the (allocation, offset) they point to.
type hasher struct {
	spec    *graphir.Spec
	base    []uint64           // by object
	objects digest.Objects     // those that addresses may point to
	device  *devicehash.Hasher // nil: all is hashed on the host
	spare   *devicehash.Hasher // works, but the host is faster
	read    func(to []byte, from cuda.DevicePtr) error
	buffers chan []byte // free ones
}

// pieceBytes of memory are copied at a time, and hashed by one goroutine.
const pieceBytes = 16 * digest.ChunkBytes

// mostPieces bounds the memory that pieces take.
const mostPieces = 8

func newHasher(m *memory.Map) *hasher {
	h := &hasher{spec: m.Spec, base: m.Base, read: cuda.CopyToHost, buffers: make(chan []byte, min(runtime.GOMAXPROCS(0)+1, mostPieces))}
	for range cap(h.buffers) {
		h.buffers <- make([]byte, pieceBytes)
	}
	for i, base := range m.Base {
		if base != 0 && addressable(m.Spec, uint32(i)) {
			h.objects = append(h.objects, digest.Object{Base: base, Size: m.Spec.ObjectSize(uint32(i)), ID: uint64(i)})
		}
	}
	slices.SortFunc(h.objects, func(x, y digest.Object) int { return cmp.Compare(x.Base, y.Base) })
	return h
}

// addressable reports whether an address counts as one inside of the object. In a suballocated allocation it counts by tensor,
// unless all blocks are known to be at their recorded places.
func addressable(spec *graphir.Spec, object uint32) bool {
	byBlock := len(spec.BlockMap) > 0
	if spec.IsTensor(object) {
		return !byBlock && spec.Allocations[spec.Tensors[object-spec.Object(graphir.SpaceTensor, 0)].At.Index].Suballocated
	}
	return byBlock || int64(object) >= int64(len(spec.Allocations)) || !spec.Allocations[object].Suballocated
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
		chunks += spans[i].chunks()
	}
	return live.InTrigger(func() (err error) {
		h.device, err = devicehash.New(h.objects, max(chunks, trialBytes/digest.ChunkBytes))
		return err
	})
}

// close gives back the resources of useDevice.
func (h *hasher) close() error {
	device := h.device
	if device == nil {
		device = h.spare
	}
	if device == nil {
		return nil
	}
	return live.InTrigger(device.Close)
}

// readable reports whether a kernel can read the span word by word.
func (h *hasher) readable(s *span) bool {
	if i := int(s.alloc); i < len(h.spec.Allocations) {
		if kind := h.spec.Allocations[i].Kind; kind == graphir.AllocPinned || kind == graphir.AllocRegistered {
			return false
		}
	}
	return (h.base[s.alloc]|s.offset|s.chunk)%8 == 0
}

// chunks returns how many hashes the span has.
func (s *span) chunks() uint64 { return digest.Chunks(s.size, s.stride, s.chunk) }

// piece returns the bytes of the allocation that a chunk covers.
func (s *span) piece(chunk int) (offset, size uint64) {
	from := uint64(chunk) * s.stride * s.chunk
	return s.offset + from, min(s.chunk, s.size-from)
}

// onDevice is the span as a kernel sees it.
func (h *hasher) onDevice(s *span) devicehash.Range {
	return devicehash.Range{Addr: h.base[s.alloc] + s.offset, Size: s.size, Stride: s.stride, Chunk: s.chunk, Pointers: s.mayHoldAddresses()}
}

// hash returns the spans' ranges with First filled. known holds the fill of each span, or nil.
func (h *hasher) hash(spans []span, known []*known) ([]digest.Range, error) {
	ranges := make([]digest.Range, len(spans))
	var onDevice []devicehash.Range
	var which []int
	for i, s := range spans {
		ranges[i] = digest.Range{Alloc: s.alloc, Offset: s.offset, Size: s.size, Class: s.class, Stride: s.stride}
		if s.chunk != digest.ChunkBytes {
			ranges[i].Chunk = s.chunk
		}
		ranges[i].Pool = int(s.alloc) < len(h.spec.Allocations) && h.spec.Allocations[s.alloc].Owner == graphir.OwnerGraph
		if s.row != 0 {
			ranges[i].Row, ranges[i].Place = s.row, s.offset+s.shift
		}
		if s.tensor != noTensor {
			ranges[i].Name = h.spec.Tensors[s.tensor].Name
		}
		if h.device != nil && h.readable(&s) {
			onDevice = append(onDevice, h.onDevice(&s))
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

// hashOnHost copies the span piece by piece. While one is copied, on the thread of the context, those before it are hashed, on
// all processors.
func (h *hasher) hashOnHost(s *span, known *known) ([]byte, error) {
	sums := make([]byte, digest.HashBytes*s.chunks())
	var hashing sync.WaitGroup
	left := sums
	err := s.pieces(pieceBytes, func(from, size uint64) error {
		buf := <-h.buffers
		if err := h.read(buf[:size], cuda.DevicePtr(h.base[s.alloc]+s.offset+from)); err != nil {
			h.buffers <- buf
			return fmt.Errorf("read allocation %d + %d: %w", s.alloc, s.offset+from, err)
		}
		own := left[:digest.HashBytes*digest.Chunks(size, 1, s.chunk)]
		// mutant: hashes of pieces that are made side by side
		left = left[len(own):]
		hashing.Go(func() {
			h.sum(s, known, from, buf[:size], own)
			h.buffers <- buf
		})
		return nil
	})
	hashing.Wait()
	return sums, err
}

// sum hashes a piece of the span, chunk by chunk.
func (h *hasher) sum(s *span, known *known, from uint64, piece, sums []byte) {
	if s.mayHoldAddresses() {
		h.objects.Canonicalise(piece, s.offset+from)
	}
	for at := from; len(piece) > 0; at += s.chunk {
		chunk := piece[:min(s.chunk, uint64(len(piece)))]
		sums = sums[copy(sums, known.sum(at, chunk)):]
		piece = piece[len(chunk):]
	}
}

// pieces calls f for each contiguous piece of the span that is looked at, at most limit bytes at a time. limit is at least a chunk.
func (s *span) pieces(limit uint64, f func(from, size uint64) error) error {
	limit -= limit % s.chunk
	step := limit
	if s.stride > 1 {
		limit, step = s.chunk, s.stride*s.chunk
	}
	for from := uint64(0); from < s.size; from += step {
		if err := f(from, min(limit, s.size-from)); err != nil {
			return err
		}
	}
	return nil
}

// gaps calls f for each contiguous piece of the span that is not looked at.
func (s *span) gaps(f func(from, size uint64) error) error {
	if s.stride <= 1 {
		return nil
	}
	for from := s.chunk; from < s.size; from += s.stride * s.chunk {
		if err := f(from, min((s.stride-1)*s.chunk, s.size-from)); err != nil {
			return err
		}
	}
	return nil
}

// mayHoldAddresses says whether a word that looks like an address is one: in memory that kernels keep for themselves, and in tensors of
// addresses. Numbers in other tensors may look like addresses by chance.
func (s *span) mayHoldAddresses() bool {
	switch s.class {
	case digest.Permanent, digest.Other, digest.Temporary, digest.Unstable:
		return true
	}
	// mutant: addresses in tensors
	return s.addresses
}

// second adds another replay's written chunks to a range, and its hashes if they differ.
func second(first *digest.Range, again digest.Range) {
	for i, b := range again.Written {
		for len(first.Written) <= i {
			first.Written = append(first.Written, 0)
		}
		first.Written[i] |= b
	}
	if !bytes.Equal(first.First, again.First) {
		first.Second = again.First
	}
}
