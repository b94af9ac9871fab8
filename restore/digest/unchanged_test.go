package digest

import (
	"bytes"
	"testing"
)

func sums(chunks ...byte) []byte {
	var out []byte
	for _, b := range chunks {
		out = append(out, bytes.Repeat([]byte{b}, HashBytes)...)
	}
	return out
}

// A chunk that a replay changed is left out; everything else has to be as it was.
func TestUnchanged(t *testing.T) {
	before := func(first, third byte) []Range {
		return []Range{
			{Alloc: 1, Size: 9 * ChunkBytes, Class: Other, Stride: 1, First: sums(first, 2, third, 4, 5, 6, 7, 8, 9)},
			{Alloc: 2, Offset: 8, Size: 1, Class: Permanent, Stride: 1, First: sums(10)},
		}
	}
	after := func(third, fourth byte) []Range {
		return []Range{
			{Alloc: 3, Size: 1, Class: KV, Stride: 1, First: sums(1)},
			{Alloc: 1, Size: 9 * ChunkBytes, Class: Other, Stride: 1, First: sums(1, 2, third, 4, 5, 6, 7, 8, 9), Second: sums(1, 2, third, fourth, 5, 6, 7, 8, 9)},
			{Alloc: 2, Offset: 8, Size: 1, Class: Permanent, Stride: 1, First: sums(10)},
		}
	}
	u := UnchangedOf(before(1, 3), []Graph{{Ranges: after(3, 4)}, {Ranges: after(33, 4)}, {Ranges: after(3, 44)}}, nil)
	if want := []byte{0b1111_0011, 0b11}; !bytes.Equal(u.Chunks, want) {
		t.Errorf("unchanged chunks %08b, want %08b", u.Chunks, want)
	}
	for name, row := range map[string]struct {
		ranges []Range
		equal  bool
	}{
		"the same":                   {before(1, 3), true},
		"a chunk that replays write": {before(1, 99), true},
		"a chunk that they do not":   {before(99, 3), false},
	} {
		got, err := u.SumOf(row.ranges)
		if err != nil || (got == u.Sum) != row.equal {
			t.Errorf("%s: sum %s of %s (%v)", name, got, u.Sum, err)
		}
	}
	if _, err := u.SumOf(before(1, 3)[:1]); err != nil {
		t.Errorf("as many bytes of bits: %v", err)
	}
	apart := func(alloc uint32, offset, size uint64) bool {
		return alloc == 2 && offset == 8 && size == 1 || alloc == 1 && offset == 5*ChunkBytes
	}
	if got, want := UnchangedOf(before(1, 3), nil, apart).Chunks, []byte{0b1101_1111, 0b01}; !bytes.Equal(got, want) {
		t.Errorf("unchanged chunks %08b, want %08b", got, want)
	}
	if _, err := u.SumOf(before(1, 3)[1:]); err == nil {
		t.Error("a record of other memory: no error")
	}
}
