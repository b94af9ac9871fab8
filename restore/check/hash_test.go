package check

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/digest"
	"medusa/restore/memory"
)

// Pieces are hashed side by side; the hashes stand in the order of the chunks, for any stride.
func TestHashOnHost(t *testing.T) {
	const size = 40*pieceBytes/8 + 5
	data := make([]byte, size)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	clear(data[pieceBytes : 2*pieceBytes])
	spec := &graphir.Spec{Allocations: []graphir.Allocation{{Size: size + 4096}}}
	h := newHasher(&memory.Map{Spec: spec, Base: []uint64{4096}})
	h.read = func(to []byte, from cuda.DevicePtr) error {
		copy(to, data[from-4096-64:])
		return nil
	}
	for _, stride := range []uint64{1, 3} {
		s := &span{alloc: 0, offset: 64, size: size, class: digest.Weight, stride: stride, chunk: digest.ChunkBytes}
		var want []byte
		for from := 0; from < size; from += int(stride) * digest.ChunkBytes {
			want = append(want, digest.Sum(data[from:min(size, from+digest.ChunkBytes)])...)
		}
		fill := &known{pattern: pattern{data: bytes.Clone(data)}, sums: map[uint64][]byte{}, spoilt: map[uint64]uint64{}}
		fill.data[7*digest.ChunkBytes*int(stride)]++
		for _, k := range []*known{nil, fill, fill} {
			if got, err := h.hashOnHost(s, k); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("stride %d: other hashes than chunk by chunk (%v)", stride, err)
			}
		}
		if len(fill.spoilt) != 1 || fill.spoilt[7*digest.ChunkBytes*stride] != digest.ChunkBytes {
			t.Errorf("stride %d: chunks to be filled again %v, want the eighth", stride, fill.spoilt)
		}
	}
	held := binary.LittleEndian.AppendUint64(nil, 4096+24)
	h.read = func(to []byte, _ cuda.DevicePtr) error {
		copy(to, held)
		return nil
	}
	for _, addresses := range []bool{false, true} {
		s := &span{size: 8, class: digest.Weight, stride: 1, chunk: digest.ChunkBytes, addresses: addresses}
		got, err := h.hashOnHost(s, nil)
		if plain := bytes.Equal(got, digest.Sum(held)); err != nil || plain == addresses {
			t.Errorf("a tensor that holds addresses: %v, hashed as numbers: %v (%v)", addresses, plain, err)
		}
	}
	broken := errors.New("broken")
	h.read = func(to []byte, from cuda.DevicePtr) error {
		if from > 4096+3*pieceBytes {
			return broken
		}
		return nil
	}
	for range 2 * cap(h.buffers) { // no buffer is lost
		if _, err := h.hashOnHost(&span{size: size, class: digest.Weight, stride: 1, chunk: digest.ChunkBytes}, nil); !errors.Is(err, broken) {
			t.Fatalf("error %v", err)
		}
	}
}
