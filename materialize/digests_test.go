package materialize

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"medusa/graphir"
	"medusa/restore/digest"
)

func hashes(chunks ...string) []byte {
	var out []byte
	for _, c := range chunks {
		out = append(out, digest.Sum([]byte(c))...)
	}
	return out
}

func TestCompareDigests(t *testing.T) {
	const two = digest.ChunkBytes + 1
	one := func(class digest.Class, first, second []byte) *digest.Digest {
		return &digest.Digest{Graphs: []digest.Graph{{Label: "g", Ranges: []digest.Range{
			{Alloc: 1, Size: two, Class: digest.Output, Stride: 1, First: hashes("always", "same")},
			{Alloc: 3, Offset: 8, Size: two, Class: class, Stride: 1, First: first, Second: second},
		}}}}
	}
	// whole has hashes of memory at ready and of weights after the last replay, and a graph without differences.
	whole := func(ready, end string) *digest.Digest {
		d := one(digest.KV, hashes("a", "b"), nil)
		other := func(class digest.Class, chunk string) []digest.Range {
			return []digest.Range{{Alloc: 1, Size: 1, Class: class, Stride: 1, First: hashes("same")}, {Alloc: 3, Size: 1, Class: class, Stride: 1, First: hashes(chunk)}}
		}
		d.Ready, d.End = other(digest.Other, ready), other(digest.Weight, end)
		return d
	}
	// led has one more range, which a pointer led to that has become presumed padding.
	led := func(written digest.Bits) *digest.Digest {
		d := one(digest.KV, hashes("a", "b"), nil)
		g := &d.Graphs[0]
		g.Ranges = slices.Insert(g.Ranges, 1, digest.Range{Alloc: 3, Size: 1, Class: digest.KV, Stride: 1, First: hashes("z"), Written: written})
		return d
	}
	// varied has a chunk of results that vary: one native value and a bound, or those of two restored replays.
	varied := func(first, second string, bound float64, values ...float32) *digest.Digest {
		d := one(digest.Output, hashes("a", first), hashes("a", second))
		v := digest.Varying{Chunk: 1, DType: graphir.F32, Bound: bound}
		for _, x := range values {
			v.Values = append(v.Values, binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
		}
		d.Graphs[0].Ranges[1].Varying = []digest.Varying{v}
		return d
	}
	tests := []struct {
		name             string
		native, restored *digest.Digest
		deterministic    bool
		differ           bool
	}{
		{"equal", one(digest.KV, hashes("a", "b"), nil), one(digest.KV, hashes("a", "b"), nil), true, false},
		{"second chunk differs", one(digest.KV, hashes("a", "b"), nil), one(digest.KV, hashes("a", "x"), nil), false, true},
		{"second replay differs", one(digest.KV, hashes("a", "b"), nil), one(digest.KV, hashes("a", "b"), hashes("a", "x")), false, true},
		{"natively unstable", one(digest.KV, hashes("a", "b"), hashes("a", "c")), one(digest.KV, hashes("a", "x"), nil), false, false},
		{"scratch left as garbage", one(digest.Temporary, hashes("a", "b"), hashes("c", "d")), one(digest.Temporary, hashes("e", "f"), nil), true, false},
		{"scratch overwritten otherwise", one(digest.Temporary, hashes("a", "b"), nil), one(digest.Temporary, hashes("e", "b"), nil), false, true},
		{"memory that only the native graph led to", led(nil), one(digest.KV, hashes("a", "b"), nil), true, false},
		{"memory that only the native graph wrote", led(digest.Bits{1}), one(digest.KV, hashes("a", "b"), nil), false, true},
		{"varies within the bound", varied("b", "c", 0.5, 1), varied("x", "y", 0, 1.5, 0.5), false, false},
		{"varies beyond it once", varied("b", "c", 0.5, 1), varied("x", "y", 0, 1, 1.75), false, true},
		{"varies, and one restored replay is missing", varied("b", "c", 0.5, 1), varied("x", "y", 0, 1), false, true},
		{"varies, and no restored results", varied("b", "c", 0.5, 1), one(digest.Output, hashes("a", "b"), nil), false, true},
		{"ready and end alike", whole("r", "w"), whole("r", "w"), true, false},
		{"memory at ready differs", whole("r", "w"), whole("x", "w"), false, true},
		{"weights at the end differ", whole("r", "w"), whole("r", "x"), false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checks, err := compareDigests(tt.native, tt.restored)
			var differ *DigestError
			if errors.As(err, &differ) != tt.differ {
				t.Fatalf("error %v, want a difference: %v", err, tt.differ)
			}
			if tt.differ {
				if differ.Alloc != 3 || differ.Differing != 1 {
					t.Errorf("difference %+v", differ)
				}
				return
			}
			if want := digest.ResultsOf(&tt.restored.Graphs[0]); tt.native.Graphs[0].Ranges[1].Second == nil && checks[0].Canary != want {
				t.Errorf("a canary finds %q, want %q", want, checks[0].Canary)
			}
			if checks[0].NativeDeterministic != tt.deterministic || checks[0].BytesCompared == 0 {
				t.Errorf("check %+v, want deterministic %v", checks[0], tt.deterministic)
			}
		})
	}
}
