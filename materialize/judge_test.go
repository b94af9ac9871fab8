package materialize

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"medusa/restore/digest"
)

// An output of four rows of 256 bytes, which a graph of batch 3 writes as it should: its last row stays poisoned.
func goodOutput() *digest.Digest {
	r := digest.Range{Alloc: 1, Offset: 512, Size: 1024, Class: digest.Output, Name: "logits", Stride: 1, Chunk: 256, Row: 256,
		First: hashes("a", "b", "c", "poison"), Second: hashes("a", "b", "c", "other poison"),
		Written: digest.Bits{0b0111}, OtherInputs: digest.Bits{0b0111}, OtherKV: digest.Bits{0b0010}}
	return &digest.Digest{Device: "GPU", Computes: true, Graphs: []digest.Graph{{Label: "g", Batch: 3, ReadsInputs: true, ReadsKV: true, Ranges: []digest.Range{
		r, {Alloc: 2, Size: 8, Class: digest.KV, Stride: 1, First: hashes("kv"), Written: digest.Bits{1}},
	}}}}
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(d *digest.Digest, g *digest.Graph, r *digest.Range)
		want   string
	}{
		{"as it should be", func(*digest.Digest, *digest.Graph, *digest.Range) {}, ""},
		{"an unstable row", func(_ *digest.Digest, _ *digest.Graph, r *digest.Range) {
			r.Second = hashes("a", "x", "c", "other poison")
		}, "row 1 differs between two native replays"},
		{"a row that varies within a bound", func(_ *digest.Digest, _ *digest.Graph, r *digest.Range) {
			r.Second, r.Varying = hashes("a", "x", "c", "other poison"), []digest.Varying{{Chunk: 1}}
		}, ""},
		{"unstable KV memory", func(_ *digest.Digest, g *digest.Graph, _ *digest.Range) { g.Ranges[1].Second = hashes("other") }, `kv "" alloc#2+0 differs`},
		{"a row that is no number", func(_ *digest.Digest, _ *digest.Graph, r *digest.Range) { r.NotFinite = digest.Bits{0b0100} }, "row 2 holds NaN or Inf"},
		{"a missing row", func(_ *digest.Digest, _ *digest.Graph, r *digest.Range) { r.Written = digest.Bits{0b0011} }, "row 2 is not written by the graph"},
		{"an output of another batch, over scratch", func(_ *digest.Digest, g *digest.Graph, r *digest.Range) {
			other := *r
			other.Alloc, other.Pool, other.Second, other.Written, other.OtherInputs = 3, true, hashes("a", "x", "c", "y"), digest.Bits{0b1010}, nil
			g.Ranges = append(g.Ranges, other)
		}, ""},
		{"an output of this batch in memory of the graphs' own", func(_ *digest.Digest, g *digest.Graph, r *digest.Range) {
			own := *r
			own.Alloc, own.Pool, own.Size, own.Written = 3, true, 3*256, digest.Bits{0b101}
			own.First, own.Second = hashes("a", "b", "c"), nil
			g.Ranges = append(g.Ranges, own)
		}, "row 1 is not written by the graph"},
		{"an output of other graphs", func(_ *digest.Digest, _ *digest.Graph, r *digest.Range) { r.Written = nil }, ""},
		{"a row that a step writes", func(_ *digest.Digest, g *digest.Graph, r *digest.Range) {
			g.Stepped, r.Eager = true, digest.Bits{0b1111}
		}, "row 3 is written by the engine's step"},
		{"a step that writes fewer rows", func(_ *digest.Digest, g *digest.Graph, r *digest.Range) {
			g.Stepped, r.Eager, r.Written, r.OtherInputs = true, digest.Bits{0b0001}, digest.Bits{0b0001}, digest.Bits{0b0001}
			r.OtherKV = digest.Bits{1}
		}, ""},
		{"a deaf row", func(_ *digest.Digest, _ *digest.Graph, r *digest.Range) { r.OtherInputs = digest.Bits{0b0101} }, "row 1 does not change with other inputs"},
		{"no inputs", func(_ *digest.Digest, g *digest.Graph, r *digest.Range) { g.ReadsInputs, r.OtherInputs = false, nil }, ""},
		{"a KV cache that nothing reads", func(_ *digest.Digest, _ *digest.Graph, r *digest.Range) { r.OtherKV = nil }, "row 0 does not change with another KV cache"},
		{"no KV cache", func(_ *digest.Digest, g *digest.Graph, r *digest.Range) { g.ReadsKV, r.OtherKV = false, nil }, ""},
		{"nothing computes", func(d *digest.Digest, _ *digest.Graph, r *digest.Range) {
			d.Computes, r.Written, r.OtherInputs, r.OtherKV = false, nil, nil, nil
		}, "no graph wrote a result that changes with inputs or KV cache on GPU"},
		{"copies write all results", func(d *digest.Digest, _ *digest.Graph, _ *digest.Range) { d.Computes = false }, ""},
		{"nothing computes on a simulated GPU", func(d *digest.Digest, _ *digest.Graph, r *digest.Range) {
			d.Computes, d.Device, r.Written = false, "Simulated GPU", digest.Bits{1}
		}, ""},
	} {
		d := goodOutput()
		tt.change(d, &d.Graphs[0], &d.Graphs[0].Ranges[0])
		computes, err := judge(d, false)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		var result *ResultError
		if err != nil && d.Computes && (!errors.As(err, &result) || result.Graph != "g") {
			t.Errorf("%s: %#v", tt.name, err)
		}
		if computes != (d.Computes || tt.name == "copies write all results") {
			t.Errorf("%s: results were compared: %v", tt.name, computes)
		}
	}
}

// Bytes that a restored graph writes and a native one does not are a difference, though the poison there is none.
func TestRestoredWritesMore(t *testing.T) {
	n, r := goodOutput(), goodOutput()
	if _, err := compareDigests(n, r); err != nil {
		t.Fatal(err)
	}
	r.Graphs[0].Ranges[0].Written = digest.Bits{0b1111}
	r.Graphs[0].Ranges[0].First = hashes("a", "b", "c", "d")
	r.Graphs[0].Ranges[0].Second = nil
	var differ *DigestError
	if _, err := compareDigests(n, r); !errors.As(err, &differ) || differ.Offset != 512+3*256 {
		t.Errorf("error %v", fmt.Sprint(err))
	}
	r = goodOutput()
	r.Graphs[0].Ranges[0].Second = hashes("a", "x", "c", "other poison")
	if _, err := compareDigests(n, r); !errors.As(err, &differ) || !differ.Varies || !strings.Contains(err.Error(), "its results vary") {
		t.Errorf("restored replays that differ: %v", err)
	}
}
