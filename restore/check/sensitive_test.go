package check

import (
	"testing"

	"medusa/restore/digest"
)

// Which written chunks of a graph count as a kernel's result.
func TestComputes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		r      digest.Range
		copied []extent
		want   bool
	}{
		{"a named output", digest.Range{Class: digest.Output, Name: "logits", OtherInputs: digest.Bits{1}}, nil, true},
		{"one that a copy writes", digest.Range{Class: digest.Output, Name: "logits", OtherInputs: digest.Bits{1}}, []extent{{1, 0, 8}}, false},
		{"one beside a copy", digest.Range{Class: digest.Output, Name: "logits", OtherInputs: digest.Bits{1}}, []extent{{1, 8, 16}, {2, 0, 8}}, true},
		{"the KV cache", digest.Range{Class: digest.KV, Name: "kv", OtherInputs: digest.Bits{1}}, nil, true},
		{"an input", digest.Range{Class: digest.Input, Name: "lengths", OtherInputs: digest.Bits{1}}, nil, false},
		{"what depends on the KV cache alone", digest.Range{Class: digest.Output, OtherKV: digest.Bits{1}}, nil, true},
		{"a mark in an output", digest.Range{Class: digest.Output, Name: "logits"}, nil, false},
		{"scratch", digest.Range{Class: digest.Output, Pool: true}, nil, false},
		{"scratch over a named output", digest.Range{Class: digest.Output, Pool: true, Name: "out.1"}, nil, false},
		{"scratch that depends on garbage", digest.Range{Class: digest.Output, Pool: true, OtherInputs: digest.Bits{1}, Second: digest.Sum([]byte("other"))}, nil, false},
		{"what a graph hands on", digest.Range{Class: digest.Output, Pool: true, OtherInputs: digest.Bits{1}}, nil, true},
	} {
		tt.r.Alloc, tt.r.Size, tt.r.Stride, tt.r.First, tt.r.Written = 1, 8, 1, make([]byte, digest.HashBytes), digest.Bits{1}
		d := &digest.Digest{Graphs: []digest.Graph{{}, {Ranges: []digest.Range{tt.r}}}}
		if got := computes(d, [][]extent{nil, tt.copied}); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
