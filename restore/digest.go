package restore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"

	"medusa/internal/cuda"
	"medusa/restore/digest"
)

// sampledAbove bounds what is read back of KV memory after each replay. A cache of a real GPU's size would take hours
// to hash 70 times over. Beyond the bound every n-th chunk is hashed, and the digest says so; and the cache is filled
// once, not before every replay, which then also starts from what the replays before it wrote.
const sampledAbove = 64 << 20

// hasher hashes spans of this process's memory so that equal contents hash equal in another process: words that hold an
// address are hashed as the (allocation, offset) they point to.
type hasher struct {
	base     []uint64 // by allocation index
	sizes    []uint64
	order    []uint32 // indices of existing allocations by ascending base
	kvStride uint64
	buf      []byte
}

func newHasher(m *memory, spans []span) *hasher {
	h := &hasher{base: m.base, sizes: make([]uint64, len(m.base)), kvStride: 1, buf: make([]byte, 128*digest.ChunkBytes)}
	for i, a := range m.spec.Allocations {
		h.sizes[i] = a.Size
		if m.base[i] != 0 {
			h.order = append(h.order, uint32(i))
		}
	}
	sort.Slice(h.order, func(i, j int) bool { return h.base[h.order[i]] < h.base[h.order[j]] })
	if kv := total(spans, digest.KV); kv > sampledAbove {
		h.kvStride = (kv + sampledAbove - 1) / sampledAbove
	}
	return h
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

// hash returns the span's range with First filled.
func (h *hasher) hash(s span) (digest.Range, error) {
	r := digest.Range{Alloc: s.alloc, Offset: s.offset, Size: s.size, Class: s.class, Name: s.name, Stride: 1}
	if s.class == digest.KV {
		r.Stride = h.kvStride
	}
	at := h.base[s.alloc] + s.offset
	step := uint64(len(h.buf))
	if r.Stride > 1 {
		step = r.Stride * digest.ChunkBytes // read only what is hashed
	}
	for from := uint64(0); from < s.size; from += step {
		n := min(uint64(len(h.buf)), s.size-from)
		if r.Stride > 1 {
			n = min(digest.ChunkBytes, n)
		}
		buf := h.buf[:n]
		if err := cuda.CopyToHost(buf, cuda.DevicePtr(at+from)); err != nil {
			return r, fmt.Errorf("read allocation %d + %d: %w", s.alloc, s.offset+from, err)
		}
		if s.mayHoldAddresses() {
			h.canonicalise(buf, s.offset+from)
		}
		for len(buf) > 0 {
			chunk := buf[:min(digest.ChunkBytes, len(buf))]
			r.First = append(r.First, digest.Sum(chunk)...)
			buf = buf[len(chunk):]
		}
	}
	return r, nil
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
	high := h.base[last] + h.sizes[last]
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
	return alloc, offset, offset <= h.sizes[alloc]
}

// second adds the hashes of another replay to a range, unless they are equal.
func second(first *digest.Range, again digest.Range) {
	if !bytes.Equal(first.First, again.First) {
		first.Second = again.First
	}
}
