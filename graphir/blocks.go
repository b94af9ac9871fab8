package graphir

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Block is one block of a framework's allocator: Size bytes at Offset of an allocation, handed out (Live) or free.
type Block struct {
	Alloc        uint32
	Live         bool
	Offset, Size uint64
}

// BlockMapDigest is the SHA-256 of the blocks in address order. Two processes with equal digests have placed their blocks alike.
func BlockMapDigest(blocks []Block) []byte {
	sorted := slices.Clone(blocks)
	slices.SortFunc(sorted, func(x, y Block) int {
		return cmp.Or(cmp.Compare(x.Alloc, y.Alloc), cmp.Compare(x.Offset, y.Offset))
	})
	var text []byte
	for _, b := range sorted {
		live := byte(0)
		if b.Live {
			live = 1
		}
		text = append(binary.LittleEndian.AppendUint32(text, b.Alloc), live)
		text = binary.LittleEndian.AppendUint64(text, b.Offset)
		text = binary.LittleEndian.AppendUint64(text, b.Size)
	}
	sum := sha256.Sum256(text)
	return sum[:]
}
