package check

import (
	"bytes"
	"testing"

	"medusa/restore/digest"
)

func TestPatternBytes(t *testing.T) {
	p := pattern{data: []byte("abcde")}
	for _, row := range []struct {
		from, size uint64
		want       string
	}{{0, 3, "cde"}, {0, 4, "cdea"}, {3, 2, "ab"}, {2, 12, "eabcdeabcdea"}} {
		if got := string(p.bytes(row.from+2, row.size)); got != row.want {
			t.Errorf("%d bytes from %d: %q, want %q", row.size, row.from, got, row.want)
		}
	}
}

// A chunk hashes to the same sum whether or not it is as it was filled, and one that is not is filled again.
func TestKnownSum(t *testing.T) {
	k := &known{pattern: pattern{data: []byte("abcde")}, sums: map[uint64][]byte{}, spoilt: map[uint64]uint64{}}
	for range 2 {
		if got := k.sum(0, []byte("abcde")); !bytes.Equal(got, digest.Sum([]byte("abcde"))) {
			t.Errorf("sum %x of an unchanged chunk", got)
		}
	}
	if len(k.spoilt) != 0 {
		t.Errorf("unchanged chunk is spoilt: %v", k.spoilt)
	}
	if got := k.sum(5, []byte("abcdX")); !bytes.Equal(got, digest.Sum([]byte("abcdX"))) {
		t.Errorf("sum %x of a changed chunk", got)
	}
	if k.spoilt[5] != 5 {
		t.Errorf("changed chunk is not to be filled again: %v", k.spoilt)
	}
	var nothing *known
	if got := nothing.sum(0, []byte("x")); !bytes.Equal(got, digest.Sum([]byte("x"))) {
		t.Errorf("sum %x without a fill", got)
	}
}

// Hashes that the device gives have the same effect as the bytes.
func TestKnownCompare(t *testing.T) {
	data := make([]byte, 3*digest.ChunkBytes)
	for i := range data {
		data[i] = byte(i / 1000)
	}
	for _, stride := range []uint64{1, 2} {
		k := &known{pattern: pattern{data: data}, sums: map[uint64][]byte{}, spoilt: map[uint64]uint64{}}
		s := span{size: uint64(len(data)) - 9, stride: stride, chunk: digest.ChunkBytes}
		held := bytes.Clone(data)
		held[2*digest.ChunkBytes+1]++
		var sums []byte
		for from := uint64(0); from < s.size; from += stride * digest.ChunkBytes {
			sums = append(sums, digest.Sum(held[from:min(s.size, from+digest.ChunkBytes)])...)
		}
		k.compare(&s, sums)
		if len(k.spoilt) != 1 || k.spoilt[2*digest.ChunkBytes] != digest.ChunkBytes-9 {
			t.Errorf("stride %d: chunks to be filled again %v, want the third", stride, k.spoilt)
		}
	}
	var nothing *known
	nothing.compare(&span{size: 1, stride: 1, chunk: digest.ChunkBytes}, make([]byte, digest.HashBytes))
}
