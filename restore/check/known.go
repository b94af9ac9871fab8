package check

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"medusa/restore/digest"
)

// known is the fill of a tensor's span before every replay. Most of a KV cache stays as it was filled, so a
// chunk that still equals its fill is neither hashed nor filled again.
type known struct {
	pattern
	first  uint64            // place of the span in the tensor
	mutex  sync.Mutex        // chunks are hashed by several goroutines
	filled bool              // the span holds it, except the spoilt chunks
	unsure bool              // something may have written there since it was last hashed
	sums   map[uint64][]byte // hash of a chunk as filled, by its place in the span; nil before the first fill
	spoilt map[uint64]uint64 // place and size of the chunks that a replay changed
}

// fill writes the data to the span, which begins at a device address, as far as the span is looked at.
func (k *known) fill(s span, addr uint64) error {
	if k.sums == nil {
		k.sums, k.spoilt = make(map[uint64][]byte), make(map[uint64]uint64)
	}
	if !k.filled || k.unsure {
		k.filled, k.unsure = true, false
		clear(k.spoilt)
		return s.pieces(s.size+s.chunk, func(from, size uint64) error {
			return k.put(addr+from, k.first+from, size)
		})
	}
	for _, from := range slices.Sorted(maps.Keys(k.spoilt)) {
		size, is := k.spoilt[from]
		if !is {
			continue // filled with the chunk before it
		}
		for next := k.spoilt[from+size]; next > 0; next = k.spoilt[from+size] {
			delete(k.spoilt, from+size)
			size += next
		}
		if err := k.put(addr+from, k.first+from, size); err != nil {
			return err
		}
	}
	clear(k.spoilt)
	return nil
}

// sum returns the present hash of the chunk at a place of the span. k may be nil.
func (k *known) sum(from uint64, chunk []byte) []byte {
	if k == nil || k.sums == nil {
		return digest.Sum(chunk)
	}
	if !bytes.Equal(chunk, k.bytes(k.first+from, uint64(len(chunk)))) {
		k.mutex.Lock()
		k.spoilt[from] = uint64(len(chunk))
		k.mutex.Unlock()
		return digest.Sum(chunk)
	}
	k.mutex.Lock()
	sum := k.sums[from]
	k.mutex.Unlock()
	if sum == nil {
		sum = digest.Sum(chunk)
		k.mutex.Lock()
		k.sums[from] = sum
		k.mutex.Unlock()
	}
	return sum
}

// compare takes the present hashes of the span's chunks, and notes the chunks that differ from their fill.
func (k *known) compare(s *span, sums []byte) {
	if k == nil || k.sums == nil {
		return
	}
	for from := uint64(0); from < s.size; from += s.stride * s.chunk {
		size := min(s.chunk, s.size-from)
		if k.sums[from] == nil {
			k.sums[from] = digest.Sum(k.bytes(k.first+from, size))
		}
		// mutant: chunks that a replay changed are filled again
		if !bytes.Equal(sums[:digest.HashBytes], k.sums[from]) {
			k.spoilt[from] = size
		}
		sums = sums[digest.HashBytes:]
	}
}

// written returns the chunks that differ from their fill, once all have been hashed.
func (k *known) written(s *span) (b digest.Bits) {
	if k == nil {
		return nil
	}
	for from := range k.spoilt {
		b.Add(int(from / (s.stride * s.chunk)))
	}
	return b
}
